//! A chat as its journal tells it: the fold of facts into items, settings and usage, and the prompt made from it.
//!
//! Invariants: folding is pure; an equal history makes an equal prompt; a longer one begins with the shorter one's
//! entries; every tool call has exactly one result in the prompt.

use std::collections::HashMap;
use std::path::PathBuf;

use domain::command::SessionSettings;
use domain::event::{Fact, SessionUsage};
use domain::item::{Item, ItemKind, Part};
use domain::model::PromptEntry;
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use domain::{Ask, AskId, ItemId, Outcome, Recorded, SessionId, TurnId};
use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub struct History {
    pub items: Vec<Item>,
    pub workspace: Vec<PathBuf>,
    pub parent: Option<SessionId>,
    pub settings: SessionSettings,
    pub usage: SessionUsage,
    pub asks: HashMap<AskId, Ask>,
    /// A turn without an end: it runs, or its process died.
    pub open_turn: Option<TurnId>,
    pub next_item: u64,
    pub next_turn: u64,
    pub next_ask: u64,
    pub newest: u64,
    pub created_at: u64,
    pub updated_at: u64,
    /// Items started and not ended.
    open: Vec<ItemId>,
}

impl History {
    pub fn fold(&mut self, recorded: &Recorded) {
        self.newest = recorded.number;
        self.updated_at = recorded.at;
        match &recorded.fact {
            Fact::SessionOpened(opened) => {
                self.workspace = opened.workspace.clone();
                self.settings = opened.settings.clone();
                self.parent = opened.parent.clone();
                self.created_at = recorded.at;
            }
            Fact::SessionChanged { change } => self.settings.apply(change),
            Fact::TurnStarted { turn, .. } => {
                self.open_turn = Some(*turn);
                self.next_turn = self.next_turn.max(turn.0);
            }
            Fact::TurnEnded { .. } => {
                self.open_turn = None;
                self.open.clear();
            }
            Fact::ItemStarted { item } => {
                self.open.push(item.id);
                self.put(item.clone());
            }
            Fact::ItemChanged { item } => self.put(item.clone()),
            Fact::ItemGrew { item, channel, offset, text } => self.grow(*item, *channel, *offset, text),
            Fact::ItemEnded { item } => {
                self.open.retain(|id| *id != item.id);
                self.put(item.clone());
            }
            Fact::HistoryReplaced { keep } => self.cut(*keep),
            Fact::AskRaised { ask } => {
                self.next_ask = self.next_ask.max(ask.id.0);
                self.asks.insert(ask.id, ask.clone());
            }
            Fact::AskSettled { id, .. } => {
                self.asks.remove(id);
            }
            Fact::UsageChanged { usage } => self.usage = usage.clone(),
            Fact::Notice { .. } => {}
        }
    }

    /// Adds an item or replaces the one with its id.
    pub fn put(&mut self, item: Item) {
        if item.id.0 > self.next_item || self.items.is_empty() {
            // Ids only grow, so a new one is not in the list.
            self.next_item = self.next_item.max(item.id.0);
            self.items.push(item);
            return;
        }
        match self.items.iter_mut().rev().find(|known| known.id == item.id) {
            Some(known) => *known = item,
            None => self.items.push(item),
        }
    }

    fn grow(&mut self, id: ItemId, channel: domain::event::Channel, offset: u64, text: &str) {
        let Some(item) = self.items.iter_mut().rev().find(|item| item.id == id) else { return };
        if let Some(whole) = item.channel_text_mut(channel)
            && whole.len() as u64 == offset
        {
            whole.push_str(text);
        }
    }

    fn cut(&mut self, keep: Option<ItemId>) {
        let length = match keep {
            None => 0,
            Some(keep) => {
                self.items.iter().position(|item| item.id == keep).map_or(self.items.len(), |at| at + 1)
            }
        };
        self.items.truncate(length);
        self.open.retain(|id| self.items.iter().any(|item| item.id == *id));
    }

