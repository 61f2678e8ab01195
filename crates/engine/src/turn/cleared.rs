//! Results of tools that are left out of what the model gets: which they are, and what is sent instead. Pure.

use domain::ItemId;
use domain::item::{Item, Part};
use domain::note::NoteAbout;
use domain::tool_call::{Origin, ToolCall};

use super::goal_run::is_check;
use crate::context_use;

/// Shorter results stay, in bytes.
const SHORT: u64 = 600;
/// Tools whose results are instructions, definitions or the user's words.
const ALWAYS_KEPT: &[&str] = &["ask_user", "fetch_rule", "skill", "recall", "search_tools", "task"];

/// Results of calls before this item are left out.
pub(crate) fn cleared_before(items: &[Item]) -> Option<ItemId> {
    items.iter().rev().find_map(|item| {
        let NoteAbout::ResultsCleared { before } = item.note()?.about else { return None };
        Some(before)
    })
}

/// The text for a result that is left out; `None`: this one stays.
pub(crate) fn without_result(item: &Item, call: &ToolCall) -> Option<Vec<Part>> {
    can_be_cleared(call).then(|| {
        vec![Part::text(format!(
            "(Left out to make room. `recall` with the id {} reads this result again.)",
            item.id
        ))]
    })
}

pub(super) fn can_be_cleared(call: &ToolCall) -> bool {
    let is_kept = call.origin == Origin::Native && ALWAYS_KEPT.contains(&call.name.as_str());
    !is_kept && !is_check(call) && context_use::parts_length(&call.result) > SHORT
}
