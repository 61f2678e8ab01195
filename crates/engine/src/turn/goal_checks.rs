//! Which calls of a turn check its goal.

use domain::ItemId;
use domain::item::{Item, ItemKind};

use super::goal_run::is_check;
use super::state::Turn;

/// Whether this item is the check of the turn's goal.
pub(crate) fn is_check_of(turn: &Turn, item: ItemId) -> bool {
    let is_it =
        |known: &Item| known.id == item && matches!(&known.kind, ItemKind::ToolCall(call) if is_check(call));
    turn.goal.is_some() && turn.session.state().items().iter().rev().any(is_it)
}
