//! `dragoman chat`: the terminal front-end with its services: an editor, colors, signals.

use std::io::{IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use config::{Environment, Inputs, NewValue, SettingsChange, SettingsFile};
use domain::command::Context;
use domain::{BoxFuture, CancellationToken, Failure, FailureKind, SessionId};
use futures_util::FutureExt;
use process::{End, ShutdownSignal, Spawn};
use terminal::{Bindings, ChatOptions, Intro, Notify, StatusLine, TerminalServices};

use super::{chat_themes, explain_permission, failed, notes};
use crate::cli::{ChatArguments, Level};
use crate::clipboard::Clipboard;
use crate::lifetime;
use crate::logging;
use crate::places::PlaceReport;
use crate::project_rules::{AddedRules, OwnRules};
use crate::working_folder;
use crate::workspaces::{self, EngineOptions, Workspaces};

/// A shell command of the user may take this long.
const SHELL_TIMEOUT: Duration = Duration::from_secs(300);

/// The user's status line and notifications may take this long.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: ChatArguments, level: Option<Level>) -> ExitCode {
    let environment = Environment::from_process();
    let mut options = match options(arguments, &environment) {
        Ok(options) => options,
        Err(failure) => {
            failed(&failure);
            return ExitCode::from(2);
        }
    };
    logging::start_quietly(&environment, level);
    let mut wrong_usage = false;
    let ran = lifetime::run(async {
        let log = logging::file(&environment);
        let added_rules = AddedRules::default();
        let services = services(&environment, &options.roots, &added_rules);
        if options.model.is_none() && options.session.is_none() && !options.newest {
            let mut unused = EngineOptions::default();
            options.model = workspaces::discover_local_model(&environment, &options.roots, &mut unused).await;
            if options.model.is_none() {
                super::models::offer(&environment, &unused).await;
            }
        }
        let store = crate::stores::open(&environment)?;
        let engine =
            Workspaces::open_on(store, environment, EngineOptions { added_rules, ..Default::default() })?;
        let chat = terminal::chat(engine.clone(), options, services);
        let ended = until_ended(AssertUnwindSafe(chat).catch_unwind()).await;
        lifetime::shut_down(engine).await;
        match ended {
            None | Some(Ok(Ok(None))) => Ok(()),
            Some(Ok(Ok(Some(session)))) => {
                let text = format!("To continue this chat: dragoman chat --session {session}\n");
                crate::output::print(text)
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

fn options(arguments: ChatArguments, environment: &Environment) -> Result<ChatOptions, Failure> {
    if !std::io::stdin().is_terminal() || !crate::output::is_terminal() {
        return Err(
            Failure::user("A chat needs a terminal.").hint("For scripts there is `dragoman run \"prompt\"`.")
        );
    }
    if environment.var("TERM") == Some("dumb") {
        return Err(Failure::user("This terminal (TERM=dumb) cannot show a chat.")
            .hint("Set TERM to your terminal's type, or use `dragoman run \"prompt\"`."));
    }
    working_folder::change_folder(arguments.cwd.as_deref())?;
    let roots = working_folder::roots(&arguments.add_dir)?;
    let inputs = Inputs { workspace_roots: roots.clone(), ..Inputs::default() };
    let settings = config::resolve(environment, &inputs).settings.chat;
    let (keys, wrong) = Bindings::read(&settings.keys);
    if !wrong.is_empty() {
        return Err(Failure::user(format!("These keys are not understood: {}.", wrong.join(", ")))
            .hint("`dragoman docs chat` shows how keys are written."));
    }
    let wanted = arguments.theme.as_deref().unwrap_or(&settings.theme);
    let (theme, themes) = chat_themes::choose(wanted, environment)?;
    let screen_reader = arguments.screen_reader || settings.screen_reader;
    Ok(ChatOptions {
        roots,
        theme,
        themes,
        keys,
        vi_mode: settings.vi_mode,
        inline: arguments.inline || settings.inline || screen_reader,
        mouse: settings.mouse,
        status_line: settings.status_line.as_deref().and_then(StatusLine::read),
        reduced_motion: settings.reduced_motion,
        screen_reader,
        shows_progress: shows_progress(environment),
        notify: Notify { by: settings.notify, always: settings.notify_always },
        effort: arguments.effort,
        model: arguments.model,
        behavior: arguments.behavior,
        session: arguments.session.map(SessionId::new),
        newest: arguments.newest,
        prompt: Some(arguments.prompt.join(" ")).filter(|prompt| !prompt.trim().is_empty()),
    })
}

/// Terminals that show progress beside their title (OSC 9;4). Others take the code for a notification.
fn shows_progress(environment: &Environment) -> bool {
    let program = environment.var("TERM_PROGRAM").unwrap_or_default();
    environment.var("WT_SESSION").is_some()
        || environment.var("ConEmuPID").is_some()
        || ["ghostty", "WezTerm"].contains(&program)
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

/// The first screen: version, folder, branch and the files with instructions.
fn intro(environment: &Environment, roots: &[PathBuf]) -> Intro {
    let shown = |path: &Path| match path.strip_prefix(environment.home()) {
        Ok(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        Ok(_) | Err(_) => path.display().to_string(),
    };
    let inputs = config::Inputs { workspace_roots: roots.to_vec(), ..config::Inputs::default() };
    let report = PlaceReport::new(environment, &config::resolve(environment, &inputs), roots);
    let [places, left_out] = report.others(shown);
    Intro {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folders: roots.iter().map(|root| shown(root)).collect(),
        branch: roots.first().and_then(|root| crate::git::branch(root)),
        instructions: report.instructions.iter().map(|file| shown(file)).collect(),
        places,
        left_out,
    }
}

fn services(environment: &Environment, roots: &[PathBuf], added_rules: &AddedRules) -> TerminalServices {
    let editor = environment.first(&["VISUAL", "EDITOR"]).map_or("vi", |(_, editor)| editor).to_owned();
    let shell = environment.var("SHELL").unwrap_or("sh").to_owned();
    TerminalServices {
        edit: Box::new(move |text| edit_text(editor.clone(), text)),
        shell: Box::new(move |command| run_shell(shell.clone(), command)),
        intro: Box::new(intro_of(environment, roots)),
        add_instruction: Box::new(notes::of(roots)),
        export: Box::new(|path, text| export(&path, &text)),
        image: Box::new(|path| super::run::image(&path)),
        mentioned: Box::new(mentioned_in(roots)),
        clipboard_image: Box::new(clipboard_of(environment)),
        explain: Box::new(|call| Box::pin(explain_permission::explain_call(call))),
        status: Box::new(run_status),
        notify: Box::new(notifier(environment, roots)),
        folder: Box::new(folder_of(environment)),
        save_setting: Box::new(saver(environment)),
        rules: Box::new(OwnRules {
            environment: environment.clone(),
            roots: roots.to_vec(),
            added: added_rules.clone(),
        }),
        suspend: Box::new(|| {
            let _ = process::suspend();
        }),
    }
}

fn intro_of(environment: &Environment, roots: &[PathBuf]) -> impl Fn() -> Intro + Send + Sync + use<> {
    let (environment, roots) = (environment.clone(), roots.to_vec());
    move || intro(&environment, &roots)
}

/// Only files of the workspace: the text may be pasted.
fn mentioned_in(roots: &[PathBuf]) -> impl Fn(&str) -> Vec<Context> + Send + Sync + use<> {
    let roots = roots.to_vec();
    move |text| super::run::mentioned_within(text, &roots)
}

fn clipboard_of(
    environment: &Environment,
) -> impl Fn() -> BoxFuture<'static, Result<Context, Failure>> + Send + Sync + use<> {
    let clipboard = Clipboard::of(environment);
    move || Box::pin(clipboard.image())
}

/// Runs `!command` of the user, with the rights and the environment of the user.
fn run_shell(shell: String, command: String) -> BoxFuture<'static, Result<String, Failure>> {
    Box::pin(async move {
        let spawn = Spawn::new(&shell).args(["-c", command.as_str()]).deadline(SHELL_TIMEOUT);
        let finished = spawn
            .run(&CancellationToken::new())
            .await
            .map_err(|error| Failure::user(format!("The command did not start: {error}")))?;
        let mut text = finished.stdout.text();
        text.push_str(&finished.stderr.text());
        if !finished.success() {
            text.push_str(&match finished.end {
                End::Exited(code) => format!("\n(exit code {code})"),
                End::Signalled(signal) => format!("\n(ended by signal {signal})"),
                End::DeadlinePassed => "\n(stopped: it took too long)".to_owned(),
                End::Stopped => "\n(stopped)".to_owned(),
            });
        }
        Ok(text)
    })
}

/// The user's own status line: the values are on its input, its first line is shown.
fn run_status(command: String, values: String) -> BoxFuture<'static, Result<String, Failure>> {
    Box::pin(async move {
        let spawn = Spawn::shell(&command).input(values.into_bytes()).deadline(STATUS_TIMEOUT);
        let finished = spawn
            .run(&CancellationToken::new())
            .await
            .map_err(|error| Failure::user(format!("The status line did not start: {error}")))?;
        Ok(finished.stdout.text())
    })
}

/// Notifications by other programs: the desktop's, where there is a session bus, and the user's own commands.
fn notifier(environment: &Environment, roots: &[PathBuf]) -> impl Fn(&'static str) + Send + Sync + use<> {
    let inputs = Inputs { workspace_roots: roots.to_vec(), ..Inputs::default() };
    let ways = config::resolve(environment, &inputs).settings.chat.notify;
    let has_bus = environment.var("DBUS_SESSION_BUS_ADDRESS").is_some();
    move |text| {
        for way in &ways {
            let spawn = match way.strip_prefix('!') {
                Some(command) => Spawn::shell(format!("{command} \"$1\"")).arg("sh").arg(text),
                None if way == "desktop" && has_bus => Spawn::new("notify-send").args(["Dragoman", text]),
                None => continue,
            };
            // Nobody waits for it, and its end does not matter.
            tokio::spawn(async move {
                let _ = spawn.deadline(STATUS_TIMEOUT).run(&CancellationToken::new()).await;
            });
        }
    }
}

fn folder_of(environment: &Environment) -> impl Fn(&str) -> Result<PathBuf, Failure> + Send + Sync + use<> {
    let environment = environment.clone();
    move |text| {
        let path = environment.expand_home(text);
        let folder = path.canonicalize().ok().filter(|path| path.is_dir());
        folder.ok_or_else(|| Failure::user(format!("There is no folder {}.", path.display())))
    }
}

/// Writes a setting into the user's own file.
fn saver(
    environment: &Environment,
) -> impl Fn(&[&str], serde_json::Value) -> Result<String, Failure> + Send + Sync + use<> {
    let environment = environment.clone();
    move |keys, value| {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let change = SettingsChange { keys, value: NewValue::Set(value) };
        let saved = SettingsFile::of_user(&environment).change(&[change])?;
        Ok(saved.path.display().to_string())
    }
}

/// A new file: an existing one is never replaced.
fn export(path: &str, text: &str) -> Result<String, Failure> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| Failure::user(format!("{path} cannot be written: {error}.")))?;
    file.write_all(text.as_bytes())
        .map_err(|error| Failure::user(format!("{path} cannot be written: {error}.")))?;
    Ok(path.to_owned())
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
