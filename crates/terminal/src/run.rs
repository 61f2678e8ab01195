//! One turn for scripts and CI: text to one writer as it comes, progress to another, an exit code that says how it went.
//!
//! Invariants: it always ends; it never asks; nothing but the answer (or JSON lines) reaches the first writer.

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
use domain::{Abilities, Command, Event, Failure, FailureKind, Follower, ItemId, Link, Outcome, SessionId};
use serde_json::Value;
use tokio::time::Instant;

use crate::text::clean;
use crate::wire::{Line, VERSION};

pub struct RunOptions {
    pub prompt: String,
    pub workspace: PathBuf,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub session: Option<SessionId>,
    /// Go on with the newest chat of the workspace.
    pub newest: bool,
    pub grants: Grants,
    pub max_cost: Option<f64>,
    /// Models to go on with when one fails.
    pub failover: Vec<String>,
    pub max_steps: Option<u32>,
    pub timeout: Option<Duration>,
    pub json: bool,
    /// The answer must be JSON that fits.
    pub schema: Option<Value>,
    /// The answer goes to a terminal, not to a pipe or a file: nothing in it may be obeyed there.
    pub to_terminal: bool,
}

/// How a run went, as an exit code.
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
const GRACE: Duration = Duration::from_secs(3);
/// Where no time was set.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

pub async fn run(engine: Engine, options: RunOptions, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let (json, to_terminal) = (options.json, options.to_terminal);
    let abilities = Abilities { client: "terminal".into(), grants: options.grants, ..Abilities::default() };
    let deadline = Instant::now() + options.timeout.unwrap_or(FOREVER);
    let begun = async {
        options.schema.as_ref().map_or(Ok(()), can_be_used)?;
        let link = engine.attach(abilities).await?;
        begin(link, options, deadline).await
    };
    let (exit, failure) = match tokio::time::timeout_at(deadline, begun).await {
        Ok(Ok(mut run)) => return run.follow(out, err).await,
        Ok(Err(failure)) if failure.kind == FailureKind::User => (Exit::Usage, failure),
        Ok(Err(failure)) => (Exit::Failed, failure),
        Err(_) => (Exit::Spent, Failure::user("The time is up.")),
    };
    let mut printer = Printer { json, to_terminal, hold: false, out, err };
    if json {
        printer.line(&Line::failed(exit as u8, &failure));
    }
    printer.say(&failure.to_string());
    exit
}

/// Opens the chat and sends the prompt.
async fn begin(link: Link, options: RunOptions, deadline: Instant) -> Result<Run, Failure> {
    let commands = link.commands.clone();
    let workspace = WorkspaceSpec { roots: vec![options.workspace.clone()], options: None };
    let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
    let change = SessionSettings {
        model: options.model.clone(),
        behavior: options.behavior.clone(),
        ..SessionSettings::default()
    };
    let stored = stored(&commands, &options).await?;
    let is_new = stored.is_none();
    let info = match stored {
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
        erase(&commands, info.id.clone()).await;
    }
    let accepted = accepted?;
    let vain = is_new && accepted.status != AcceptedStatus::Prompting;
    let notices = catalog.notices.into_iter().map(|notice| notice.text).collect();
    Ok(Run {
        link: commands,
        follower,
        options,
        session: info.id,
        model: accepted.model,
        notices,
        deadline,
        vain,
        shown: Shown::default(),
    })
}

/// The chat to go on with.
async fn stored(commands: &Commands, options: &RunOptions) -> Result<Option<SessionId>, Failure> {
    if options.session.is_some() || !options.newest {
        return Ok(options.session.clone());
    }
    let workspace = Some(vec![options.workspace.clone()]);
    let filter = ListFilter { workspace, limit: Some(1), ..ListFilter::default() };
    let newest = commands.call(|reply| Command::List { filter, reply }).await?;
    Ok(newest.into_iter().next().map(|chat| chat.id))
}

/// A chat in which no model was ever asked is no chat to go on with.
async fn erase(commands: &Commands, session: SessionId) {
    let erased = commands.call(|reply| Command::Delete { session, reply });
    let _ = tokio::time::timeout(GRACE, erased).await;
}

struct Run {
    link: Commands,
    follower: Follower,
    options: RunOptions,
    session: SessionId,
    model: String,
    notices: Vec<String>,
    deadline: Instant,
    /// The chat was opened for a prompt that no model will be asked.
    vain: bool,
    shown: Shown,
}

