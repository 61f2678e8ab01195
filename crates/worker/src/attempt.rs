//! One worker's attempt at a task: `dragoman run` in a process of its own, until the chat of the task has its outcome.
//!
//! Invariant: the journal decides what is done: a task whose turn has ended is not run again.

use std::time::{Duration, Instant};

use domain::event::Outcome;
use domain::{CancellationToken, Failure};
use process::sandbox::launch::own_program;
use process::{End, OutputLimit, Spawn};
use serde_json::Value;
use store_postgres::{Task, TaskState};

use super::checkout::{Checkout, Origin};
use super::outcome::Ended;
use super::policy::{self, Limits};
use super::progress::Progress;
use super::worker::{Worker, chat_of, pause};

/// A run that ends without an outcome in the journal is repeated for so long.
const REPEAT_FOR: Duration = Duration::from_secs(90);
const REPEAT_PAUSE: Duration = Duration::from_secs(2);
/// A run that is told to end writes the end of its turn first.
const GRACE: Duration = Duration::from_secs(4);
/// Beyond its own timeout.
const OVERTIME: Duration = Duration::from_secs(60);
const OUTPUT_BYTES: usize = 4 << 20;

/// How one run ended.
struct RunOutcome {
    exit: i32,
    outcome: String,
    message: String,
}

/// `None`: it was stopped, or the store is away. `deadline` is the one of this worker for the task.
pub(super) async fn run(
    worker: &Worker,
    task: &Task,
    checkout: &Checkout,
    deadline: Instant,
    halt: &CancellationToken,
) -> Option<Ended> {
    let limits = Limits::parse(&task.limits);
    let began = Instant::now();
    loop {
        let progress = progress(worker, task, halt).await?;
        if let Some(outcome) = progress.final_outcome() {
            return Some(ended(outcome).with(&progress));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(Ended::late().with(&progress));
        }
        let spent = progress.cost.unwrap_or(0.0);
        let arguments = match policy::arguments(&worker.settings, &limits, spent, left.as_secs_f64()) {
            Ok(arguments) => arguments,
            Err(problem) => return Some(Ended::failed("spent", problem).with(&progress)),
        };
        let told = run_once(task, checkout, &progress, arguments, left + OVERTIME, halt).await;
        if halt.is_cancelled() {
            return None;
        }
        let progress = self::progress(worker, task, halt).await?;
        let told = match told {
            Ok(told) => told,
            Err(problem) => RunOutcome { exit: 1, outcome: "failed".to_owned(), message: problem },
        };
        match (told.exit, progress.final_outcome()) {
            (0 | 1, Some(outcome)) => return Some(ended(outcome).with(&progress)),
            (1, None) if began.elapsed() < REPEAT_FOR => {
                tracing::warn!(
                    task = task.id.as_str(),
                    reason = told.message,
                    "a run ended early and is repeated"
                );
                pause(REPEAT_PAUSE, halt).await;
            }
            _ => return Some(Ended::failed(&told.outcome, told.message).with(&progress)),
        }
        if halt.is_cancelled() {
            return None;
        }
    }
}

/// Reads the journal, and waits for a store that is away.
async fn progress(worker: &Worker, task: &Task, halt: &CancellationToken) -> Option<Progress> {
    loop {
        match Progress::read(worker.store.as_ref(), &chat_of(&task.id)).await {
            Ok(progress) => return Some(progress),
            Err(failure) => {
                tracing::warn!(task = task.id.as_str(), %failure, "the chat of a task cannot be read");
                pause(REPEAT_PAUSE, halt).await;
            }
        }
        if halt.is_cancelled() {
            return None;
        }
    }
}

async fn run_once(
    task: &Task,
    checkout: &Checkout,
    progress: &Progress,
    arguments: Vec<String>,
    time: Duration,
    halt: &CancellationToken,
) -> Result<RunOutcome, String> {
    let prompt = if progress.has_begun { takeover(checkout) } else { task.prompt.clone() };
    let finished = Spawn::new(own_program())
        .args(["run", "--output", "json", "--quiet", "--task", chat_of(&task.id).as_str()])
        .args(arguments)
        .directory(&checkout.folder)
        .input(prompt)
        .deadline(time)
        .grace(GRACE)
        .limit(OutputLimit { head: OUTPUT_BYTES, tail: 0 })
        .run(halt)
        .await
        .map_err(|error| error.to_string())?;
    let summary: Value = serde_json::from_slice(&finished.stdout.head).unwrap_or(Value::Null);
    let said = finished.stderr.text();
    let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("The run ended early.");
    let message = summary["message"].as_str().unwrap_or(said).to_owned();
    let outcome = summary["outcome"].as_str().unwrap_or("failed").to_owned();
    let exit = match finished.end {
        End::Exited(code) => code,
        End::Signalled(_) | End::Stopped => 1,
        End::DeadlinePassed => 4,
    };
    Ok(RunOutcome { exit, outcome, message })
}

/// What the model is told that goes on with the work of another one.
fn takeover(checkout: &Checkout) -> String {
    let folder = match checkout.origin {
        Origin::Left => "The files of the project are as they were left.",
        Origin::Restored => {
            "The files of the project were restored as they were some seconds before; look at what you changed last."
        }
        Origin::New => "The project is a new checkout: changes of files that were made above are not in it.",
    };
    format!(
        "The worker of this task was lost, and you go on with the task. Calls above that have a result are done: do not \
         repeat them. {folder}"
    )
}

fn ended(outcome: &Outcome) -> Ended {
    let failed = |name: &str, message: String| Ended::failed(name, message);
    match outcome {
        Outcome::Done => Ended { state: TaskState::Done, message: None, ..failed("done", String::new()) },
        Outcome::MaxSteps => failed("maxSteps", "The step limit was reached.".to_owned()),
        Outcome::Repeating => failed("repeating", "The model repeated the same call.".to_owned()),
        Outcome::MaxTokens => failed("maxTokens", "The model reached its output limit.".to_owned()),
        Outcome::Refused { reason } => failed("refused", reason.clone()),
        Outcome::Failed { failure } => failed("failed", text_of(failure)),
        Outcome::Stopped | Outcome::Interrupted => failed("stopped", "Stopped.".to_owned()),
    }
}

fn text_of(failure: &Failure) -> String {
    failure.to_string()
}
