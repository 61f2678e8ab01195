//! `dragoman run`: one turn for scripts.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use config::Environment;
use domain::{Failure, SessionId};
use serde_json::Value;
use terminal::{Exit, RunOptions};

use super::failed;
use crate::cli::{Level, RunArguments};
use crate::lifetime;
use crate::logging;
use crate::workspaces::{self, Workspaces};

/// A prompt from stdin is cut off here.
const MAX_PROMPT_BYTES: u64 = 16 << 20;

pub(crate) fn run(arguments: RunArguments, level: Option<Level>) -> ExitCode {
    let mut options = match options(arguments) {
        Ok(options) => options,
        Err(failure) => {
            failed(&failure);
            return ExitCode::from(Exit::Usage as u8);
        }
    };
    let environment = Environment::from_process();
    logging::start(&environment, level);
    let mut exit = Exit::Failed;
    let ran = lifetime::run(async {
        if options.model.is_none() && options.session.is_none() && !options.newest {
            options.model = workspaces::discover_local_model(&environment).await;
        }
        let engine = Workspaces::open_for(environment, options.model.is_some())?;
        let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
        let turn = terminal::run(engine.clone(), options, &mut out, &mut err);
        exit = lifetime::until_signal(turn).await.unwrap_or(Exit::Failed);
        lifetime::shut_down(engine).await;
        Ok(())
    });
    if ran == ExitCode::SUCCESS { ExitCode::from(exit as u8) } else { ran }
}

fn options(arguments: RunArguments) -> Result<RunOptions, Failure> {
    let prompt = prompt(&arguments.prompt)?;
    let schema = arguments.output_schema.as_deref().map(schema).transpose()?;
    let timeout = match arguments.timeout {
        Some(seconds) if seconds.is_finite() && seconds > 0.0 => {
            Some(Duration::from_secs_f64(seconds.min(1e7)))
        }
        Some(_) => return Err(Failure::user("--timeout takes a number of seconds above 0.")),
        None => None,
    };
    if arguments.max_cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(Failure::user("--max-cost takes a number of dollars."));
    }
    let workspace = workspaces::current_folder().into_iter().next();
    Ok(RunOptions {
        prompt,
        workspace: workspace.ok_or_else(|| {
            Failure::user("The current folder does not exist any more. Change to another one.")
        })?,
        model: arguments.model,
        behavior: arguments.behavior,
        failover: arguments.failover,
        session: arguments.session.map(SessionId::new),
        newest: arguments.newest,
        grants: arguments.approve.into(),
        max_cost: arguments.max_cost,
        max_steps: arguments.max_steps,
        timeout,
        json: arguments.json,
        schema,
        to_terminal: std::io::stdout().is_terminal(),
    })
}

/// The words on the command line, and what stdin holds where it is not a terminal and no words were given.
fn prompt(words: &[String]) -> Result<String, Failure> {
    let prompt = if !words.is_empty() {
        words.join(" ")
    } else if std::io::stdin().is_terminal() {
        String::new()
    } else {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_PROMPT_BYTES).read_to_string(&mut text);
        read.map_err(|error| Failure::user(format!("stdin cannot be read as text: {error}.")))?;
        text
    };
    if prompt.trim().is_empty() {
        return Err(Failure::user("There is no prompt.").hint("Give it as an argument or on stdin."));
    }
    Ok(prompt)
}

fn schema(path: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("{} cannot be read: {error}.", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::user(format!("{} is not JSON: {error}.", path.display())))
}
