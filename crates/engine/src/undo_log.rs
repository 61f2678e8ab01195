//! The undo store as workspaces hold it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use undo::UndoStore;

/// The undo store of all chats of this process.
pub struct UndoLog {
    pub(crate) store: Arc<UndoStore>,
    /// Files that are too large to be kept, of which the user knows.
    pub(crate) named: Mutex<HashSet<PathBuf>>,
}

impl UndoLog {
    pub fn new(store: UndoStore) -> Self {
        Self { store: Arc::new(store), named: Mutex::default() }
    }
}
