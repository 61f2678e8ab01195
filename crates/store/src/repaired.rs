//! What a repair did. Plain data.

use std::path::PathBuf;

/// What a repair did.
#[derive(Debug, Default)]
pub struct Repaired {
    pub chats: u64,
    pub facts: u64,
    /// Chats that have lost facts.
    pub damaged: Vec<DamagedChat>,
    /// The copy of the damaged file; none where this run only finished what an earlier one had begun.
    pub copy: Option<PathBuf>,
    /// What an earlier repair had saved before it was interrupted, where the store was used since.
    pub aside: Option<PathBuf>,
}

#[derive(Debug)]
pub struct DamagedChat {
    pub id: String,
    pub title: Option<String>,
    /// Facts.
    pub saved: u64,
    /// Facts, at least.
    pub lost: u64,
}
