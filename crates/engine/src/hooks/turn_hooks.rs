//! What hooks have asked for in one turn, as the turn keeps it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::Failure;

/// What hooks have asked for in one turn.
#[derive(Default)]
pub(crate) struct TurnHooks {
    stop: Mutex<Option<String>>,
    pub(super) follow_up: AtomicBool,
    pub(super) compaction_blocked: AtomicBool,
}

impl TurnHooks {
    /// The turn must end, because a hook says so.
    pub(crate) fn stopped(&self) -> Option<Failure> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone().map(Failure::user)
    }

    pub(super) fn stop(&self, why: String) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// A hook forbade to compact the chat in this turn.
    pub(crate) fn is_compaction_blocked(&self) -> bool {
        self.compaction_blocked.load(Ordering::Relaxed)
    }
}
