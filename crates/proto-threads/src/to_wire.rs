//! From events to text and entries: the projection. No IO; streamed and listed answers are the same.
//!
//! The protocol knows text of the user and of the assistant, and files that were read; reasoning, tool calls and the
//! like have no place in it. Invariant: each byte of an answer is streamed once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::event::{Channel, EventBody, Fact};
use domain::item::{Item, ItemKind, Part};
use domain::store::SessionSummary;
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{Event, Failure, ItemId, Outcome, Recorded, TextCursor, TurnId};

use crate::wire::{Message, Role, ThreadEntry, ThreadMetadata};

/// The effect of an event on the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// More of an answer. Text of another item begins another paragraph.
    Text {
        turn: TurnId,
        item: ItemId,
        text: String,
    },
    Ended(TurnId, Result<(), Failure>),
    /// Every turn under way is over.
    Lost(Failure),
}

/// The streamed part of a thread's turns.
#[derive(Default)]
pub(crate) struct Projection {
    /// Turns that this connection began; others are not streamed.
    own: HashSet<TurnId>,
    turn: Option<TurnId>,
    cursors: HashMap<ItemId, TextCursor>,
}

impl Projection {
    pub(crate) fn mark_own_turn(&mut self, turn: TurnId) {
        self.own.insert(turn);
    }

    pub(crate) fn project(&mut self, event: &Event) -> Vec<Effect> {
        match &event.body {
            EventBody::Delta(delta) if delta.channel == Channel::Text => {
                self.append_text(delta.item, delta.offset, &delta.text).into_iter().collect()
            }
            EventBody::Fact(recorded) => self.fact(&recorded.fact),
            EventBody::Lost { failure } => vec![Effect::Lost(failure.clone())],
            EventBody::Delta(_) | EventBody::Progress { .. } | EventBody::Catalog(_) => Vec::new(),
        }
    }

    fn fact(&mut self, fact: &Fact) -> Vec<Effect> {
        match fact {
            Fact::TurnStarted { turn, .. } => {
                self.turn = Some(*turn);
                Vec::new()
            }
            Fact::TurnEnded { turn, outcome } => self.ended(*turn, outcome),
            Fact::ItemStarted { item } | Fact::ItemChanged { item } => self.item(item, false),
            Fact::ItemEnded { item } => self.item(item, true),
            Fact::ItemGrew { item, channel: Channel::Text, offset, text } => {
                self.append_text(*item, *offset, text).into_iter().collect()
            }
            Fact::ItemGrew { .. }
            | Fact::SessionOpened(_)
            | Fact::SessionChanged { .. }
            | Fact::HistoryReplaced { .. }
            | Fact::AskRaised { .. }
            | Fact::AskSettled { .. }
            | Fact::UsageChanged { .. }
            | Fact::Notice { .. }
            | Fact::TaintChanged { .. } => Vec::new(),
        }
    }

    fn item(&mut self, item: &Item, ended: bool) -> Vec<Effect> {
        let whole = ended || matches!(item.kind, ItemKind::AgentMessage { .. });
        match role_and_text(&item.kind).filter(|_| whole) {
            Some((Role::Assistant, text)) => self.append_text(item.id, 0, &text).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// `text` is at byte `offset` of the item's text; sends what was not sent.
    fn append_text(&mut self, item: ItemId, offset: u64, text: &str) -> Option<Effect> {
        let turn = self.turn.filter(|turn| self.own.contains(turn))?;
        let rest = self.cursors.entry(item).or_default().advance(offset, text)?;
        Some(Effect::Text { turn, item, text: rest.to_owned() })
    }

    fn ended(&mut self, turn: TurnId, outcome: &Outcome) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.own.remove(&turn) {
            let text = outcome_text(outcome).map(str::to_owned);
            out.extend(text.map(|text| Effect::Text { turn, item: ItemId(u64::MAX), text }));
        }
        self.turn = None;
        self.cursors.clear();
        out.push(Effect::Ended(
            turn,
            match outcome {
                Outcome::Failed { failure } => Err(failure.clone()),
                Outcome::Refused { reason } => {
                    Err(Failure::provider(format!("The model refused to answer: {reason}")))
                }
                Outcome::Interrupted => Err(Failure::interrupted()),
                Outcome::Done
                | Outcome::Stopped
                | Outcome::MaxTokens
                | Outcome::MaxSteps
                | Outcome::Repeating => Ok(()),
            },
        ));
        out
    }
}

fn outcome_text(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Stopped => Some("Stopped."),
        Outcome::MaxTokens => Some("The model reached its output limit. Ask it to continue."),
        Outcome::MaxSteps => Some("Stopped: too many steps."),
        Outcome::Repeating => Some("Stopped: the same call over and over."),
        Outcome::Done | Outcome::Interrupted | Outcome::Refused { .. } | Outcome::Failed { .. } => None,
    }
}

/// The text of an item and the role that it belongs to.
fn role_and_text(kind: &ItemKind) -> Option<(Role, String)> {
    match kind {
        ItemKind::UserMessage { text, .. } | ItemKind::Command { text } => Some((Role::User, text.clone())),
        ItemKind::AgentMessage { text, .. } | ItemKind::SystemText { text } => {
            Some((Role::Assistant, text.clone()))
        }
        ItemKind::Citation { title, url } => Some((Role::Assistant, format!("[{title}]({url})"))),
        ItemKind::Note(note) => Some((Role::Assistant, note.text.clone())),
        ItemKind::Reasoning { .. }
        | ItemKind::ToolCall(_)
        | ItemKind::Compaction { .. }
        | ItemKind::Hook(_)
        | ItemKind::Flag { .. } => None,
    }
}

/// A stored chat as the entries of a thread.
pub(crate) fn entries(facts: Vec<Arc<Recorded>>) -> Vec<ThreadEntry> {
    entries_with(facts, Vec::new())
}

/// The same with what the client itself read in the thread, and when.
pub(crate) fn entries_with(facts: Vec<Arc<Recorded>>, reads: Vec<(u64, ThreadEntry)>) -> Vec<ThreadEntry> {
    let effective = domain::replay::visible_facts(facts);
    let stored = effective.iter().filter_map(|recorded| {
        let Fact::ItemEnded { item } = &recorded.fact else { return None };
        Some((recorded.at, entry(&item.kind)?))
    });
    let mut all: Vec<(u64, ThreadEntry)> = stored.chain(reads).collect();
    // Stable: what the journal has in order stays in order.
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, entry)| entry).collect()
}

fn entry(kind: &ItemKind) -> Option<ThreadEntry> {
    if let ItemKind::ToolCall(call) = kind {
        return file_read(call);
    }
    let (role, text) = role_and_text(kind).filter(|(_, text)| !text.is_empty())?;
    Some(ThreadEntry::Message(Message::text(role, text)))
}

/// A file that was read in the thread.
fn file_read(call: &ToolCall) -> Option<ThreadEntry> {
    let read = call.name == "read_file" && call.origin == Origin::Native;
    if !read || call.error || call.state != ToolState::Done {
        return None;
    }
    let path = call.locations.first().map(|location| location.path.display().to_string());
    let path = path.or_else(|| call.input.as_ref()?.get("path")?.as_str().map(str::to_owned))?;
    let texts = call.result.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    Some(ThreadEntry::ReadFile { path, content: texts.collect() })
}

pub(crate) fn metadata(chat: SessionSummary) -> ThreadMetadata {
    ThreadMetadata {
        id: chat.id.to_string(),
        title: chat.title.unwrap_or_else(|| "Untitled".to_owned()),
        modified_at: time(chat.updated_at),
    }
}

/// RFC 3339.
fn time(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}
