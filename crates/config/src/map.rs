//! `index.repoMap`: how large the map of a workspace may be.

use crate::cursor::Cursor;

/// No setting raises a number above it.
const MOST: u64 = 10_000;

/// `None`: the usual number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapSettings {
    pub entries: Option<u64>,
    /// In one folder, the topmost excepted.
    pub entries_per_folder: Option<u64>,
}

impl MapSettings {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        Self {
            entries: cursor.get("maxTotalEntries").number(1..=MOST),
            entries_per_folder: cursor.get("maxEntriesPerDir").number(1..=MOST),
        }
    }
}
