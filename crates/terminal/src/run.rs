//! Runs one turn for scripts and CI: streams the answer to one writer and progress to another, returns an exit code.
//!
//! Invariants: it always ends; it never asks; only the answer (or JSON events) reaches the first writer.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use domain::command::{AcceptedStatus, SessionSettings, TurnLimits, UserPrompt, WorkspaceSpec};
use domain::event::{Channel, EventBody, Fact};
use domain::host::Grants;
use domain::item::{Item, ItemKind};
use domain::link::{Commands, Engine};
use domain::store::ListFilter;
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use domain::{
    Abilities, Command, Event, Failure, FailureKind, Follower, ItemId, Link, Outcome, SessionId, TextCursor,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::text::clean;
use crate::wire::{EVENT_VERSION, RunEvent};

pub struct RunOptions {
    pub prompt: String,
    pub workspace: PathBuf,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub session: Option<SessionId>,
    /// Continue the newest chat of the workspace.
    pub newest: bool,
    pub grants: Grants,
    pub max_cost: Option<f64>,
    /// The models to continue with after a failure, in order.
    pub failover: Vec<String>,
    pub max_steps: Option<u32>,
    pub timeout: Option<Duration>,
    pub json: bool,
    /// The answer must be JSON that matches this schema.
    pub schema: Option<Value>,
    /// Stdout is a terminal: control characters of the answer are removed.
    pub to_terminal: bool,
}

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

/// How long a stopped turn may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The deadline without `--timeout`.
const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

pub async fn run(engine: Engine, options: RunOptions, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let (json, to_terminal) = (options.json, options.to_terminal);
    let abilities = Abilities { client: "terminal".into(), grants: options.grants, ..Abilities::default() };
    let deadline = Instant::now() + options.timeout.unwrap_or(NO_TIMEOUT);
    let started = async {
        options.schema.as_ref().map_or(Ok(()), check_schema)?;
        let link = engine.attach(abilities).await?;
        open_and_prompt(link, options, deadline).await
    };
    let (exit, failure) = match tokio::time::timeout_at(deadline, started).await {
        Ok(Ok(mut run)) => return run.follow(out, err).await,
        Ok(Err(failure)) if failure.kind == FailureKind::User => (Exit::Usage, failure),
        Ok(Err(failure)) => (Exit::Failed, failure),
        Err(_) => (Exit::Spent, Failure::user("The time is up.")),
    };
    let mut printer = Printer { json, to_terminal, hold_answer: false, out, err };
    if json {
        printer.event(&RunEvent::failed(exit as u8, &failure));
    }
    printer.message(&failure.to_string());
    exit
}

/// Opens or loads the chat and sends the prompt.
async fn open_and_prompt(link: Link, options: RunOptions, deadline: Instant) -> Result<Run, Failure> {
    let commands = link.commands.clone();
    let workspace = WorkspaceSpec { roots: vec![options.workspace.clone()], options: None };
    let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
    let change = SessionSettings {
        model: options.model.clone(),
        behavior: options.behavior.clone(),
        ..SessionSettings::default()
    };
    let existing = find_session(&commands, &options).await?;
    let is_new = existing.is_none();
    let info = match existing {
        Some(session) => commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?,
        None => {
            let settings = change.clone();
            let (id, workspace, servers) = (None, None, Vec::new());
            commands.call(|reply| Command::Open { id, workspace, settings, servers, reply }).await?
        }
    };
    let mut follower = Follower::new(commands.clone(), link.events);
    follower.follow(info.id.clone(), info.newest);
    let limits = TurnLimits {
        max_steps: options.max_steps,
        max_cost: options.max_cost,
        failover: options.failover.clone(),
        output_schema: options.schema.clone(),
    };
    let prompt = UserPrompt { text: options.prompt.clone(), change, limits, ..UserPrompt::default() };
    let session = info.id.clone();
    let accepted = commands.call(|reply| Command::Prompt { session, prompt, reply }).await;
    if is_new && accepted.is_err() {
        delete_session(&commands, info.id.clone()).await;
    }
    let accepted = accepted?;
    let discard = is_new && accepted.status != AcceptedStatus::Prompting;
    let notices = catalog.notices.into_iter().map(|notice| notice.text).collect();
    Ok(Run {
        link: commands,
        follower,
        options,
        session: info.id,
        model: accepted.model,
        notices,
        deadline,
        discard,
        output: OutputState::default(),
    })
}

/// The chat to continue.
async fn find_session(commands: &Commands, options: &RunOptions) -> Result<Option<SessionId>, Failure> {
    if options.session.is_some() || !options.newest {
        return Ok(options.session.clone());
    }
    let workspace = Some(vec![options.workspace.clone()]);
    let filter = ListFilter { workspace, limit: Some(1), ..ListFilter::default() };
    let newest = commands.call(|reply| Command::List { filter, reply }).await?;
    Ok(newest.into_iter().next().map(|chat| chat.id))
}

/// Deletes a chat without any request to a model: nobody continues it.
async fn delete_session(commands: &Commands, session: SessionId) {
    let deleted = commands.call(|reply| Command::Delete { session, reply });
    let _ = tokio::time::timeout(STOP_TIMEOUT, deleted).await;
}

struct Run {
    link: Commands,
    follower: Follower,
    options: RunOptions,
    session: SessionId,
    model: String,
    notices: Vec<String>,
    deadline: Instant,
    /// The chat is new and its prompt causes no request to a model, so the chat is deleted.
    discard: bool,
    output: OutputState,
}

/// Tracks the printed output.
#[derive(Default)]
struct OutputState {
    cursors: HashMap<ItemId, TextCursor>,
    states: HashMap<ItemId, &'static str>,
    /// The full text of the last answer.
    answer: String,
    /// A call was rejected because nobody could approve it.
    approval_missing: bool,
}

impl Run {
    async fn follow(&mut self, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
        let RunOptions { json, to_terminal, .. } = self.options;
        let hold_answer = self.options.schema.is_some() && !json;
        let mut printer = Printer { json, to_terminal, hold_answer, out, err };
        if printer.json {
            printer.event(&RunEvent::Start {
                version: EVENT_VERSION,
                session: self.session.as_str(),
                model: &self.model,
            });
        }
        for notice in &self.notices {
            printer.notice(notice);
        }
        let outcome = self.follow_turn(&mut printer).await;
        let RunResult { exit, name, message, result } = self.conclude(outcome);
        if hold_answer {
            let _ = result.iter().try_for_each(|result| writeln!(printer.out, "{result}"));
        } else if !json && !self.output.answer.is_empty() {
            let _ = writeln!(printer.out);
        }
        if let Some(message) = &message {
            printer.message(message);
        }
        if json {
            printer.event(&RunEvent::End { outcome: name, exit: exit as u8, message, result });
        }
        let _ = printer.out.flush();
        if self.discard {
            delete_session(&self.link, self.session.clone()).await;
        }
        exit
    }

    /// Returns `None` if the time is up or the engine has ended.
    async fn follow_turn(&mut self, printer: &mut Printer<'_>) -> Option<Outcome> {
        let deadline = self.deadline;
        loop {
            let event = tokio::select! {
                event = self.follower.next() => event?,
                () = tokio::time::sleep_until(deadline) => {
                    let _ = self.link.send(Command::Cancel { session: self.session.clone() }).await;
                    let turn_end = async { while let Some(event) = self.follower.next().await {
                        if turn_outcome(&event).is_some() { break }
                    }};
                    let _ = tokio::time::timeout(STOP_TIMEOUT, turn_end).await;
                    return None;
                }
            };
            if let Some(outcome) = turn_outcome(&event) {
                return Some(outcome);
            }
            self.output.print_event(&event, printer);
        }
    }

    fn conclude(&mut self, outcome: Option<Outcome>) -> RunResult {
        let failed = |exit, name, message: &str| RunResult {
            exit,
            name,
            message: Some(message.to_owned()),
            result: None,
        };
        match outcome {
            None => failed(Exit::Spent, "timeout", "The time is up."),
            Some(Outcome::Done) => match self.options.schema.take() {
                Some(schema) => match parse_answer(&schema, &self.output.answer) {
                    Ok(result) => {
                        RunResult { exit: Exit::Done, name: "done", message: None, result: Some(result) }
                    }
                    Err(problem) => failed(Exit::Failed, "schema", &problem),
                },
                None if self.output.approval_missing => failed(
                    Exit::NeedsApproval,
                    "needsApproval",
                    "A tool call needed approval, which nobody could give. See --approve.",
                ),
                None => RunResult { exit: Exit::Done, name: "done", message: None, result: None },
            },
            Some(Outcome::MaxSteps) => failed(Exit::Spent, "maxSteps", "The step limit was reached."),
            Some(Outcome::MaxTokens) => {
                failed(Exit::Failed, "maxTokens", "The model reached its output limit.")
            }
            Some(Outcome::Refused { reason }) => failed(Exit::Failed, "refused", &reason),
            Some(Outcome::Stopped | Outcome::Interrupted) => failed(Exit::Failed, "stopped", "Stopped."),
            Some(Outcome::Failed { failure }) if failure.kind == FailureKind::Quota => {
                failed(Exit::Spent, "spent", &failure.to_string())
            }
            Some(Outcome::Failed { failure }) => failed(Exit::Failed, "failed", &failure.to_string()),
        }
    }
}

/// The end of a run: exit code, outcome, message and result.
struct RunResult {
    exit: Exit,
    name: &'static str,
    message: Option<String>,
    /// The answer as JSON, if a schema requires it.
    result: Option<Value>,
}

fn turn_outcome(event: &Event) -> Option<Outcome> {
    if let EventBody::Lost { failure } = &event.body {
        return Some(Outcome::Failed { failure: failure.clone() });
    }
    let EventBody::Fact(recorded) = &event.body else { return None };
    let Fact::TurnEnded { outcome, .. } = &recorded.fact else { return None };
    Some(outcome.clone())
}

impl OutputState {
    fn print_event(&mut self, event: &Event, printer: &mut Printer<'_>) {
        match &event.body {
            EventBody::Delta(delta) => {
                self.print_growth(delta.item, delta.channel, delta.offset, &delta.text, printer)
            }
            EventBody::Progress { text } => printer.progress(text),
            EventBody::Fact(recorded) => self.print_fact(&recorded.fact, printer),
            EventBody::Catalog(_) | EventBody::Lost { .. } => {}
        }
    }

    fn print_fact(&mut self, fact: &Fact, printer: &mut Printer<'_>) {
        if let Fact::ItemGrew { item, channel, offset, text } = fact {
            self.print_growth(*item, *channel, *offset, text, printer);
        } else if let Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } =
            fact
        {
            self.print_item(item, printer);
        } else if let Fact::UsageChanged { usage } = fact
            && printer.json
        {
            printer.event(&RunEvent::usage(usage));
        } else if let Fact::Notice { notice } = fact {
            printer.notice(&notice.text);
        }
    }

    fn print_item(&mut self, item: &Item, printer: &mut Printer<'_>) {
        if let ItemKind::AgentMessage { text, .. } = &item.kind {
            self.print_growth(item.id, Channel::Text, 0, text, printer);
            self.answer = text.clone();
        } else if let ItemKind::Reasoning { text, .. } = &item.kind {
            self.print_growth(item.id, Channel::Reasoning, 0, text, printer);
        } else if let ItemKind::ToolCall(call) = &item.kind {
            self.print_call(item.id, call, printer);
        } else if let ItemKind::SystemText { text } = &item.kind {
            printer.text(text);
        }
    }

    fn print_growth(
        &mut self,
        id: ItemId,
        channel: Channel,
        offset: u64,
        text: &str,
        printer: &mut Printer<'_>,
    ) {
        if !matches!(channel, Channel::Text | Channel::Reasoning) {
            return;
        }
        let Some(rest) = self.cursors.entry(id).or_default().advance(offset, text) else { return };
        if channel == Channel::Text {
            printer.text(rest);
        } else if printer.json {
            printer.event(&RunEvent::Reasoning { text: rest });
        }
    }

    fn print_call(&mut self, id: ItemId, call: &ToolCall, printer: &mut Printer<'_>) {
        let state = match &call.state {
            ToolState::Preparing | ToolState::Waiting { .. } => return,
            ToolState::Running => "running",
            ToolState::Done => "done",
            ToolState::Rejected { by } => {
                self.approval_missing |= *by == RejectedBy::Unasked;
                "rejected"
            }
            ToolState::Stopped { .. } => "stopped",
        };
        if self.states.insert(id, state) == Some(state) {
            return;
        }
        if printer.json {
            let name = format!("{}__{}", call.server, call.name);
            let line =
                RunEvent::Tool { id: id.to_string(), name, state, summary: &call.summary, error: call.error };
            printer.event(&line);
        } else if state != "done" || call.error {
            let title = if call.summary.is_empty() { &call.name } else { &call.summary };
            printer.message(&format!("{title} ({state})"));
        }
    }
}

