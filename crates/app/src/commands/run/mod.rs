//! `dragoman run`: one turn for scripts.

mod arguments;
mod input;
mod overrides;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use arguments::{HELP, RunArguments};
use config::Environment;
use domain::command::Context;
use domain::{CancellationToken, Failure, SessionId};
pub(crate) use input::MAX_IMAGE_BYTES;
use serde_json::Value;
use terminal::{Exit, Finished, OutputFormat, RunOptions};

use self::arguments::{InputFormat, Output};
use super::failed;
use crate::cli::Level;
use crate::lifetime;
use crate::logging;
use crate::output::{self, note};
use crate::working_folder;
use crate::workspaces::{self, EngineOptions, Workspaces};

pub(crate) fn run(arguments: RunArguments, level: Option<Level>) -> ExitCode {
    let format = format(arguments.output, arguments.json);
    let usage = |failure: &Failure| {
        failed(failure);
        terminal::print_failure(format, Exit::Usage, failure, &mut output::stdout());
        ExitCode::from(Exit::Usage as u8)
    };
    if let Err(failure) = working_folder::change_folder(arguments.cwd.as_deref()) {
        return usage(&failure);
    }
    let output_file = arguments.output_file.clone();
    let is_stream = arguments.input == InputFormat::StreamJson;
    let (mut options, mut engine_options) = match options(arguments) {
        Ok(options) => options,
        Err(failure) => return usage(&failure),
    };
    let environment = Environment::from_process();
    if !engine_options.is_ephemeral {
        logging::start_for_command(&environment, level);
    }
    let mut exit = Exit::Failed;
    let ran = lifetime::run(async {
        if options.model.is_none() && options.session.is_none() && !options.newest {
            options.model =
                workspaces::discover_local_model(&environment, &options.roots, &mut engine_options).await;
            if options.model.is_none() && !options.quiet {
                super::models::offer(&environment, &engine_options).await;
            }
        }
        engine_options.model_chosen = options.model.is_some();
        let (quiet, stop) = (options.quiet, options.stop.clone());
        let engine = Workspaces::start_engine(environment, engine_options)?;
        if let Some(notice) = engine.notice.as_ref().filter(|_| !quiet) {
            note(&format!("dragoman: {notice}"));
        }
        let store = engine.store.clone();
        options.trouble = Some(Arc::new(move || store.trouble()));
        let (mut out, mut err) = (output::stdout(), std::io::stderr());
        let turn = answer(engine.engine.clone(), options, is_stream, &mut out, &mut err);
        let finished = lifetime::stop_on_signal(turn, &stop).await;
        lifetime::shut_down(engine.engine).await;
        let Some(Finished { exit: ended, answer }) = finished else { return Ok(()) };
        exit = ended;
        match output_file {
            Some(path) => write_answer(&path, &answer),
            None => Ok(()),
        }
    });
    if ran == ExitCode::SUCCESS { ExitCode::from(exit as u8) } else { ran }
}

