//! What the model is sent, made from the state of the session.
//!
//! Invariants: an equal history makes equal entries; a longer one begins with the entries of the shorter one, so that
//! the provider's cache holds; every tool call has exactly one result.

use domain::item::{Item, ItemKind, Part};
use domain::model::PromptEntry;
use domain::tool_call::{RejectedBy, ToolCall, ToolState};
use serde_json::Value;
use session::state::State;

use super::cleared;
use super::goal_run::{is_check, succeeded};
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
    let cleared = cleared::cleared_before(&items[start..]);
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
        let is_cleared = Some(item.id) < cleared;
        let key = stamp << 3 | u64::from(is_cleared) << 2 | u64::from(is_carried) << 1;
        let form = Form { is_carried, is_cleared };
        add_item(key, item, form, &mut entries, &mut results);
    }
    entries.append(&mut results);
    entries
}

/// How an item is shown to the model.
#[derive(Clone, Copy)]
struct Form {
    is_carried: bool,
    /// Results are left out.
    is_cleared: bool,
}

/// Adds what an item says to the model; results of calls wait until the answer they belong to is whole.
fn add_item(key: u64, item: &Item, form: Form, entries: &mut Vec<Keyed>, results: &mut Vec<Keyed>) {
    match &item.kind {
        ItemKind::UserMessage { parts, .. } => {
            entries.append(results);
            entries.push((key, PromptEntry::User { parts: parts.clone() }));
        }
        ItemKind::Note(note) if !note.parts.is_empty() => {
            entries.append(results);
            entries.push((key, PromptEntry::User { parts: note.parts.clone() }));
        }
        ItemKind::ToolCall(call) if is_check(call) => {
            entries.append(results);
            entries.push((key, PromptEntry::User { parts: check_report(call) }));
        }
        ItemKind::AgentMessage { text, provider, .. } if !text.is_empty() => {
            entries.push((key, PromptEntry::Agent { text: text.clone(), provider: provider.clone() }));
        }
        ItemKind::Reasoning { text, provider, .. } => {
            entries.push((key, PromptEntry::Reasoning { text: text.clone(), provider: provider.clone() }));
        }
        ItemKind::ToolCall(call) => {
            let [call, result] = call_and_result(item, call, form);
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
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => {}
    }
}

fn call_and_result(item: &Item, call: &ToolCall, form: Form) -> [PromptEntry; 2] {
    // Our own id keeps the pair unique where a provider repeats or omits ids.
    let call_id = if call.call_id.is_empty() { item.id.to_string() } else { call.call_id.clone() };
    let input = call.input.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let (name, input) = match form.is_carried {
        true => as_carried(call, input),
        false => (format!("{}__{}", call.server, call.name), input),
    };
    let provider = call.provider.clone();
    let (result_id, result_name) = (call_id.clone(), name.clone());
    let parts = match form.is_cleared {
        true => cleared::without_result(item, call).unwrap_or_else(|| result_of(call)),
        false => result_of(call),
    };
    [
        PromptEntry::Call { call_id, name, input, provider },
        PromptEntry::Result { call_id: result_id, name: result_name, parts, error: call.error },
    ]
}

/// The result of a call for the model, however the call ended.
pub(super) fn result_of(call: &ToolCall) -> Vec<Part> {
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

/// What the model gets of a check.
fn check_report(call: &ToolCall) -> Vec<Part> {
    let command = call.input.as_ref().and_then(|input| input["command"].as_str()).unwrap_or_default();
    let said = if succeeded(call) { "It succeeded" } else { "It did not succeed" };
    let opening = Part::text(format!("The check of the goal was run: `{command}`. {said}:"));
    std::iter::once(opening).chain(result_of(call)).collect()
}

#[cfg(test)]
mod tests {
    use domain::event::Fact;
    use domain::tool_call::Origin;
    use domain::{ItemId, TurnId};
    use serde_json::json;

    use super::*;

    /// The state of items that were added one after the other, each with its step.
    fn state(items: Vec<(u32, ItemKind)>) -> State {
        let mut state = State::default();
        for (number, (step, kind)) in (1..).zip(items) {
            let item = Item { id: ItemId(number), turn: TurnId(1), step, parent: None, kind };
            state.fold(number, &Fact::ItemEnded { item });
        }
        state
    }

    fn user(text: &str) -> ItemKind {
        ItemKind::UserMessage { text: text.into(), parts: vec![Part::text(text)] }
    }

    fn agent(text: &str) -> ItemKind {
        ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None }
    }

    fn call(name: &str, state: ToolState, result: Option<&str>) -> ItemKind {
        let mut call = ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
        call.state = state;
        call.result = result.map(Part::text).into_iter().collect();
        call.input = Some(json!({"a": 1}));
        ItemKind::ToolCall(Box::new(call))
    }

    fn described(state: &State) -> Vec<String> {
        let text = |parts: &[Part]| match parts.first() {
            Some(Part::Text { text }) => text.clone(),
            Some(Part::Image { .. }) | None => String::new(),
        };
        let entries = entries(state, false).into_iter().map(|entry| match entry {
            PromptEntry::User { parts } => format!("user {}", text(&parts)),
            PromptEntry::Agent { text, .. } => format!("agent {text}"),
            PromptEntry::Reasoning { text, .. } => format!("thinks {text}"),
            PromptEntry::Call { name, call_id, .. } => format!("{call_id} calls {name}"),
            PromptEntry::Result { parts, call_id, .. } => format!("{call_id} gave {}", text(&parts)),
        });
        entries.collect()
    }

    #[test]
    fn results_stand_behind_the_answer_that_made_the_calls() {
        let state = state(vec![
            (0, user("go")),
            (1, agent("I look")),
            (1, call("read", ToolState::Done, Some("one"))),
            (1, call("grep", ToolState::Done, Some("two"))),
            (2, agent("done")),
        ]);
        let expected = [
            "user go",
            "agent I look",
            "item-3 calls eca__read",
            "item-4 calls eca__grep",
            "item-3 gave one",
            "item-4 gave two",
            "agent done",
        ];
        assert_eq!(described(&state), expected);
    }

    #[test]
    fn every_call_has_a_result_however_it_ended() {
        for (ended, words) in [
            (ToolState::Done, "(no output)"),
            (ToolState::Rejected { by: RejectedBy::User }, "The user rejected"),
            (ToolState::Rejected { by: RejectedBy::Hook }, "A hook"),
            (ToolState::Rejected { by: RejectedBy::Policy }, "configuration forbids"),
            (ToolState::Stopped { unknown: true }, "its outcome is unknown"),
            (ToolState::Stopped { unknown: false }, "stopped the turn"),
            (ToolState::Running, "did not finish"),
        ] {
            let described = described(&state(vec![(1, call("read", ended.clone(), None))]));
            assert!(described.len() == 2 && described[1].contains(words), "{ended:?}: {described:?}");
        }
    }

    #[test]
    fn a_summary_takes_the_place_of_everything_before_it() {
        let summary = ItemKind::Compaction { summary: "short".into(), kept: vec![Part::text("kept")] };
        let state = state(vec![(0, user("old")), (1, agent("older")), (1, summary), (2, user("new"))]);
        let entries = entries(&state, false);
        let PromptEntry::User { parts } = &entries[0] else { panic!("a message") };
        assert_eq!(parts[..], [Part::text("kept"), Part::text("Summary of the conversation so far:\nshort")]);
        assert_eq!(described(&state)[1..], ["user new"]);
    }

    #[test]
    fn what_is_for_people_is_left_out_and_keys_change_with_items() {
        let mut state = state(vec![
            (0, user("go")),
            (1, ItemKind::SystemText { text: "a notice".into() }),
            (1, ItemKind::Command { text: "/help".into() }),
            (1, agent("")),
            (1, ItemKind::Flag { text: "a bookmark".into() }),
        ]);
        assert_eq!(described(&state), ["user go"]);
        let keys =
            |state: &State| keyed_entries(state, false).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let before = keys(&state);
        let item = Item { id: ItemId(1), turn: TurnId(1), step: 0, parent: None, kind: user("go now") };
        state.fold(9, &Fact::ItemChanged { item });
        assert_ne!(keys(&state), before, "a provider must not keep what it wrote of the item before");
    }
}
