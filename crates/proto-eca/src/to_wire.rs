//! From events to ECA's contents: the projection. No IO; replayed and live chats go through it alike.
//!
//! Invariants: each byte of a streamed text is sent once, whether it came as a delta, as a fact or only at the end;
//! `toolCallPrepare` precedes `toolCallRun`, `reasonStarted` precedes `reasonText`; every turn ends with progress
//! `finished`.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::ask::Choice;
use domain::event::{Channel, EventBody, Fact, Level, Notice, SessionUsage};
use domain::host::Position;
use domain::item::{Item, ItemKind, Part, PlanEntry, PlanStatus};
use domain::tool_call::{Details, Origin, RejectedBy, ToolCall, ToolState};
use domain::{AskId, AskKind, Event, ItemId, Outcome};
use serde_json::{Value, json};

use crate::wire::{Call, Content, ContentReceived, Limit, LinePosition, Out, Output, Role, Usage, method};

/// What one chat's client has been shown.
#[derive(Default)]
pub(crate) struct Projection {
    items: HashMap<ItemId, Shown>,
    /// Asks that wait, by the call they are about.
    pub asks: HashMap<ItemId, AskId>,
}

#[derive(Default)]
struct Shown {
    /// Bytes of the streamed text that were sent.
    sent: usize,
    phase: Phase,
    /// Name, server and origin of a tool call, for its argument deltas.
    call: Option<(String, String, Origin)>,
}

/// How far a tool call or a reasoning has been shown.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Unseen,
    Started,
    Run,
    Running,
    Over,
}