/// Writes the output. A closed pipe does not end the turn.
struct Printer<'a> {
    json: bool,
    to_terminal: bool,
    /// Print the answer at the end, as JSON.
    hold_answer: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        if self.json {
            self.event(&RunEvent::Text { text });
        } else if !self.hold_answer {
            let text = if self.to_terminal { clean(text) } else { text.into() };
            let _ = self.out.write_all(text.as_bytes());
            let _ = self.out.flush();
        }
    }

    fn event(&mut self, event: &RunEvent<'_>) {
        if let Ok(mut text) = serde_json::to_vec(event) {
            text.push(b'\n');
            let _ = self.out.write_all(&text);
            let _ = self.out.flush();
        }
    }

    fn progress(&mut self, text: &str) {
        if self.json {
            self.event(&RunEvent::Progress { text });
        } else if !matches!(text, "Waiting model" | "Generating" | "Calling tool") {
            self.message(text);
        }
    }

    fn notice(&mut self, text: &str) {
        if self.json {
            self.event(&RunEvent::Notice { text });
        } else {
            self.message(text);
        }
    }

    fn message(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", clean(text));
    }
}

/// Checks the schema before a model is paid.
fn check_schema(schema: &Value) -> Result<(), Failure> {
    jsonschema::validator_for(schema).map(drop).map_err(|error| {
        Failure::user(format!(
            "The file of --output-schema is not a JSON schema: {}.",
            error.to_string().trim_end_matches('.')
        ))
        .hint("Correct the schema and run again.")
    })
}

/// Parses the answer, with or without a Markdown fence, as JSON that matches the schema.
fn parse_answer(schema: &Value, answer: &str) -> Result<Value, String> {
    let bare = answer.trim();
    let bare = bare.strip_prefix("```json").or_else(|| bare.strip_prefix("```")).unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let value: Value =
        serde_json::from_str(bare).map_err(|error| format!("The answer is not JSON: {error}."))?;
    let validator =
        jsonschema::validator_for(schema).map_err(|error| format!("The schema cannot be used: {error}."))?;
    let problem = validator.iter_errors(&value).next().map(|error| error.to_string());
    match problem {
        None => Ok(value),
        Some(problem) => Err(format!("The answer does not fit the schema: {problem}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_its_schema_or_says_why_not() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
        for (answer, good) in [
            ("{\"a\": 1}", true),
            ("```json\n{\"a\": 1}\n```", true),
            ("{\"a\": \"x\"}", false),
            ("{}", false),
            ("not json", false),
        ] {
            assert_eq!(parse_answer(&schema, answer).is_ok(), good, "{answer}");
        }
    }
}
