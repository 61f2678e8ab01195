//! Changes of files on the disk since the last look, for servers that rely on their client for that.
//!
//! Knows no message. Invariant: a look stays within its bounds of entries and depth, and follows no link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::position::uri_of;

const MOST_ENTRIES: usize = 50_000;
const MOST_DEPTH: usize = 24;
/// Folders of dependencies and builds.
const LEFT_OUT: &[&str] = &["node_modules", "target", "vendor", "dist", "build", "__pycache__", "venv"];

/// The files of a project, each with its time of change and size.
pub(crate) type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Looks at the files that may matter to a server: those of its language and those that mark a project.
pub(crate) fn look(folder: &Path, matters: impl Fn(&Path) -> bool) -> Snapshot {
    let mut files = Snapshot::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return files;
            }
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() {
                if depth < MOST_DEPTH && !name.starts_with('.') && !LEFT_OUT.contains(&name.as_ref()) {
                    folders.push((path, depth + 1));
                }
            } else if kind.is_file()
                && matters(&path)
                && let Ok(found) = entry.metadata()
            {
                files.insert(path, (found.modified().ok(), found.len()));
            }
        }
    }
    files
}

/// The changes between two looks, as the protocol has them.
pub(crate) fn changes(before: &Snapshot, now: &Snapshot) -> Vec<Value> {
    let event = |path: &Path, kind: u8| json!({"uri": uri_of(path), "type": kind});
    let there = now.iter().filter_map(|(path, state)| match before.get(path) {
        None => Some(event(path, 1)),
        Some(known) if known != state => Some(event(path, 2)),
        Some(_) => None,
    });
    let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| event(path, 3));
    there.chain(gone).collect()
}