impl Projection {
    pub(crate) fn project<'a>(&mut self, event: &'a Event) -> Vec<Out<'a>> {
        let mut out = Vec::new();
        let chat = event.session.as_ref().map_or("", |session| session.as_str());
        match &event.body {
            EventBody::Delta(delta) => {
                self.grow(chat, delta.item, delta.channel, delta.offset, &delta.text, &mut out);
            }
            EventBody::Fact(recorded) => self.fact(chat, &recorded.fact, &mut out),
            EventBody::Progress { text } => out.push(progress(chat, text)),
            EventBody::Lost { failure } => {
                out.push(system(chat, format!("\n{failure}\n")));
                finished(chat, &mut out);
            }
            EventBody::Catalog(_) => {}
        }
        out
    }

    fn fact<'a>(&mut self, chat: &'a str, fact: &'a Fact, out: &mut Vec<Out<'a>>) {
        match fact {
            Fact::SessionChanged { change } => {
                if let Some(title) = &change.title {
                    out.push(content(chat, Role::System, Content::Metadata { title }));
                }
            }
            Fact::TurnStarted { .. } => out.push(status(chat, "running")),
            Fact::TurnEnded { outcome, .. } => {
                self.items.retain(|_, shown| shown.phase < Phase::Over);
                self.asks.clear();
                out.extend(ending(outcome).map(|text| system(chat, text)));
                finished(chat, out);
            }
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.item(chat, item, false, out),
            Fact::ItemEnded { item } => self.item(chat, item, true, out),
            Fact::ItemGrew { item, channel, offset, text } => {
                self.grow(chat, *item, *channel, *offset, text, out)
            }
            Fact::AskRaised { ask } => {
                if let (Some(item), AskKind::Approval { .. }) = (ask.item, &ask.kind) {
                    self.asks.insert(item, ask.id);
                }
            }
            Fact::AskSettled { id, .. } => self.asks.retain(|_, ask| ask != id),
            Fact::UsageChanged { usage } => {
                out.push(content(chat, Role::System, Content::Usage(used(usage))))
            }
            Fact::Notice { notice } => out.push(message(notice)),
            // The chat is shown anew by whoever serves it.
            Fact::HistoryReplaced { .. } | Fact::SessionOpened(_) => {}
        }
    }

    fn item<'a>(&mut self, chat: &'a str, item: &'a Item, ended: bool, out: &mut Vec<Out<'a>>) {
        let id = item.id;
        match &item.kind {
            ItemKind::UserMessage { text, .. } | ItemKind::Command { text } if ended => {
                let text = Cow::Owned(format!("{text}\n"));
                out.push(content(chat, Role::User, Content::Text { text, content_id: Some(id.to_string()) }));
            }
            ItemKind::AgentMessage { text, .. } => {
                self.grow(chat, id, Channel::Text, 0, text, out);
                self.close(id, ended);
            }
            ItemKind::Reasoning { text, millis, .. } => {
                self.grow(chat, id, Channel::Reasoning, 0, text, out);
                if ended {
                    self.start_reason(chat, id, out);
                    let done = Content::ReasonFinished { id: id.to_string(), total_time_ms: *millis };
                    out.push(content(chat, Role::Assistant, done));
                }
                self.close(id, ended);
            }
            ItemKind::ToolCall(call) => self.call(chat, id, call, ended, out),
            ItemKind::Citation { title, url } if ended => {
                out.push(content(chat, Role::Assistant, Content::Url { title, url }));
            }
            ItemKind::SystemText { text } if ended => out.push(system(chat, format!("\n{text}\n"))),
            ItemKind::Compaction { .. } if ended => {
                out.push(system(chat, "\nEarlier messages are now represented by a summary.\n".into()));
            }
            ItemKind::UserMessage { .. }
            | ItemKind::Command { .. }
            | ItemKind::Citation { .. }
            | ItemKind::SystemText { .. }
            | ItemKind::Compaction { .. } => {}
        }
    }

    fn close(&mut self, id: ItemId, ended: bool) {
        if ended {
            self.items.entry(id).or_default().phase = Phase::Over;
        }
    }

    /// `text` stands at byte `offset` of the item's channel; sends what the client does not have.
    fn grow<'a>(
        &mut self,
        chat: &'a str,
        id: ItemId,
        channel: Channel,
        offset: u64,
        text: &'a str,
        out: &mut Vec<Out<'a>>,
    ) {
        let shown = self.items.entry(id).or_default();
        let unseen_call = channel == Channel::ToolInput && shown.call.is_none();
        // The protocol has no place for a tool's output while it runs.
        if shown.phase == Phase::Over || channel == Channel::ToolOutput || unseen_call {
            return;
        }
        let Some(rest) = unseen(shown.sent, offset, text) else { return };
        shown.sent += rest.len();
        let text = Cow::Borrowed(rest);
        let grown = match (channel, &shown.call) {
            (Channel::ToolInput, Some((name, server, origin))) => {
                let call = Call {
                    id: id.to_string(),
                    name: Cow::Owned(name.clone()),
                    server: Cow::Owned(server.clone()),
                    origin: origin_name(*origin),
                    summary: "",
                    details: None,
                };
                Content::ToolCallPrepare { call, arguments_text: text }
            }
            (Channel::Reasoning, _) => {
                self.start_reason(chat, id, out);
                Content::ReasonText { id: id.to_string(), text }
            }
            _ => Content::Text { text, content_id: None },
        };
        out.push(content(chat, Role::Assistant, grown));
    }

    fn start_reason<'a>(&mut self, chat: &'a str, id: ItemId, out: &mut Vec<Out<'a>>) {
        let shown = self.items.entry(id).or_default();
        if shown.phase == Phase::Unseen {
            shown.phase = Phase::Started;
            out.push(content(chat, Role::Assistant, Content::ReasonStarted { id: id.to_string() }));
        }
    }

    fn call<'a>(
        &mut self,
        chat: &'a str,
        id: ItemId,
        call: &'a ToolCall,
        ended: bool,
        out: &mut Vec<Out<'a>>,
    ) {
        let shown = self.items.entry(id).or_default();
        let mut say = |phase: &mut Phase, next: Phase, content_: Content<'a>| {
            *phase = next;
            out.push(content(chat, Role::Assistant, content_));
        };
        if shown.phase == Phase::Unseen {
            shown.call = Some((call.name.clone(), call.server.clone(), call.origin));
            let start = Content::ToolCallPrepare { call: head(id, call), arguments_text: Cow::Borrowed("") };
            say(&mut shown.phase, Phase::Started, start);
        }
        if let Some(rest) = unseen(shown.sent, 0, &call.input_text) {
            shown.sent += rest.len();
            let more = Content::ToolCallPrepare { call: head(id, call), arguments_text: Cow::Borrowed(rest) };
            say(&mut shown.phase, Phase::Started, more);
        }
        if call.state == ToolState::Preparing {
            return;
        }
        if shown.phase < Phase::Run {
            let manual_approval = call.manual_approval;
            let run =
                Content::ToolCallRun { call: head(id, call), arguments: arguments(call), manual_approval };
            say(&mut shown.phase, Phase::Run, run);
        }
        let ran = matches!(call.state, ToolState::Running | ToolState::Done);
        if ran && shown.phase < Phase::Running {
            let running = Content::ToolCallRunning { call: head(id, call), arguments: arguments(call) };
            say(&mut shown.phase, Phase::Running, running);
        }
        if !ended || shown.phase == Phase::Over {
            return;
        }
        let last = call_end(id, call, shown.phase == Phase::Running);
        say(&mut shown.phase, Phase::Over, last);
    }
}

