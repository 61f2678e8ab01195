//! Which calls of a turn check its goal.

use std::sync::atomic::Ordering;

use domain::ItemId;

use super::state::Turn;

/// Whether this item is the check of the turn's goal. The engine made it: an id that a provider chose says nothing.
pub(crate) fn is_check_of(turn: &Turn, item: ItemId) -> bool {
    item.0 > 0 && turn.goal.as_ref().is_some_and(|run| run.check.load(Ordering::Relaxed) == item.0)
}
