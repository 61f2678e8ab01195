//! `dragoman chat`: the terminal front-end with its services: an editor, colors, signals.

use std::io::{IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use config::Environment;
use domain::{BoxFuture, Failure, FailureKind, SessionId};
use futures_util::FutureExt;
use process::ShutdownSignal;
use terminal::{ChatOptions, Palette, TerminalServices};

use super::failed;
use crate::cli::{ChatArguments, Level, ThemeName};
use crate::lifetime;
use crate::logging;
use crate::workspaces::{self, Workspaces};

pub(crate) fn run(arguments: ChatArguments, level: Option<Level>) -> ExitCode {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        failed(
            &Failure::user("A chat needs a terminal.")
                .hint("For scripts there is `dragoman run \"prompt\"`."),
        );
        return ExitCode::from(2);
    }
    let environment = Environment::from_process();
    logging::start_quietly(&environment, level);
    let Some(workspace) = workspaces::current_folder().into_iter().next() else {
        return failed(&Failure::user("The current folder does not exist any more. Change to another one."));
    };
    let options = ChatOptions {
        workspace,
        palette: palette(arguments.theme, &environment),
        model: arguments.model,
        behavior: arguments.behavior,
        session: arguments.session.map(SessionId::new),
        newest: arguments.newest,
        prompt: Some(arguments.prompt.join(" ")).filter(|prompt| !prompt.trim().is_empty()),
    };
    let mut wrong_usage = false;
    let ran = lifetime::run(async {
        let log = logging::file(&environment);
        let services = services(&environment);
        let engine = Workspaces::open(environment)?;
        let chat = terminal::chat(engine.clone(), options, services);
        let ended = until_ended(AssertUnwindSafe(chat).catch_unwind()).await;
        lifetime::shut_down(engine).await;
        match ended {
            None => Ok(()),
            Some(Ok(Ok(None))) => Ok(()),
            Some(Ok(Ok(Some(session)))) => {
                let text = format!("To continue this chat: dragoman chat --session {session}\n");
                super::print_bytes(text.as_bytes());
                Ok(())
            }
            Some(Ok(Err(failure))) => {
                wrong_usage = failure.kind == FailureKind::User;
                Err(failure)
            }
            Some(Err(_)) => {
                Err(Failure::internal("Dragoman stopped because of an internal error; the chat is stored.")
                    .hint(format!("See {}. `dragoman chat --continue` continues the chat.", log.display())))
            }
        }
    });
    if wrong_usage { ExitCode::from(2) } else { ran }
}

/// Ends with the chat, or by SIGTERM or SIGHUP. Ignores SIGINT: Ctrl-C is a key of the chat, or belongs to the
/// editor that runs meanwhile.
async fn until_ended<T>(chat: impl Future<Output = T>) -> Option<T> {
    let signal = async {
        while let Ok(signal) = process::shutdown_signal() {
            if signal.await != ShutdownSignal::Interrupt {
                return;
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        ended = chat => Some(ended),
        () = signal => None,
    }
}

/// Honors `NO_COLOR`; `COLORFGBG` reveals a light background, if the terminal sets it.
fn palette(theme: ThemeName, environment: &Environment) -> Palette {
    if environment.var("NO_COLOR").is_some() || environment.var("TERM") == Some("dumb") {
        return Palette::Plain;
    }
    let background = environment.var("COLORFGBG").and_then(|it| it.rsplit(';').next()?.parse::<u8>().ok());
    match theme {
        ThemeName::Dark => Palette::Dark,
        ThemeName::Light => Palette::Light,
        ThemeName::Auto if matches!(background, Some(7 | 15)) => Palette::Light,
        ThemeName::Auto => Palette::Dark,
    }
}

fn services(environment: &Environment) -> TerminalServices {
    let editor = environment.first(&["VISUAL", "EDITOR"]).map_or("vi", |(_, editor)| editor).to_owned();
    TerminalServices {
        edit: Box::new(move |text| edit_text(editor.clone(), text)),
        suspend: Box::new(|| {
            let _ = process::suspend();
        }),
    }
}

/// Opens the text as a file in the user's editor. As with git, the setting may be a shell command.
fn edit_text(editor: String, text: String) -> BoxFuture<'static, Result<String, Failure>> {
    Box::pin(async move {
        let file_error = |error: std::io::Error| {
            Failure::internal(format!("The text cannot be written to a file: {error}."))
        };
        let mut file =
            tempfile::Builder::new().prefix("dragoman-").suffix(".md").tempfile().map_err(file_error)?;
        file.write_all(text.as_bytes()).map_err(file_error)?;
        file.flush().map_err(file_error)?;
        let line = format!("{editor} \"$@\"");
        let path = file.path().to_owned();
        let arguments = ["-c".into(), line.into(), editor.clone().into(), path.clone().into_os_string()];
        let exit = process::foreground("sh", arguments)
            .await
            .map_err(|error| Failure::user(format!("The editor did not start: {error}")))?;
        if !exit.success() {
            return Err(Failure::user(format!("The editor `{editor}` failed; the text is unchanged."))
                .hint("Set VISUAL or EDITOR to an editor that is installed."));
        }
        std::fs::read_to_string(&path).map_err(file_error)
    })
}
