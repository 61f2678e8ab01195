//! Old results of tools, left out of what the model gets where that alone makes room.
//!
//! Invariants: the journal and the state keep every result, and `recall` reads it again; results that are instructions or the
//! user's words are never left out; the newest calls keep theirs.

use domain::ItemId;
use domain::event::Fact;
use domain::item::{Item, ItemKind};
use domain::model::{ModelInfo, Tokens};
use domain::note::{Note, NoteAbout};

use super::room;
use crate::context_use;
use crate::turn::Turn;
use crate::turn::cleared::{can_be_cleared, cleared_before};

/// So many of the newest calls keep their results.
const KEPT_CALLS: usize = 8;
/// How full the window may be afterwards, in percent of what makes a compaction due.
const FULL_ENOUGH: u64 = 60;
/// Leaves old results out where that suffices for a window of this size. False: a summary is needed.
pub(in crate::turn) fn make_room(turn: &Turn, model: &ModelInfo) -> bool {
    let session = &turn.session;
    let Some(limit) = model.context_limit.filter(|limit| *limit > 0 && !session.decisions.is_recorded())
    else {
        return false;
    };
    let wanted = room(session, limit) * FULL_ENOUGH / 100;
    let before = {
        let state = session.state();
        let since = state.items().iter().rposition(|item| matches!(item.kind, ItemKind::Compaction { .. }));
        let system: u64 = turn.system.iter().map(|text| text.len() as u64).sum();
        let used = state.usage().last.all();
        match end_of_old(&state.items()[since.unwrap_or(0)..], system, used, wanted) {
            Some(before) => before,
            None => return false,
        }
    };
    session.account.break_prefix("old tool results were left out");
    session.commit_with(|state| {
        let text = "Old tool results are left out of what the model gets; nothing else was shortened.";
        let note = Note::for_people(NoteAbout::ResultsCleared { before }, text);
        let step = state.items().last().map_or(0, |item| item.step);
        let kind = ItemKind::Note(Box::new(note));
        let item = Item { id: session.log.next_item(), turn: turn.id, step, parent: None, kind };
        let mut usage = state.usage().clone();
        usage.last = Tokens::default();
        usage.context = None;
        vec![Fact::ItemEnded { item }, Fact::UsageChanged { usage }]
    });
    true
}

/// The first item whose result stays; `None`: what could be left out before it is not enough. Pure.
fn end_of_old(items: &[Item], system: u64, used: u64, wanted: u64) -> Option<ItemId> {
    let calls: Vec<(ItemId, u64)> = items
        .iter()
        .filter_map(|item| {
            let call = item.tool_call().filter(|call| can_be_cleared(call))?;
            Some((item.id, context_use::parts_length(&call.result)))
        })
        .collect();
    let known = cleared_before(items);
    let end = calls.len().checked_sub(KEPT_CALLS)?;
    let before = calls.get(end).map(|(id, _)| *id)?;
    let is_new = |id: ItemId| Some(id) >= known || known.is_none();
    let freed: u64 = calls[..end].iter().filter(|(id, _)| is_new(*id)).map(|(_, length)| length).sum();
    let already: u64 = calls[..end].iter().filter(|(id, _)| !is_new(*id)).map(|(_, length)| length).sum();
    let total = (system + items.iter().map(length_of).sum::<u64>()).saturating_sub(already).max(1);
    let left = u128::from(used) * u128::from(total.saturating_sub(freed)) / u128::from(total);
    (freed > 0 && left <= u128::from(wanted)).then_some(before)
}

fn length_of(item: &Item) -> u64 {
    match &item.kind {
        ItemKind::UserMessage { parts, .. } | ItemKind::Compaction { kept: parts, .. } => {
            context_use::parts_length(parts)
        }
        ItemKind::AgentMessage { text, .. } | ItemKind::Reasoning { text, .. } => text.len() as u64,
        ItemKind::ToolCall(call) => call.input_text.len() as u64 + context_use::parts_length(&call.result),
        ItemKind::Note(note) => context_use::parts_length(&note.parts),
        ItemKind::Citation { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Flag { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use domain::TurnId;
    use domain::item::Part;
    use domain::tool_call::{Origin, ToolCall};

    use super::*;

    fn item(id: u64, kind: ItemKind) -> Item {
        Item { id: ItemId(id), turn: TurnId(1), step: 1, parent: None, kind }
    }

    fn call(id: u64, name: &str, length: usize) -> Item {
        let mut call = ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
        call.result = vec![Part::text("x".repeat(length))];
        item(id, ItemKind::ToolCall(Box::new(call)))
    }

    #[test]
    fn old_results_are_left_out_only_where_that_is_enough() {
        let calls: Vec<Item> = (1..=20).map(|id| call(id, "read_file", 10_000)).collect();
        // Twelve of twenty results go, so forty percent stay.
        assert_eq!(end_of_old(&calls, 0, 1_000, 500), Some(ItemId(13)));
        assert_eq!(end_of_old(&calls, 0, 1_000, 300), None, "a summary is needed");
        assert_eq!(end_of_old(&calls[..8], 0, 1_000, 1_000), None, "the newest calls keep theirs");
        let kept: Vec<Item> = (1..=20).map(|id| call(id, "ask_user", 10_000)).collect();
        assert_eq!(end_of_old(&kept, 0, 1_000, 1_000), None, "the user's words stay");
        let short: Vec<Item> = (1..=20).map(|id| call(id, "read_file", 100)).collect();
        assert_eq!(end_of_old(&short, 0, 1_000, 1_000), None);
        // What is left out already makes no room again.
        let note = Note::for_people(NoteAbout::ResultsCleared { before: ItemId(13) }, "x");
        let again = [calls, vec![item(21, ItemKind::Note(Box::new(note)))]].concat();
        assert_eq!(cleared_before(&again), Some(ItemId(13)));
        assert_eq!(end_of_old(&again, 0, 1_000, 900), None);
    }
}
