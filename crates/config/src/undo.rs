//! `undo`: how much of former contents is kept.
//!
//! Invariant: a project's file never decides about it, not even in a trusted folder: it could switch undo off.

use domain::Level;

use crate::cursor::Cursor;
use crate::layer::{Authority, Layer};
use crate::origin::Origin;

const MAX_MEGABYTES: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoSettings {
    /// The largest file that is kept, in MiB.
    pub file_megabytes: u64,
    /// All kept contents together, in MiB.
    pub total_megabytes: u64,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self { file_megabytes: 64, total_megabytes: 2048 }
    }
}

impl UndoSettings {
    pub(crate) fn read(root: &Cursor) -> Self {
        let default = Self::default();
        Self {
            file_megabytes: megabytes(root, "fileMegabytes").unwrap_or(default.file_megabytes),
            total_megabytes: megabytes(root, "totalMegabytes").unwrap_or(default.total_megabytes),
        }
    }
}

fn megabytes(root: &Cursor, key: &str) -> Option<u64> {
    let section = root.get("undo");
    let cursor = section.get(key);
    if matches!(cursor.origin(), Origin::ProjectFile { .. }) {
        cursor.report(Level::Warning, "cannot be set by a project; it is ignored.");
    }
    let value = root.scope().layers.iter().rev().filter(|layer| is_the_users(layer));
    let value = value.filter_map(|layer| layer.at(&["undo", key])).next()?;
    let number = value.as_u64().filter(|number| (1..=MAX_MEGABYTES).contains(number));
    if number.is_none() {
        cursor.report(Level::Error, "must be a number from 1 to 1000000. The default is used.");
    }
    number
}

fn is_the_users(layer: &Layer) -> bool {
    layer.authority == Authority::Full && !matches!(layer.origin, Origin::ProjectFile { .. })
}
