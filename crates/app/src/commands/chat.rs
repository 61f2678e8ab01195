//! `dragoman chat`: the terminal, and what it needs of the world outside: an editor, colors, signals.

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

pub fn run(arguments: ChatArguments, level: Option<Level>) -> ExitCode {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        failed(
            &Failure::user("A chat needs a terminal.")
                .hint("For scripts there is `dragoman run \"prompt\"`."),
        );
        return ExitCode::from(2);
    }
    let environment = Environment::from_process();
    logging::start_quietly(&environment, level);
    let Some(workspace) = workspaces::here().into_iter().next() else {
        return failed(&Failure::user("The current folder is gone. Change to another one."));
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
    let mut usage = false;
    let ran = lifetime::run(async {
        let log = logging::file(&environment);
        let outside = outside(&environment);
        let engine = Workspaces::open(environment)?;
        let chat = terminal::chat(engine.clone(), options, outside);
        let ended = until_ended(AssertUnwindSafe(chat).catch_unwind()).await;
        lifetime::end(engine).await;
        match ended {
            None => Ok(()),
            Some(Ok(Ok(None))) => Ok(()),
            Some(Ok(Ok(Some(session)))) => {
                let text = format!("To go on with this chat: dragoman chat --session {session}\n");
                super::print_bytes(text.as_bytes());
                Ok(())
            }
            Some(Ok(Err(failure))) => {
                usage = failure.kind == FailureKind::User;
                Err(failure)
            }
            Some(Err(_)) => {
                Err(Failure::internal("Dragoman broke off because of a mistake of ours; the chat is kept.")
                    .hint(format!("{} says more. `dragoman chat --continue` goes on.", log.display())))
            }
        }
    });
    if usage { ExitCode::from(2) } else { ran }
}

/// Ends by itself, or by SIGTERM or SIGHUP. SIGINT is not ours: Ctrl-C is a key here, and in an editor that runs
/// meanwhile it is the editor's.
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

/// `NO_COLOR` and `TERM=dumb` are honoured; `COLORFGBG` tells a light background, where a terminal sets it.
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

fn outside(environment: &Environment) -> TerminalServices {
    let editor = environment.first(&["VISUAL", "EDITOR"]).map_or("vi", |(_, editor)| editor).to_owned();
    TerminalServices {
        edit: Box::new(move |text| edit(editor.clone(), text)),
        suspend: Box::new(|| {
            let _ = process::suspend();
        }),
    }
}

/// The text as a file in the user's editor. As with git, the setting may be a line for the shell.
fn edit(editor: String, text: String) -> BoxFuture<'static, Result<String, Failure>> {
    Box::pin(async move {
        let told = |error: std::io::Error| {
            Failure::internal(format!("The text cannot be put into a file: {error}."))
        };
        let mut file = tempfile::Builder::new().prefix("dragoman-").suffix(".md").tempfile().map_err(told)?;
        file.write_all(text.as_bytes()).map_err(told)?;
        file.flush().map_err(told)?;
        let line = format!("{editor} \"$@\"");
        let path = file.path().to_owned();
        let arguments = ["-c".into(), line.into(), editor.clone().into(), path.clone().into_os_string()];
        let exit = process::foreground("sh", arguments)
            .await
            .map_err(|error| Failure::user(format!("The editor did not start: {error}")))?;
        if !exit.success() {
            return Err(Failure::user(format!("The editor `{editor}` failed; the text is as it was."))
                .hint("Set VISUAL or EDITOR to an editor that is installed."));
        }
        std::fs::read_to_string(&path).map_err(told)
    })
}