/// Always an object.
fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    call.input.as_ref().map_or_else(|| Cow::Owned(json!({})), Cow::Borrowed)
}

/// How a call is shown when it is over.
fn call_end(id: ItemId, call: &ToolCall, was_running: bool) -> Content<'_> {
    let rejected =
        |reason| Content::ToolCallRejected { call: head(id, call), arguments: arguments(call), reason };
    match &call.state {
        ToolState::Rejected { by: RejectedBy::User } => rejected("user-choice"),
        ToolState::Rejected { .. } => rejected("user-config"),
        ToolState::Stopped { unknown: false } if !was_running => rejected("user-choice"),
        _ => Content::ToolCalled {
            call: head(id, call),
            arguments: arguments(call),
            error: call.error,
            outputs: outputs(call),
            total_time_ms: call.millis,
        },
    }
}

/// The part of `text` (at `offset`) beyond the first `sent` bytes; `None` when there is nothing new or a gap.
fn unseen(sent: usize, offset: u64, text: &str) -> Option<&str> {
    let skip = sent.checked_sub(usize::try_from(offset).ok()?)?;
    text.get(skip..).filter(|rest| !rest.is_empty())
}

fn content<'a>(chat_id: &'a str, role: Role, content: Content<'a>) -> Out<'a> {
    Out::Content(ContentReceived { chat_id, role, content })
}

fn system<'a>(chat: &'a str, text: String) -> Out<'a> {
    content(chat, Role::System, Content::Text { text: Cow::Owned(text), content_id: None })
}

pub(crate) fn progress<'a>(chat: &'a str, text: &'a str) -> Out<'a> {
    content(chat, Role::System, Content::Progress { state: "running", text: Some(Cow::Borrowed(text)) })
}

/// The end of every turn, in both vocabularies.
pub(crate) fn finished<'a>(chat: &'a str, out: &mut Vec<Out<'a>>) {
    out.push(content(chat, Role::System, Content::Progress { state: "finished", text: None }));
    out.push(status(chat, "idle"));
}

fn status<'a>(chat: &str, status: &str) -> Out<'a> {
    Out::Plain { method: method::STATUS_CHANGED, params: json!({"chatId": chat, "status": status}) }
}

pub(crate) fn message<'a>(notice: &Notice) -> Out<'a> {
    let level = match notice.level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    Out::Plain { method: method::SHOW_MESSAGE, params: json!({"type": level, "message": notice.text}) }
}

/// What an ending says in the chat.
fn ending(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Done => None,
        Outcome::Stopped => Some("\nStopped.\n".into()),
        Outcome::MaxTokens => Some("\nThe model reached its output limit. Ask it to continue.\n".into()),
        Outcome::MaxSteps => Some("\nStopped: too many steps or the same call over and over.\n".into()),
        Outcome::Refused { reason } => Some(format!("\nThe model refused: {reason}\n")),
        Outcome::Failed { failure } => Some(format!("\n{failure}\n")),
        Outcome::Interrupted => Some("\nThis answer was interrupted.\n".into()),
    }
}