/// What has been printed.
#[derive(Default)]
struct Shown {
    sent: HashMap<ItemId, usize>,
    states: HashMap<ItemId, &'static str>,
    /// The text of the last answer, whole.
    answer: String,
    /// A call was refused because nobody could be asked.
    unasked: bool,
}

impl Run {
    async fn follow(&mut self, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
        let RunOptions { json, to_terminal, .. } = self.options;
        let hold = self.options.schema.is_some() && !json;
        let mut printer = Printer { json, to_terminal, hold, out, err };
        if printer.json {
            printer.line(&Line::Start {
                version: VERSION,
                session: self.session.as_str(),
                model: &self.model,
            });
        }
        for notice in &self.notices {
            printer.notice(notice);
        }
        let outcome = self.turn(&mut printer).await;
        let Verdict { exit, name, message, result } = self.judge(outcome);
        if hold {
            let _ = result.iter().try_for_each(|result| writeln!(printer.out, "{result}"));
        } else if !json && !self.shown.answer.is_empty() {
            let _ = writeln!(printer.out);
        }
        if let Some(message) = &message {
            printer.say(message);
        }
        if json {
            printer.line(&Line::End { outcome: name, exit: exit as u8, message, result });
        }
        let _ = printer.out.flush();
        if self.vain {
            erase(&self.link, self.session.clone()).await;
        }
        exit
    }

    /// `None`: the time is up, or the engine is gone.
    async fn turn(&mut self, printer: &mut Printer<'_>) -> Option<Outcome> {
        let deadline = self.deadline;
        loop {
            let event = tokio::select! {
                event = self.follower.next() => event?,
                () = tokio::time::sleep_until(deadline) => {
                    let _ = self.link.send(Command::Cancel { session: self.session.clone() }).await;
                    let ending = async { while let Some(event) = self.follower.next().await {
                        if ended(&event).is_some() { break }
                    }};
                    let _ = tokio::time::timeout(GRACE, ending).await;
                    return None;
                }
            };
            if let Some(outcome) = ended(&event) {
                return Some(outcome);
            }
            self.shown.show(&event, printer);
        }
    }

    fn judge(&mut self, outcome: Option<Outcome>) -> Verdict {
        let said = |exit, name, message: &str| Verdict {
            exit,
            name,
            message: Some(message.to_owned()),
            result: None,
        };
        match outcome {
            None => said(Exit::Spent, "timeout", "The time is up."),
            Some(Outcome::Done) => match self.options.schema.take() {
                Some(schema) => match fits(&schema, &self.shown.answer) {
                    Ok(result) => {
                        Verdict { exit: Exit::Done, name: "done", message: None, result: Some(result) }
                    }
                    Err(problem) => said(Exit::Failed, "schema", &problem),
                },
                None if self.shown.unasked => said(
                    Exit::NeedsApproval,
                    "needsApproval",
                    "A tool call needed approval, which nobody could give. See --approve.",
                ),
                None => Verdict { exit: Exit::Done, name: "done", message: None, result: None },
            },
            Some(Outcome::MaxSteps) => said(Exit::Spent, "maxSteps", "The step limit was reached."),
            Some(Outcome::MaxTokens) => {
                said(Exit::Failed, "maxTokens", "The model reached its output limit.")
            }
            Some(Outcome::Refused { reason }) => said(Exit::Failed, "refused", &reason),
            Some(Outcome::Stopped | Outcome::Interrupted) => said(Exit::Failed, "stopped", "Stopped."),
            Some(Outcome::Failed { failure }) if failure.kind == FailureKind::Quota => {
                said(Exit::Spent, "spent", &failure.to_string())
            }
            Some(Outcome::Failed { failure }) => said(Exit::Failed, "failed", &failure.to_string()),
        }
    }
}

/// How a run ended, in every form it is told.
struct Verdict {
    exit: Exit,
    name: &'static str,
    message: Option<String>,
    /// The answer as JSON, where a schema asked for it.
    result: Option<Value>,
}

fn ended(event: &Event) -> Option<Outcome> {
    match &event.body {
        EventBody::Fact(recorded) => match &recorded.fact {
            Fact::TurnEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        },
        EventBody::Lost { failure } => Some(Outcome::Failed { failure: failure.clone() }),
        _ => None,
    }
}

