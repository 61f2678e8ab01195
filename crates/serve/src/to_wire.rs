//! The projection: events of the engine as the events of a page, and the JSON of chats.
//!
//! Must not know requests. Invariants: a stored chat goes through the same functions as a live one; text that somebody
//! agrees to (calls, questions) has no hidden character.

use std::collections::HashMap;

use domain::ask::{Answer, Ask, AskKind};
use domain::command::{Catalog, SessionInfo};
use domain::event::{Channel, SessionUsage};
use domain::item::{Item, ItemKind, Part, PlanEntry, PlanStatus};
use domain::store::SessionSummary;
use domain::tool_call::{Details, Origin, RejectedBy, ToolCall, ToolState};
use domain::{
    Event, EventBody, Fact, Failure, FailureKind, ItemId, Level, Notice, Outcome, Recorded, TextCursor,
    visible_source, visible_value,
};
use serde_json::{Value, json};

use crate::chats::key_of;

/// The longest result, difference or hook output that a page is sent, in bytes.
const LONGEST_TEXT: usize = 128 * 1024;

/// One event for a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageEvent {
    pub(crate) name: &'static str,
    pub(crate) data: Value,
}

/// The projection of one chat for one page.
#[derive(Default)]
pub(crate) struct Projection {
    /// How much of each streamed text the page has.
    cursors: HashMap<(ItemId, Channel), TextCursor>,
}

impl Projection {
    pub(crate) fn event(&mut self, event: &Event) -> Option<PageEvent> {
        match &event.body {
            EventBody::Fact(recorded) => self.fact(recorded),
            EventBody::Delta(delta) => self.grow(delta.item, delta.channel, delta.offset, &delta.text),
            EventBody::Progress { text } => told("progress", json!({"text": text})),
            EventBody::Lost { failure } => told("lost", failure_value(failure)),
            EventBody::Catalog(_) => None,
        }
    }

    /// `None`: nothing that a page shows.
    pub(crate) fn fact(&mut self, recorded: &Recorded) -> Option<PageEvent> {
        match &recorded.fact {
            Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => {
                self.begin_texts(item);
                let mut value = item_value(item);
                value["at"] = json!(recorded.at);
                value["isOpen"] = json!(!matches!(recorded.fact, Fact::ItemEnded { .. }));
                told("item", value)
            }
            Fact::ItemGrew { item, channel, offset, text } => self.grow(*item, *channel, *offset, text),
            Fact::TurnStarted { turn, model } => {
                told("turn", json!({"turn": turn.to_string(), "state": "started", "model": model}))
            }
            Fact::TurnEnded { turn, outcome } => {
                let (outcome, message) = outcome_words(outcome);
                told(
                    "turn",
                    json!({
                        "turn": turn.to_string(), "state": "ended", "outcome": outcome, "message": message,
                    }),
                )
            }
            Fact::AskRaised { ask } => told("ask", ask_value(ask)),
            Fact::AskSettled { id, answer } => {
                told("settled", json!({"ask": id.to_string(), "answer": answer_value(answer)}))
            }
            Fact::UsageChanged { usage } => told("usage", usage_value(usage)),
            Fact::Notice { notice } => {
                let mut value = notice_value(notice);
                value["at"] = json!(recorded.at);
                value["number"] = json!(recorded.number);
                told("notice", value)
            }
            Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::HistoryReplaced { .. }
            | Fact::TaintChanged { .. } => None,
        }
    }

    /// A whole item brings the texts that it has; what grows later goes on behind them.
    fn begin_texts(&mut self, item: &Item) {
        for channel in [Channel::Text, Channel::Reasoning, Channel::ToolInput, Channel::ToolOutput] {
            if let Some(text) = item.channel_text(channel) {
                self.cursors.insert((item.id, channel), TextCursor::at(text.len()));
            }
        }
    }

    fn grow(&mut self, item: ItemId, channel: Channel, offset: u64, text: &str) -> Option<PageEvent> {
        let cursor = self.cursors.get_mut(&(item, channel))?;
        // The journal has the output of a tool only when the tool has ended: what was missed is not waited for.
        let gap = if channel == Channel::ToolOutput && cursor.skip_to(offset) { GAP } else { "" };
        let new = cursor.advance(offset, text)?;
        let (channel, text) = match channel {
            Channel::Text => ("text", new.to_owned()),
            Channel::Reasoning => ("reasoning", new.to_owned()),
            Channel::ToolInput => ("input", visible_source(new).into_owned()),
            Channel::ToolOutput => ("output", format!("{gap}{}", visible_source(new))),
        };
        told("grow", json!({"item": item.to_string(), "channel": channel, "text": text}))
    }
}