    /// The facts that close what a dead process left open. Empty when nothing is open.
    pub fn closing_facts(&self) -> Vec<Fact> {
        let Some(turn) = self.open_turn else { return Vec::new() };
        let mut facts: Vec<Fact> = self
            .asks
            .keys()
            .map(|id| Fact::AskSettled { id: *id, answer: domain::Answer::Cancelled })
            .collect();
        for item in self.items.iter().filter(|item| self.open.contains(&item.id)) {
            facts.push(Fact::ItemEnded { item: interrupted(item.clone()) });
        }
        facts.push(Fact::TurnEnded { turn, outcome: Outcome::Interrupted });
        facts
    }

    /// What the model is sent.
    pub fn entries(&self) -> Vec<PromptEntry> {
        let start =
            self.items.iter().rposition(|item| matches!(item.kind, ItemKind::Compaction { .. })).unwrap_or(0);
        let mut entries = Vec::with_capacity(self.items.len() - start);
        let mut results = Vec::new();
        let mut step = None;
        for item in &self.items[start..] {
            let place = (item.turn, item.step);
            if step != Some(place) {
                entries.append(&mut results);
                step = Some(place);
            }
            entry_of(item, &mut entries, &mut results);
        }
        entries.append(&mut results);
        entries
    }

    /// User and agent messages, for lists.
    pub fn message_count(&self) -> usize {
        self.items
            .iter()
            .filter(|item| matches!(item.kind, ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. }))
            .count()
    }
}

fn interrupted(mut item: Item) -> Item {
    match &mut item.kind {
        ItemKind::AgentMessage { interrupted, .. } => *interrupted = true,
        ItemKind::ToolCall(call) => {
            if let Ok(state) = domain::tool_call::next(&call.state, domain::tool_call::ToolInput::Crashed) {
                call.state = state;
            }
            call.error = true;
        }
        _ => {}
    }
    item
}

/// Adds what an item says to the model; results of calls wait until the answer they belong to is whole.
fn entry_of(item: &Item, entries: &mut Vec<PromptEntry>, results: &mut Vec<PromptEntry>) {
    match &item.kind {
        ItemKind::UserMessage { parts, .. } => {
            entries.append(results);
            entries.push(PromptEntry::User { parts: parts.clone() });
        }
        ItemKind::AgentMessage { text, provider, .. } if !text.is_empty() => {
            entries.push(PromptEntry::Agent { text: text.clone(), provider: provider.clone() });
        }
        ItemKind::Reasoning { text, provider, .. } => {
            entries.push(PromptEntry::Reasoning { text: text.clone(), provider: provider.clone() });
        }
        ItemKind::ToolCall(call) => {
            // Our own id keeps the pair unique where a provider repeats or omits ids.
            let call_id = if call.call_id.is_empty() { item.id.to_string() } else { call.call_id.clone() };
            let name = format!("{}__{}", call.server, call.name);
            let input = call.input.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            let provider = call.provider.clone();
            entries.push(PromptEntry::Call { call_id: call_id.clone(), name: name.clone(), input, provider });
            results.push(PromptEntry::Result { call_id, name, parts: result_of(call), error: call.error });
        }
        ItemKind::Compaction { summary, kept } => {
            let mut parts = kept.clone();
            parts.push(Part::text(format!("Summary of the conversation so far:\n{summary}")));
            entries.push(PromptEntry::User { parts });
        }
        ItemKind::AgentMessage { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. } => {}
    }
}

/// What the model is told of a call, whatever became of it.
fn result_of(call: &ToolCall) -> Vec<Part> {
    if !call.result.is_empty() {
        return call.result.clone();
    }
    let text = match &call.state {
        ToolState::Done => "(no output)",
        ToolState::Rejected { by: RejectedBy::User } => "The user rejected this call. It was not run.",
        ToolState::Rejected { by: RejectedBy::Policy | RejectedBy::Unasked } => {
            "The user's configuration forbids this call. It was not run."
        }
        ToolState::Stopped { unknown: true } => {
            "Dragoman was killed while this ran; its outcome is unknown. Check before you repeat it."
        }
        ToolState::Stopped { unknown: false } | ToolState::Preparing | ToolState::Waiting { .. } => {
            "The user stopped the turn before this call ran."
        }
        ToolState::Running => "This call did not finish.",
    };
    vec![Part::text(text)]
}