impl Shown {
    fn show(&mut self, event: &Event, printer: &mut Printer<'_>) {
        match &event.body {
            EventBody::Delta(delta) => {
                self.grow(delta.item, delta.channel, delta.offset, &delta.text, printer)
            }
            EventBody::Progress { text } => printer.progress(text),
            EventBody::Notice(notice) => printer.notice(&notice.text),
            EventBody::Fact(recorded) => match &recorded.fact {
                Fact::ItemGrew { item, channel, offset, text } => {
                    self.grow(*item, *channel, *offset, text, printer)
                }
                Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => {
                    self.item(item, printer);
                }
                Fact::UsageChanged { usage } if printer.json => printer.line(&Line::usage(usage)),
                Fact::Notice { notice } => printer.notice(&notice.text),
                _ => {}
            },
            EventBody::Catalog(_) | EventBody::Lost { .. } => {}
        }
    }

    fn item(&mut self, item: &Item, printer: &mut Printer<'_>) {
        match &item.kind {
            ItemKind::AgentMessage { text, .. } => {
                self.grow(item.id, Channel::Text, 0, text, printer);
                self.answer = text.clone();
            }
            ItemKind::Reasoning { text, .. } => self.grow(item.id, Channel::Reasoning, 0, text, printer),
            ItemKind::ToolCall(call) => self.call(item.id, call, printer),
            ItemKind::SystemText { text } => printer.text(text),
            _ => {}
        }
    }

    fn grow(&mut self, id: ItemId, channel: Channel, offset: u64, text: &str, printer: &mut Printer<'_>) {
        if !matches!(channel, Channel::Text | Channel::Reasoning) {
            return;
        }
        let sent = self.sent.entry(id).or_default();
        let Some(skip) = usize::try_from(offset).ok().and_then(|offset| sent.checked_sub(offset)) else {
            return;
        };
        let Some(rest) = text.get(skip..).filter(|rest| !rest.is_empty()) else { return };
        *sent += rest.len();
        match channel {
            Channel::Text => printer.text(rest),
            _ if printer.json => printer.line(&Line::Reasoning { text: rest }),
            _ => {}
        }
    }

    fn call(&mut self, id: ItemId, call: &ToolCall, printer: &mut Printer<'_>) {
        let state = match &call.state {
            ToolState::Preparing | ToolState::Waiting { .. } => return,
            ToolState::Running => "running",
            ToolState::Done => "done",
            ToolState::Rejected { by } => {
                self.unasked |= *by == RejectedBy::Unasked;
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
                Line::Tool { id: id.to_string(), name, state, summary: &call.summary, error: call.error };
            printer.line(&line);
        } else if state != "done" || call.error {
            let what = if call.summary.is_empty() { &call.name } else { &call.summary };
            printer.say(&format!("{what} ({state})"));
        }
    }
}

/// Where things go. A closed pipe is no reason to fail: the turn ends by itself.
struct Printer<'a> {
    json: bool,
    to_terminal: bool,
    /// The answer is printed at the end, as the JSON it must be.
    hold: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        if self.json {
            self.line(&Line::Text { text });
        } else if !self.hold {
            let text = if self.to_terminal { clean(text) } else { text.into() };
            let _ = self.out.write_all(text.as_bytes());
            let _ = self.out.flush();
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.out.write_all(&text);
            let _ = self.out.flush();
        }
    }

    fn progress(&mut self, text: &str) {
        if self.json {
            self.line(&Line::Progress { text });
        } else if !matches!(text, "Waiting model" | "Generating" | "Calling tool") {
            self.say(text);
        }
    }

    fn notice(&mut self, text: &str) {
        if self.json {
            self.line(&Line::Notice { text });
        } else {
            self.say(text);
        }
    }

    fn say(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", clean(text));
    }
}

/// Known before a model is asked and paid.
fn can_be_used(schema: &Value) -> Result<(), Failure> {
    jsonschema::validator_for(schema).map(drop).map_err(|error| {
        Failure::user(format!("This is no JSON schema: {}.", error.to_string().trim_end_matches('.')))
            .hint("Mend the file of --output-schema.")
    })
}

/// The answer, with or without a Markdown fence around it, as JSON of this schema.
fn fits(schema: &Value, answer: &str) -> Result<Value, String> {
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
            assert_eq!(fits(&schema, answer).is_ok(), good, "{answer}");
        }
    }
}