/// Stands for live output that this page has missed.
const GAP: &str = "[…]\n";

#[allow(clippy::unnecessary_wraps, reason = "each arm of the projection ends with it")]
fn told(name: &'static str, data: Value) -> Option<PageEvent> {
    Some(PageEvent { name, data })
}

pub(crate) fn chat_value(info: &SessionInfo) -> Value {
    json!({
        "key": key_of(&info.id),
        "id": info.id.as_str(),
        "title": info.settings.title,
        "folders": info.workspace,
        "model": info.settings.model,
        "behavior": info.settings.behavior,
        "isBusy": info.busy,
        "attachedTo": info.attached_to,
        "heldBy": info.held_by,
        "usage": usage_value(&info.usage),
        "createdAt": info.created_at,
        "updatedAt": info.updated_at,
    })
}

pub(crate) fn summary_value(chat: &SessionSummary) -> Value {
    json!({
        "key": key_of(&chat.id),
        "id": chat.id.as_str(),
        "title": chat.title,
        "folders": chat.workspace,
        "model": chat.model,
        "parent": chat.parent.as_ref().map(key_of),
        "messages": chat.message_count,
        "createdAt": chat.created_at,
        "updatedAt": chat.updated_at,
    })
}

pub(crate) fn catalog_value(catalog: &Catalog) -> Value {
    json!({
        "models": catalog.models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(),
        "behaviors": catalog.behaviors,
        "defaultModel": catalog.default_model,
        "defaultBehavior": catalog.default_behavior,
        "notices": catalog.notices.iter().map(notice_value).collect::<Vec<_>>(),
    })
}

pub(crate) fn usage_value(usage: &SessionUsage) -> Value {
    let spent = usage.spent.iter().map(|spent| {
        json!({
            "purpose": spent.purpose, "model": spent.model, "calls": spent.calls,
            "inputTokens": spent.tokens.input + spent.tokens.cache_read + spent.tokens.cache_write,
            "outputTokens": spent.tokens.output, "costUsd": spent.cost,
        })
    });
    json!({
        "costUsd": usage.session_cost,
        "lastCostUsd": usage.last_cost,
        "contextTokens": usage.last.all(),
        "contextLimit": usage.context_limit,
        "inputTokens": usage.total.input + usage.total.cache_read + usage.total.cache_write,
        "cachedTokens": usage.total.cache_read,
        "outputTokens": usage.total.output,
        "spent": spent.collect::<Vec<_>>(),
    })
}

pub(crate) fn task_values(entries: &[PlanEntry]) -> Vec<Value> {
    let task = |entry: &PlanEntry| {
        let status = match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "inProgress",
            PlanStatus::Done => "done",
        };
        json!({"text": entry.text, "status": status, "priority": entry.priority})
    };
    entries.iter().map(task).collect()
}

pub(crate) fn answer_value(answer: &Answer) -> Value {
    match answer {
        Answer::Allow { remember } => json!({"type": "allow", "remember": remember}),
        Answer::Deny { remember, reason } => json!({"type": "deny", "remember": remember, "reason": reason}),
        Answer::Text { text } => json!({"type": "text", "text": text}),
        Answer::Form { data } => json!({"type": "form", "data": data}),
        Answer::Cancelled => json!({"type": "cancelled"}),
    }
}

pub(crate) fn failure_value(failure: &Failure) -> Value {
    let kind = match failure.kind {
        FailureKind::User => "invalid",
        FailureKind::Taken => "taken",
        FailureKind::Config => "config",
        FailureKind::Auth => "auth",
        FailureKind::Quota => "quota",
        FailureKind::Provider => "provider",
        FailureKind::Tool => "tool",
        FailureKind::Internal => "internal",
    };
    json!({"kind": kind, "message": failure.message, "hint": failure.hint})
}

fn notice_value(notice: &Notice) -> Value {
    let level = match notice.level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    json!({"level": level, "text": notice.text})
}

fn outcome_words(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Done => ("done", None),
        Outcome::Stopped => ("stopped", None),
        Outcome::MaxTokens => ("maxTokens", None),
        Outcome::MaxSteps => ("maxSteps", None),
        Outcome::Repeating => ("repeating", None),
        Outcome::Refused { reason } => ("refused", Some(reason.clone())),
        Outcome::Failed { failure } => ("failed", Some(failure.to_string())),
        Outcome::Interrupted => ("interrupted", None),
    }
}