/// One turn, or a conversation on stdin.
async fn answer(
    engine: domain::link::Engine,
    options: RunOptions,
    is_stream: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Finished {
    match is_stream {
        true => terminal::converse(engine, options, input::lines(), out, err).await,
        false => terminal::run(engine, options, out, err).await,
    }
}

fn timeout(seconds: f64) -> Result<Duration, Failure> {
    if seconds.is_finite() && seconds > 0.0 {
        return Ok(Duration::from_secs_f64(seconds.min(1e7)));
    }
    Err(Failure::user("--timeout takes a number of seconds above 0."))
}

fn options(arguments: RunArguments) -> Result<(RunOptions, EngineOptions), Failure> {
    check(&arguments)?;
    let timeout = arguments.timeout.map(timeout).transpose()?;
    let schema = arguments.output_schema.as_deref().map(schema).transpose()?;
    let roots = working_folder::roots(&arguments.add_dir)?;
    let mut contexts = arguments.files.iter().map(input::attachment).collect::<Result<Vec<_>, _>>()?;
    let prompt = read_prompt(&arguments, timeout, &roots, &mut contexts)?;
    let engine_options = EngineOptions {
        overrides: overrides::overrides(
            &arguments.settings,
            &arguments.allow,
            &arguments.deny,
            arguments.mcp_config.as_deref(),
        )?,
        system_prompt: arguments.system_prompt,
        appended_prompt: arguments.append_system_prompt,
        retries: arguments.retries,
        is_ephemeral: arguments.ephemeral,
        ..EngineOptions::default()
    };
    let options = RunOptions {
        prompt,
        contexts,
        roots,
        model: arguments.model,
        behavior: arguments.behavior,
        effort: arguments.effort,
        fork: arguments.fork,
        failover: arguments.failover,
        session: arguments.session.map(SessionId::new),
        task: arguments.task.map(SessionId::new),
        newest: arguments.newest,
        grants: crate::approve::join_grants(&arguments.approve),
        max_cost: arguments.max_cost,
        max_steps: arguments.max_steps,
        until: arguments.until,
        timeout,
        stop: CancellationToken::new(),
        format: format(arguments.output, arguments.json),
        quiet: arguments.quiet,
        schema,
        trouble: None,
        to_terminal: output::is_terminal(),
    };
    Ok((options, engine_options))
}

/// The prompt; the files that it names are added to `contexts`.
fn read_prompt(
    arguments: &RunArguments,
    timeout: Option<Duration>,
    roots: &[PathBuf],
    contexts: &mut Vec<Context>,
) -> Result<String, Failure> {
    let is_stream = arguments.input == InputFormat::StreamJson;
    let input::Input { mut prompt, written } = match is_stream {
        // Stdin holds the conversation.
        true => input::Input { prompt: arguments.prompt.join(" "), written: arguments.prompt.join(" ") },
        false => input::prompt(&arguments.prompt, timeout)?,
    };
    match &arguments.task {
        None => {
            let root = roots.first().map_or(Path::new("."), PathBuf::as_path);
            contexts.extend(input::mentioned(&written, root));
            for name in input::missing(&written, root).iter().filter(|_| !arguments.quiet) {
                let name = domain::visible_text(name);
                note(&format!("dragoman: There is no {name} here, so it is not added."));
            }
        }
        Some(_) => prompt = input::text_alone(prompt),
    }
    Ok(prompt)
}

fn check(arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(folder) = arguments.output_file.as_deref().map(folder_of).filter(|folder| !folder.is_dir()) {
        return Err(Failure::user(format!("{} (-o) is not a folder.", folder.display())));
    }
    if arguments.fork && arguments.session.is_none() && !arguments.newest {
        return Err(Failure::user("--fork needs a chat.").hint("Add --continue or --session ID."));
    }
    if arguments.input == InputFormat::StreamJson && arguments.output_schema.is_some() {
        return Err(Failure::user("--output-schema does not go together with --input stream-json."));
    }
    if arguments.max_cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(Failure::user("--max-cost takes a number of dollars."));
    }
    Ok(())
}

fn format(output: Output, is_json: bool) -> OutputFormat {
    match output {
        _ if is_json => OutputFormat::Events,
        Output::Text => OutputFormat::Text,
        Output::Events => OutputFormat::Events,
        Output::Json => OutputFormat::Summary,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces the file as a whole.
fn write_answer(path: &PathBuf, answer: &str) -> Result<(), Failure> {
    let folder = folder_of(path);
    let newline = if answer.is_empty() || answer.ends_with('\n') { "" } else { "\n" };
    let text = format!("{answer}{newline}");
    let written = if path.exists() && !path.is_file() {
        // A device or a pipe is written to, not replaced.
        std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
    } else {
        let mut builder = tempfile::Builder::new();
        if let Some(permissions) = platform::permissions_for_all() {
            builder.permissions(permissions);
        }
        builder.tempfile_in(folder).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.persist(path).map(drop).map_err(|error| error.error)
        })
    };
    written.map_err(|error| Failure::user(format!("{} (-o) cannot be written: {error}.", path.display())))
}

fn schema(path: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("{} cannot be read: {error}.", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::user(format!("{} is not JSON: {error}.", path.display())))
}

/// The files and folders of the workspace that `@path` in a text names.
pub(crate) fn mentioned_within(text: &str, roots: &[PathBuf]) -> Vec<Context> {
    let folders: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let within = |context: &Context| {
        let (Context::File { path, .. } | Context::Directory { path }) = context else { return false };
        path.canonicalize().is_ok_and(|real| folders.iter().any(|folder| real.starts_with(folder)))
    };
    let mentioned = roots.first().map(|root| input::mentioned(text, root)).unwrap_or_default();
    mentioned.into_iter().filter(within).collect()
}

/// The bytes of an image as an attachment of a prompt.
pub(crate) fn image_of(bytes: &[u8]) -> Option<Context> {
    input::image(bytes)
}

/// An image file as an attachment of a prompt.
pub(crate) fn image(path: &PathBuf) -> Result<Context, Failure> {
    let context = input::attachment(path)?;
    if matches!(context, Context::Image { .. }) {
        return Ok(context);
    }
    Err(Failure::user(format!("{} is no image.", path.display())))
}
