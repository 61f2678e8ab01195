//! Runs one turn for scripts and CI: streams the answer to one writer and progress to another, returns an exit code.
//!
//! Invariants: it always ends; it never asks; only the answer (or JSON) reaches the first writer; an answer that could
//! not be written is a failure.

mod answer_schema;
mod events;
mod opening;
mod options;
mod printer;
mod stream;

use std::io::Write;
use std::time::Duration;

use domain::command::{AcceptedStatus, TurnLimits, UserPrompt, WorkspaceSpec};
use domain::event::{EventBody, Fact};
use domain::link::{Commands, Engine};
use domain::{
    Abilities, CancellationToken, Command, Event, Failure, FailureKind, Follower, Link, Outcome, SessionId,
};
use serde_json::Value;
use tokio::time::Instant;

pub use events::EVENT_VERSION;
use events::{RunEvent, Summary};
use opening::{
    check_command, check_flags, delete_session, find_session, open_session, prompt_server, wait_for_servers,
};
pub use options::{OutputFormat, RunOptions, TroubleSource};
use printer::{OutputState, Printer};
pub use stream::converse;

/// The result of a run as an exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NeedsApproval = 3,
    Spent = 4,
}

/// The end of a run.
pub struct Finished {
    pub exit: Exit,
    /// The final text of the answer.
    pub answer: String,
}

/// How long a stopped turn may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The deadline without `--timeout`.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

pub async fn run(engine: Engine, options: RunOptions, out: &mut dyn Write, err: &mut dyn Write) -> Finished {
    let RunOptions { format, to_terminal, quiet, .. } = options;
    let hold_answer = options.schema.is_some() && format == OutputFormat::Text;
    let mut printer = Printer { format, to_terminal, hold_answer, quiet, out, err, write_error: None };
    let abilities = Abilities { client: "terminal".into(), grants: options.grants, ..Abilities::default() };
    let deadline = Instant::now() + options.timeout.unwrap_or(NO_TIMEOUT);
    let stop = options.stop.clone();
    let trouble = options.trouble.clone();
    let started = async {
        options.schema.as_ref().map_or(Ok(()), answer_schema::check_schema)?;
        let link = engine.attach(abilities).await?;
        open_and_prompt(link, options, deadline).await
    };
    let started = tokio::select! {
        started = tokio::time::timeout_at(deadline, started) => started,
        () = stop.cancelled() => Ok(Err(Failure::internal("Stopped."))),
    };
    let (exit, failure) = match started {
        Ok(Ok(mut run)) => return run.follow(&mut printer).await,
        Ok(Err(failure)) if failure.kind == FailureKind::User => (Exit::Usage, failure),
        Ok(Err(failure)) => (Exit::Failed, failure),
        Err(_) => (Exit::Spent, Failure::user(time_is_up(trouble.as_ref()))),
    };
    let message = failure.to_string();
    let outcome = match (exit == Exit::Spent, stop.is_cancelled()) {
        (true, _) => "timeout",
        (false, true) => "stopped",
        (false, false) => "failed",
    };
    printer.never_started(outcome, exit, &message);
    printer.message(&message);
    Finished { exit, answer: String::new() }
}

/// The end by `--timeout`, with the reason where something other than the model was waited for.
fn time_is_up(trouble: Option<&TroubleSource>) -> String {
    let reason = trouble.and_then(|trouble| trouble());
    reason.map_or_else(|| "The time is up.".to_owned(), |reason| format!("The time is up. {reason}"))
}

/// Tells a program that reads stdout why the run did not start.
pub fn print_failure(format: OutputFormat, exit: Exit, failure: &Failure, out: &mut dyn Write) {
    let err = &mut std::io::sink();
    let (to_terminal, hold_answer, quiet, write_error) = (false, false, true, None);
    let mut printer = Printer { format, to_terminal, hold_answer, quiet, out, err, write_error };
    printer.never_started("failed", exit, &failure.to_string());
}

