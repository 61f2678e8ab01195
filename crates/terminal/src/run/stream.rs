//! `dragoman run --input stream-json`: a conversation by lines of JSON in both directions, as long as the input is open.
//!
//! docs/run.md documents the lines. Invariants: one prompt after the other; a line that is not understood is told and
//! changes nothing; when the input has ended, the last answer is finished and the run ends.

use std::collections::{HashMap, VecDeque};
use std::io::Write;

use domain::command::{UserPrompt, WorkspaceSpec};
use domain::event::{EventBody, Fact};
use domain::item::ItemKind;
use domain::link::Engine;
use domain::tool_call::{ToolCall, ToolState};
use domain::{
    Abilities, Answer, Ask, AskId, AskKind, Command, Event, Failure, FailureKind, Follower, ItemId, Outcome,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::{EVENT_VERSION, RunEvent};
use super::opening::{check_flags, find_session, open_session, wait_for_servers};
use super::options::RunOptions;
use super::printer::{OutputState, Printer};
use super::{Exit, Finished, NO_TIMEOUT, OutputFormat, turn_outcome};

/// A line of the input.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum InputLine {
    Prompt {
        text: String,
    },
    /// The same, as other assistants write it.
    User {
        message: UserContent,
    },
    /// For the running answer, at its next step.
    Steer {
        text: String,
    },
    Answer {
        ask: u64,
        allow: Option<bool>,
        #[serde(default)]
        remember: bool,
        reason: Option<String>,
        text: Option<String>,
        data: Option<Value>,
    },
    /// Stops the running answer.
    Stop,
}

#[derive(Deserialize)]
struct UserContent {
    content: Value,
}

impl UserContent {
    /// A text, or a list of parts of which the texts count.
    fn text(&self) -> String {
        let texts = self.content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
        self.content.as_str().map_or_else(|| texts.collect::<Vec<_>>().join("\n"), str::to_owned)
    }
}