fn ask_value(ask: &Ask) -> Value {
    let mut value = match &ask.kind {
        AskKind::Approval { reason, keys } => {
            let keys: Vec<_> = keys.iter().map(|key| visible_source(key)).collect();
            json!({"type": "approval", "text": visible_source(reason), "remembers": keys})
        }
        AskKind::Question { text, options, freeform, .. } => {
            let option = |choice: &domain::ask::Choice| json!({"label": choice.label, "description": choice.description});
            json!({
                "type": "question", "text": visible_source(text), "isFree": freeform,
                "options": options.iter().map(option).collect::<Vec<_>>(),
            })
        }
        AskKind::Form { text, schema } => {
            json!({"type": "form", "text": visible_source(text), "schema": visible_value(schema)})
        }
    };
    value["ask"] = json!(ask.id.to_string());
    value["item"] = json!(ask.item.map(|item| item.to_string()));
    value
}

fn item_value(item: &Item) -> Value {
    let mut value = match &item.kind {
        ItemKind::UserMessage { text, parts } => {
            let images = parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
            json!({"type": "user", "text": text, "images": images})
        }
        ItemKind::AgentMessage { text, interrupted, .. } => {
            json!({"type": "agent", "text": text, "isCut": interrupted})
        }
        ItemKind::Reasoning { text, millis, .. } => {
            json!({"type": "reasoning", "text": text, "millis": millis})
        }
        ItemKind::ToolCall(call) => call_value(call),
        ItemKind::Citation { title, url } => json!({"type": "citation", "title": title, "url": url}),
        ItemKind::Compaction { summary, .. } => json!({"type": "compaction", "text": summary}),
        ItemKind::Command { text } => json!({"type": "command", "text": text}),
        ItemKind::SystemText { text } => json!({"type": "system", "text": text}),
        ItemKind::Note(note) => json!({"type": "system", "text": note.text}),
        ItemKind::Hook(run) => json!({
            "type": "hook", "name": run.name, "status": run.status,
            "text": shorten(&format!("{}{}", run.output, run.error)),
        }),
        ItemKind::Flag { text } => json!({"type": "flag", "text": text}),
    };
    value["item"] = json!(item.id.to_string());
    value["turn"] = json!(item.turn.to_string());
    value["parent"] = json!(item.parent.map(|parent| parent.to_string()));
    value
}

fn call_value(call: &ToolCall) -> Value {
    let (state, by) = match call.state {
        ToolState::Preparing => ("preparing", None),
        ToolState::Waiting { .. } => ("waiting", None),
        ToolState::Running => ("running", None),
        ToolState::Done => ("done", None),
        ToolState::Rejected { by: RejectedBy::User } => ("rejected", Some("user")),
        ToolState::Rejected { by: RejectedBy::Policy } => ("rejected", Some("policy")),
        ToolState::Rejected { by: RejectedBy::Hook } => ("rejected", Some("hook")),
        ToolState::Rejected { by: RejectedBy::Unasked } => ("rejected", Some("unasked")),
        ToolState::Stopped { unknown: false } => ("stopped", None),
        ToolState::Stopped { unknown: true } => ("unknown", None),
    };
    let result: String = call
        .result
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "[image]",
        })
        .collect::<Vec<_>>()
        .join("\n");
    json!({
        "type": "call",
        "name": call.name,
        "server": (call.origin == Origin::Mcp).then_some(call.server.as_str()),
        "state": state,
        "rejectedBy": by,
        "summary": visible_source(&call.summary),
        "input": call.input.as_ref().map(visible_value),
        "inputText": if call.input.is_none() { visible_source(&call.input_text) } else { "".into() },
        "output": visible_source(&call.live_output),
        "result": shorten(&visible_source(&result)),
        "isError": call.error,
        "millis": call.millis,
        "details": call.details.as_ref().map(details_value),
    })
}

fn details_value(details: &Details) -> Value {
    match details {
        Details::FileChange(change) => json!({
            "type": "file", "path": visible_source(&change.path.to_string_lossy()),
            "diff": shorten(&visible_source(&change.diff)),
            "added": change.lines_added, "removed": change.lines_removed,
        }),
        Details::Shell { commands } => {
            json!({"type": "shell", "commands": commands.iter().map(|part| visible_source(&part.key)).collect::<Vec<_>>()})
        }
        Details::Tasks { entries } => json!({"type": "tasks", "tasks": task_values(entries)}),
        Details::Json { jsons } => {
            json!({"type": "json", "texts": jsons.iter().map(|text| shorten(&visible_source(text))).collect::<Vec<_>>()})
        }
        Details::Subagent { session, name, model, step, max_steps } => json!({
            "type": "subagent", "chat": key_of(session), "name": name, "model": model, "step": step,
            "maxSteps": max_steps,
        }),
    }
}

/// The beginning of a long text, with a note that it is one.
fn shorten(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_TEXT);
    format!("{}\n… {} KiB more", &text[..end], (text.len() - end) / 1024)
}