/// Opens or loads the chat and sends the prompt.
async fn open_and_prompt(link: Link, options: RunOptions, deadline: Instant) -> Result<Run, Failure> {
    let commands = link.commands.clone();
    let workspace = WorkspaceSpec { roots: options.roots.clone(), options: None };
    let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
    let mut notices: Vec<String> = catalog.notices.iter().map(|notice| notice.text.clone()).collect();
    check_flags(&notices)?;
    notices.extend(wait_for_servers(&commands, prompt_server(&options.prompt)).await?);
    check_command(&commands, &options.prompt).await?;
    let change = options.settings();
    let existing = find_session(&commands, &options).await?;
    let is_new = (existing.is_none() || options.fork) && options.task.is_none();
    let info = open_session(&commands, existing, options.fork, options.task.clone(), change.clone()).await?;
    let mut follower = Follower::new(commands.clone(), link.events);
    follower.follow(info.id.clone(), info.newest);
    let limits = options.limits();
    let (text, contexts) = (options.prompt.clone(), options.contexts.clone());
    let prompt = UserPrompt { text, contexts, change, limits: limits.clone(), ..UserPrompt::default() };
    let session = info.id.clone();
    let accepted = commands.call(|reply| Command::Prompt { session, prompt, reply }).await;
    if is_new && accepted.is_err() {
        delete_session(&commands, info.id.clone()).await;
    }
    let accepted = accepted?;
    Ok(Run {
        link: commands,
        follower,
        schema: options.schema,
        trouble: options.trouble,
        session: info.id,
        model: accepted.model,
        notices,
        deadline,
        stop: options.stop,
        is_new,
        is_answered: accepted.status == AcceptedStatus::Prompting,
        limits,
        cost_before: info.usage.session_cost.unwrap_or(0.0),
        output: OutputState::default(),
    })
}

struct Run {
    link: Commands,
    follower: Follower,
    schema: Option<Value>,
    trouble: Option<TroubleSource>,
    session: SessionId,
    model: String,
    notices: Vec<String>,
    deadline: Instant,
    stop: CancellationToken,
    is_new: bool,
    /// A model answers the prompt. A new chat without an answer is deleted.
    is_answered: bool,
    limits: TurnLimits,
    /// What the chat had cost before, in dollars.
    cost_before: f64,
    output: OutputState,
}

/// The end of a run: exit code, outcome, message and result.
struct RunResult {
    exit: Exit,
    name: &'static str,
    message: Option<String>,
    /// The answer as JSON, if a schema requires it.
    result: Option<Value>,
}

impl Run {
    async fn follow(&mut self, printer: &mut Printer<'_>) -> Finished {
        if printer.is_json() {
            printer.event(&RunEvent::Start {
                version: EVENT_VERSION,
                session: self.session.as_str(),
                model: &self.model,
            });
        }
        for notice in &self.notices {
            printer.notice(notice);
        }
        let outcome = self.follow_answers(printer).await;
        let mut result = self.conclude(outcome);
        self.print_end(&result, printer);
        if let Some(error) = printer.write_error.take() {
            result.exit = Exit::Failed;
            printer.message(&format!("Writing the answer to stdout failed: {error}."));
        }
        if self.is_new && !self.is_answered {
            delete_session(&self.link, self.session.clone()).await;
        }
        Finished { exit: result.exit, answer: std::mem::take(&mut self.output.answer) }
    }

    fn print_end(&self, result: &RunResult, printer: &mut Printer<'_>) {
        let (exit, outcome, message) = (result.exit as u8, result.name, result.message.as_deref());
        let (text, json) = (self.output.answer.as_str(), result.result.as_ref());
        match printer.format {
            OutputFormat::Text if printer.hold_answer => {
                if let Some(json) = json {
                    printer.write(format!("{json}\n").as_bytes());
                }
            }
            OutputFormat::Text if !text.is_empty() && !text.ends_with('\n') => printer.write(b"\n"),
            OutputFormat::Text => {}
            OutputFormat::Events => {
                printer.event(&RunEvent::End { outcome, exit, message, text, result: json });
            }
            OutputFormat::Summary => printer.json(&Summary {
                version: EVENT_VERSION,
                session: self.session.as_str(),
                model: &self.model,
                outcome,
                exit,
                message,
                text,
                result: json,
                usage: &self.output.usage,
            }),
        }
        if let Some(message) = message {
            printer.message(message);
        }
    }