/// Talks until `input` is closed and its last prompt is answered.
pub async fn converse(
    engine: Engine,
    options: RunOptions,
    input: mpsc::Receiver<String>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Finished {
    let mut printer = Printer {
        format: OutputFormat::Events,
        to_terminal: false,
        hold_answer: false,
        quiet: options.quiet,
        out,
        err,
        write_error: None,
    };
    let started = Conversation::open(&engine, options, input, &mut printer).await;
    match started {
        Ok(conversation) => conversation.run(&mut printer).await,
        Err(failure) => {
            let exit = if failure.kind == FailureKind::User { Exit::Usage } else { Exit::Failed };
            let message = failure.to_string();
            printer.never_started("failed", exit, &message);
            printer.message(&message);
            Finished { exit, answer: String::new() }
        }
    }
}

struct Conversation {
    options: RunOptions,
    commands: domain::link::Commands,
    follower: Follower,
    session: domain::SessionId,
    input: mpsc::Receiver<String>,
    is_input_open: bool,
    prompts: VecDeque<String>,
    /// A turn runs, or its prompt is on its way.
    is_busy: bool,
    calls: HashMap<ItemId, ToolCall>,
    /// Questions whose call is not known yet.
    asks: Vec<Ask>,
    deadline: Instant,
    output: OutputState,
    /// How the last turn ended.
    exit: Exit,
    outcome: &'static str,
    message: Option<String>,
}

impl Conversation {
    async fn open(
        engine: &Engine,
        options: RunOptions,
        input: mpsc::Receiver<String>,
        printer: &mut Printer<'_>,
    ) -> Result<Self, Failure> {
        let abilities = Abilities {
            client: "terminal".into(),
            approvals: true,
            questions: true,
            forms: true,
            grants: options.grants,
            ..Abilities::default()
        };
        let deadline = Instant::now() + options.timeout.unwrap_or(NO_TIMEOUT);
        let link = engine.attach(abilities).await?;
        let commands = link.commands.clone();
        let workspace = WorkspaceSpec { roots: options.roots.clone(), options: None };
        let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
        let mut notices: Vec<String> = catalog.notices.iter().map(|notice| notice.text.clone()).collect();
        check_flags(&notices)?;
        notices.extend(wait_for_servers(&commands, None).await?);
        let existing = find_session(&commands, &options).await?;
        let info = open_session(&commands, existing, options.fork, None, options.settings()).await?;
        let mut follower = Follower::new(commands.clone(), link.events);
        follower.follow(info.id.clone(), info.newest);
        let model = info.settings.model.or(catalog.default_model).unwrap_or_default();
        printer.event(&RunEvent::Start { version: EVENT_VERSION, session: info.id.as_str(), model: &model });
        notices.iter().for_each(|notice| printer.notice(notice));
        let prompts = Some(options.prompt.clone()).filter(|prompt| !prompt.trim().is_empty());
        Ok(Self {
            options,
            commands,
            follower,
            session: info.id,
            input,
            is_input_open: true,
            prompts: prompts.into_iter().collect(),
            is_busy: false,
            calls: HashMap::new(),
            asks: Vec::new(),
            deadline,
            output: OutputState::default(),
            exit: Exit::Done,
            outcome: "done",
            message: None,
        })
    }

    async fn run(mut self, printer: &mut Printer<'_>) -> Finished {
        while printer.write_error.is_none() {
            self.send_next(printer).await;
            if !self.is_busy && !self.is_input_open {
                break;
            }
            let stop = self.options.stop.clone();
            tokio::select! {
                line = self.input.recv(), if self.is_input_open => match line {
                    Some(line) => self.read_line(&line, printer).await,
                    None => self.is_input_open = false,
                },
                event = self.follower.next() => match event {
                    Some(event) => self.handle_event(&event, printer),
                    None => break,
                },
                () = stop.cancelled() => {
                    self.end_with(Exit::Failed, "stopped", "Stopped.");
                    break;
                }
                () = tokio::time::sleep_until(self.deadline) => {
                    self.end_with(Exit::Spent, "timeout", "The time is up.");
                    break;
                }
            }
        }
        if self.is_busy {
            let _ = self.commands.send(Command::Cancel { session: self.session.clone() }).await;
        }
        let (text, message) = (self.output.answer.as_str(), self.message.as_deref());
        let (outcome, exit) = (self.outcome, self.exit as u8);
        printer.event(&RunEvent::End { outcome, exit, message, text, result: None });
        let exit = if printer.write_error.is_some() { Exit::Failed } else { self.exit };
        Finished { exit, answer: self.output.answer }
    }

    fn end_with(&mut self, exit: Exit, outcome: &'static str, message: &str) {
        (self.exit, self.outcome, self.message) = (exit, outcome, Some(message.to_owned()));
    }

    /// Sends the next prompt, once the chat is idle.
    async fn send_next(&mut self, printer: &mut Printer<'_>) {
        if self.is_busy {
            return;
        }
        let Some(text) = self.prompts.pop_front() else { return };
        self.output.answer.clear();
        let contexts = std::mem::take(&mut self.options.contexts);
        let change = self.options.settings();
        let prompt =
            UserPrompt { text, contexts, change, limits: self.options.limits(), ..UserPrompt::default() };
        let session = self.session.clone();
        match self.commands.call(|reply| Command::Prompt { session, prompt, reply }).await {
            Ok(_) => self.is_busy = true,
            Err(failure) => {
                let message = failure.to_string();
                self.end_with(Exit::Failed, "failed", &message);
                printer.event(&RunEvent::Turn { outcome: "failed", message: Some(&message), text: "" });
            }
        }
    }

    async fn read_line(&mut self, line: &str, printer: &mut Printer<'_>) {
        if line.trim().is_empty() {
            return;
        }
        match serde_json::from_str::<InputLine>(line) {
            Ok(InputLine::Prompt { text }) => self.prompts.push_back(text),
            Ok(InputLine::User { message }) => self.prompts.push_back(message.text()),
            Ok(InputLine::Steer { text }) => {
                let session = self.session.clone();
                let steered = |reply| Command::Steer { session, text: Some(text), reply };
                if let Err(failure) = self.commands.call(steered).await {
                    printer.notice(&failure.to_string());
                }
            }
            Ok(InputLine::Stop) => {
                let _ = self.commands.send(Command::Cancel { session: self.session.clone() }).await;
            }
            Ok(InputLine::Answer { ask, allow, remember, reason, text, data }) => {
                let answer = match (allow, text, data) {
                    (Some(true), _, _) => Answer::Allow { remember },
                    (Some(false), _, _) => Answer::Deny { remember, reason },
                    (None, Some(text), _) => Answer::Text { text },
                    (None, None, Some(data)) => Answer::Form { data },
                    (None, None, None) => {
                        return printer.notice("An answer needs `allow`, `text` or `data`.");
                    }
                };
                let session = self.session.clone();
                let call = |reply| Command::Answer { session, ask: AskId(ask), answer, reply };
                if let Err(failure) = self.commands.call(call).await {
                    printer.notice(&failure.to_string());
                }
            }
            Err(error) => printer.notice(&format!("A line of the input is not understood: {error}.")),
        }
    }

    fn handle_event(&mut self, event: &Event, printer: &mut Printer<'_>) {
        if let EventBody::Fact(recorded) = &event.body {
            self.note_fact(&recorded.fact, printer);
        }
        if let Some(outcome) = turn_outcome(event) {
            return self.end_turn(&outcome, printer);
        }
        self.output.print_event(event, printer);
    }

    /// Questions name the call that waits, so calls are kept until they end.
    fn note_fact(&mut self, fact: &Fact, printer: &mut Printer<'_>) {
        if let Fact::ItemStarted { item } | Fact::ItemChanged { item } = fact
            && let ItemKind::ToolCall(call) = &item.kind
        {
            self.calls.insert(item.id, (**call).clone());
            self.print_asks(printer);
        } else if let Fact::ItemEnded { item } = fact {
            self.calls.remove(&item.id);
        } else if let Fact::AskRaised { ask } = fact {
            self.asks.push(ask.clone());
            self.print_asks(printer);
        }
    }

    /// A question about a call is told once the call is known as it waits, with its input.
    fn print_asks(&mut self, printer: &mut Printer<'_>) {
        let calls = &self.calls;
        let is_known = |ask: &mut Ask| match ask.item {
            None => true,
            Some(item) => calls.get(&item).is_none_or(|call| {
                !matches!(ask.kind, AskKind::Approval { .. })
                    || matches!(call.state, ToolState::Waiting { .. })
            }),
        };
        let known: Vec<Ask> = self.asks.extract_if(.., is_known).collect();
        known.iter().for_each(|ask| self.print_ask(ask, printer));
    }

    fn print_ask(&self, ask: &Ask, printer: &mut Printer<'_>) {
        let call = ask.item.and_then(|item| self.calls.get(&item));
        let (kind, text, remembers, options, schema) = match &ask.kind {
            AskKind::Approval { reason, keys } => ("approval", reason, keys.as_slice(), Vec::new(), None),
            AskKind::Question { text, options, .. } => {
                let labels = options.iter().map(|option| option.label.as_str()).collect();
                ("question", text, [].as_slice(), labels, None)
            }
            AskKind::Form { text, schema } => ("form", text, [].as_slice(), Vec::new(), Some(schema)),
        };
        printer.event(&RunEvent::Ask {
            ask: ask.id.0,
            kind,
            text,
            tool: call.map(|call| format!("{}__{}", call.server, call.name)),
            input: call.and_then(|call| call.input.as_ref()),
            remembers: remembers.iter().map(String::as_str).collect(),
            options,
            schema,
        });
    }

    fn end_turn(&mut self, outcome: &Outcome, printer: &mut Printer<'_>) {
        self.is_busy = false;
        let (exit, name, message) = match outcome {
            Outcome::Done => (Exit::Done, "done", None),
            Outcome::MaxSteps => (Exit::Spent, "maxSteps", Some("The step limit was reached.".to_owned())),
            Outcome::Repeating => {
                (Exit::Spent, "repeating", Some("The model repeated the same call.".to_owned()))
            }
            Outcome::MaxTokens => {
                (Exit::Failed, "maxTokens", Some("The model reached its output limit.".to_owned()))
            }
            Outcome::Refused { reason } => (Exit::Failed, "refused", Some(reason.clone())),
            Outcome::Stopped | Outcome::Interrupted => (Exit::Failed, "stopped", Some("Stopped.".to_owned())),
            Outcome::Failed { failure } if failure.kind == FailureKind::Quota => {
                (Exit::Spent, "spent", Some(failure.to_string()))
            }
            Outcome::Failed { failure } => (Exit::Failed, "failed", Some(failure.to_string())),
        };
        let text = self.output.answer.as_str();
        printer.event(&RunEvent::Turn { outcome: name, message: message.as_deref(), text });
        (self.exit, self.outcome, self.message) = (exit, name, message);
    }
}
