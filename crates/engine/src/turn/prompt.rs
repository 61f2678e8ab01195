//! What the model is sent, made from the state of the session.
//!
//! Invariants: an equal history makes equal entries; a longer one begins with the entries of the shorter one, so that
//! the provider's cache holds; every tool call has exactly one result.

use domain::item::{Item, ItemKind, Part};
use domain::model::PromptEntry;
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use serde_json::Value;

use crate::session::state::State;
use crate::subagents::relay::is_relayed;
use crate::tool_search::as_carried;

/// An entry with its key, see [`domain::model::WrittenHistory`].
type Keyed = (u64, PromptEntry);

/// The history from the last compaction on. `is_carried`: tools of servers are called by the carrier, so earlier calls of
/// them are shown that way too, however they were made.
pub(crate) fn entries(state: &State, is_carried: bool) -> Vec<PromptEntry> {
    keyed_entries(state, is_carried).into_iter().map(|(_, entry)| entry).collect()
}

/// The same, with the key of each entry.
pub(crate) fn keyed_entries(state: &State, is_carried: bool) -> Vec<Keyed> {
    let items = state.items();
    let start = items.iter().rposition(|item| matches!(item.kind, ItemKind::Compaction { .. })).unwrap_or(0);
    let mut entries = Vec::with_capacity(items.len() - start);
    let mut results = Vec::new();
    let mut answer = None;
    // A bookmark may have been set in the middle of an answer, and a subagent may have asked for a call of its own.
    let is_part = |item: &Item| !matches!(item.kind, ItemKind::Flag { .. }) && !is_relayed(item);
    for (stamp, item) in state.stamped_items().skip(start).filter(|(_, item)| is_part(item)) {
        if answer != Some((item.turn, item.step)) {
            entries.append(&mut results);
            answer = Some((item.turn, item.step));
        }
        let key = stamp << 2 | u64::from(is_carried) << 1;
        add_item(key, item, is_carried, &mut entries, &mut results);
    }
    entries.append(&mut results);
    entries
}

/// Adds what an item says to the model; results of calls wait until the answer they belong to is whole.
fn add_item(key: u64, item: &Item, is_carried: bool, entries: &mut Vec<Keyed>, results: &mut Vec<Keyed>) {
    match &item.kind {
        ItemKind::UserMessage { parts, .. } => {
            entries.append(results);
            entries.push((key, PromptEntry::User { parts: parts.clone() }));
        }
        ItemKind::AgentMessage { text, provider, .. } if !text.is_empty() => {
            entries.push((key, PromptEntry::Agent { text: text.clone(), provider: provider.clone() }));
        }
        ItemKind::Reasoning { text, provider, .. } => {
            entries.push((key, PromptEntry::Reasoning { text: text.clone(), provider: provider.clone() }));
        }
        ItemKind::ToolCall(call) => {
            let [call, result] = call_and_result(item, call, is_carried);
            entries.push((key, call));
            results.push((key | 1, result));
        }
        ItemKind::Compaction { summary, kept } => {
            let mut parts = kept.clone();
            parts.push(Part::text(format!("Summary of the conversation so far:\n{summary}")));
            entries.push((key, PromptEntry::User { parts }));
        }
        // For people only.
        ItemKind::AgentMessage { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Flag { .. } => {}
    }
}

fn call_and_result(item: &Item, call: &ToolCall, is_carried: bool) -> [PromptEntry; 2] {
    // Our own id keeps the pair unique where a provider repeats or omits ids.
    let call_id = if call.call_id.is_empty() { item.id.to_string() } else { call.call_id.clone() };
    let input = call.input.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let (name, input) = match is_carried {
        true => as_carried(call, input),
        false => (format!("{}__{}", call.server, call.name), input),
    };
    let provider = call.provider.clone();
    let result = (call_id.clone(), name.clone());
    [
        PromptEntry::Call { call_id, name, input, provider },
        PromptEntry::Result { call_id: result.0, name: result.1, parts: result_of(call), error: call.error },
    ]
}

/// The result of a call for the model, however the call ended.
fn result_of(call: &ToolCall) -> Vec<Part> {
    if !call.result.is_empty() {
        return call.result.clone();
    }
    let text = match &call.state {
        ToolState::Done => "(no output)",
        ToolState::Rejected { by: RejectedBy::User } => "The user rejected this call. It was not run.",
        ToolState::Rejected { by: RejectedBy::Hook } => {
            "A hook of the user rejected this call. It was not run."
        }
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