    /// Returns `None` if the time is up or the engine has ended.
    async fn follow_turn(&mut self, printer: &mut Printer<'_>) -> Option<Outcome> {
        let (deadline, stop) = (self.deadline, self.stop.clone());
        loop {
            let event = tokio::select! {
                event = self.follower.next() => event?,
                () = stop.cancelled() => {
                    self.stop(printer).await;
                    return Some(Outcome::Stopped);
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.stop(printer).await;
                    return None;
                }
            };
            if let Some(outcome) = turn_outcome(&event) {
                return Some(outcome);
            }
            self.output.print_event(&event, printer);
            if printer.write_error.is_some() {
                // Nobody can read the rest, so it is not paid for.
                self.stop(printer).await;
                return Some(Outcome::Stopped);
            }
        }
    }

    /// Stops the turn and waits for its end. The text and the cost until then belong to the run.
    async fn stop(&mut self, printer: &mut Printer<'_>) {
        let _ = self.link.send(Command::Cancel { session: self.session.clone() }).await;
        let turn_end = async {
            while let Some(event) = self.follower.next().await {
                if turn_outcome(&event).is_some() {
                    break;
                }
                self.output.print_event(&event, printer);
            }
        };
        let _ = tokio::time::timeout(STOP_TIMEOUT, turn_end).await;
    }

    fn conclude(&mut self, outcome: Option<Outcome>) -> RunResult {
        let failed = |exit, name, message: &str| RunResult {
            exit,
            name,
            message: Some(message.to_owned()),
            result: None,
        };
        match outcome {
            None => failed(Exit::Spent, "timeout", &time_is_up(self.trouble.as_ref())),
            Some(Outcome::Done) => self.conclude_done(),
            Some(Outcome::MaxSteps) => failed(Exit::Spent, "maxSteps", "The step limit was reached."),
            Some(Outcome::Repeating) => {
                failed(Exit::Spent, "repeating", "The model repeated the same call, so the turn was stopped.")
            }
            Some(Outcome::MaxTokens) => {
                failed(Exit::Failed, "maxTokens", "The model reached its output limit.")
            }
            Some(Outcome::Refused { reason }) => failed(Exit::Failed, "refused", &reason),
            Some(Outcome::Stopped | Outcome::Interrupted) => failed(Exit::Failed, "stopped", "Stopped."),
            Some(Outcome::Failed { failure }) if failure.kind == FailureKind::Quota => {
                failed(Exit::Spent, "spent", &failure.to_string())
            }
            // The command of the goal itself could not be approved.
            Some(Outcome::Failed { failure })
                if self.limits.until.is_some() && self.output.approval_missing =>
            {
                failed(Exit::NeedsApproval, "needsApproval", &failure.to_string())
            }
            Some(Outcome::Failed { failure }) if failure.kind == FailureKind::User && !self.is_answered => {
                failed(Exit::Usage, "failed", &failure.to_string())
            }
            Some(Outcome::Failed { failure }) => failed(Exit::Failed, "failed", &failure.to_string()),
        }
    }

    fn conclude_done(&mut self) -> RunResult {
        let mut done = RunResult { exit: Exit::Done, name: "done", message: None, result: None };
        if let Some(schema) = self.schema.take() {
            match answer_schema::parse_answer(&schema, &self.output.answer) {
                Ok(result) => done.result = Some(result),
                Err(problem) => {
                    return RunResult {
                        exit: Exit::Failed,
                        name: "schema",
                        message: Some(problem),
                        result: None,
                    };
                }
            }
        } else if self.output.approval_missing {
            done.exit = Exit::NeedsApproval;
            done.name = "needsApproval";
            done.message =
                Some("A tool call needed approval, and nobody could approve it. See --approve.".to_owned());
        }
        done
    }
}

fn turn_outcome(event: &Event) -> Option<Outcome> {
    if let EventBody::Lost { failure } = &event.body {
        return Some(Outcome::Failed { failure: failure.clone() });
    }
    let EventBody::Fact(recorded) = &event.body else { return None };
    let Fact::TurnEnded { outcome, .. } = &recorded.fact else { return None };
    Some(outcome.clone())
}
