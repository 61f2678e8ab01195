//! What waits for the user's word.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::files::{MemoryEntry, MemoryScope};

/// What waits for the user's word in this process.
#[derive(Default)]
pub(crate) struct PendingMemory(Mutex<Pending>);

#[derive(Default)]
pub(super) struct Pending {
    pub(super) proposals: Vec<String>,
    pub(super) consolidation: Option<Consolidation>,
}

impl PendingMemory {
    pub(super) fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes of the memory that were shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Consolidation {
    pub(super) removed: Vec<MemoryEntry>,
    pub(super) added: Vec<(MemoryScope, String)>,
}