pub fn position(position: &Position) -> LinePosition {
    LinePosition { line: position.line, character: position.character }
}

/// The options of a question.
pub fn choices(options: &[Choice]) -> Vec<Value> {
    let choice = |option: &Choice| match &option.description {
        Some(description) => json!({"label": option.label, "description": description}),
        None => json!({"label": option.label}),
    };
    options.iter().map(choice).collect()
}

fn head(id: ItemId, call: &ToolCall) -> Call<'_> {
    Call {
        id: id.to_string(),
        name: Cow::Borrowed(&call.name),
        server: Cow::Borrowed(&call.server),
        origin: origin_name(call.origin),
        summary: &call.summary,
        details: call.details.as_ref().map(details),
    }
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Native => "native",
        Origin::Mcp => "mcp",
    }
}

fn details(details: &Details) -> Value {
    match details {
        Details::FileChange(change) => json!({
            "type": "fileChange",
            "path": change.path,
            "diff": change.diff,
            "linesAdded": change.lines_added,
            "linesRemoved": change.lines_removed,
        }),
        Details::Shell { commands } => {
            let commands: Vec<Value> = commands
                .iter()
                .map(|part| json!({"approvalKey": part.key, "remembered": part.remembered}))
                .collect();
            json!({"type": "shellCommand", "commands": commands})
        }
        Details::Tasks { entries } => tasks(entries),
        Details::Json { jsons } => json!({"type": "jsonOutputs", "jsons": jsons}),
        Details::Subagent { session, name, model, step, max_steps } => json!({
            "type": "subagent", "subagentChatId": session, "agentName": name, "model": model,
            "step": step, "maxSteps": max_steps,
        }),
    }
}

fn tasks(entries: &[PlanEntry]) -> Value {
    let count = |status| entries.iter().filter(|entry| entry.status == status).count();
    let busy: Vec<usize> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.status == PlanStatus::InProgress)
        .map(|(at, _)| at + 1)
        .collect();
    let tasks: Vec<Value> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let status = match entry.status {
                PlanStatus::Pending => "pending",
                PlanStatus::InProgress => "in-progress",
                PlanStatus::Done => "done",
            };
            json!({
                "id": at + 1, "subject": entry.text, "description": "", "status": status,
                "priority": entry.priority.as_deref().unwrap_or("medium"), "isBlocked": false,
            })
        })
        .collect();
    json!({
        "type": "task", "tasks": tasks, "inProgressTaskIds": busy,
        "summary": {
            "done": count(PlanStatus::Done), "inProgress": count(PlanStatus::InProgress),
            "pending": count(PlanStatus::Pending), "total": entries.len(),
        },
    })
}

fn outputs(call: &ToolCall) -> Vec<Output<'_>> {
    let unknown = matches!(call.state, ToolState::Stopped { unknown: true });
    let mut outputs: Vec<Output<'_>> = call
        .result
        .iter()
        .map(|part| match part {
            Part::Text { text } => Output { kind: "text", text: Cow::Borrowed(text) },
            Part::Image { mime, .. } => {
                Output { kind: "text", text: Cow::Owned(format!("(an image, {mime})")) }
            }
        })
        .collect();
    if unknown {
        let text = "Dragoman was killed while this ran; its outcome is unknown.";
        outputs.push(Output { kind: "text", text: Cow::Borrowed(text) });
    }
    if outputs.is_empty() {
        outputs.push(Output { kind: "text", text: Cow::Borrowed("") });
    }
    outputs
}

/// Costs are strings: a number breaks a client's mode line.
fn used(usage: &SessionUsage) -> Usage {
    let money = |cost: Option<f64>| {
        cost.map(|cost| format!("{cost:.6}").trim_end_matches('0').trim_end_matches('.').to_owned())
    };
    Usage {
        session_tokens: usage.last.all(),
        last_message_cost: money(usage.last_cost),
        message_cost: money(usage.last_cost),
        session_cost: money(usage.session_cost),
        limit: usage.context_limit.map(|context| Limit { context, output: usage.output_limit.unwrap_or(0) }),
    }
}
