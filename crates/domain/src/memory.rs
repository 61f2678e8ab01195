//! The memory across chats, as clients list it.

use std::path::PathBuf;

/// The entries of the memory of a workspace and of its user.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryList {
    pub entries: Vec<MemorySummary>,
    /// Files that are no entries: path, whether it is of the project, reason.
    pub skipped: Vec<(PathBuf, bool, String)>,
    /// How many of the entries a new chat is told of.
    pub indexed: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySummary {
    pub path: PathBuf,
    pub is_of_project: bool,
    pub name: String,
    pub description: String,
    /// Milliseconds since 1970.
    pub modified: u64,
}
