//! What a person allowed or refused for the rest of a session. Must not know rules, or what a key stands for.
//!
//! Invariant: every change wakes the questions that are open, so that one answer settles all that it covers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::tool::ToolSpec;
use tokio::sync::watch;

/// What a person allowed or refused for the rest of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    keys: Vec<String>,
    denied: Vec<String>,
}

impl Remembered {
    pub fn add(&mut self, keys: &[String]) {
        self.keys.extend_from_slice(keys);
    }

    pub fn deny(&mut self, spec: &ToolSpec) {
        self.denied.push(spec.offered_name());
    }

    pub fn is_denied(&self, spec: &ToolSpec) -> bool {
        self.denied.contains(&spec.offered_name())
    }

    pub fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    pub fn contains(&self, key: &String) -> bool {
        self.keys.contains(key)
    }
}

/// The same for a live session.
pub struct RememberedApprovals {
    known: Mutex<Remembered>,
    changes: watch::Sender<()>,
}

impl Default for RememberedApprovals {
    fn default() -> Self {
        Self { known: Mutex::default(), changes: watch::Sender::new(()) }
    }
}

impl RememberedApprovals {
    pub fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Questions that are open look at it again.
    pub fn change(&self, change: impl FnOnce(&mut Remembered)) {
        change(&mut self.lock());
        self.changes.send_replace(());
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}
