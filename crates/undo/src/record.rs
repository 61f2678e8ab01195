//! The log of one turn or one undo: which paths changed, from which state to which.
//!
//! Must not know how changes are found. Invariants: a log is only appended to; a line that a kill cut short is ignored;
//! of a path that changed several times the first state before and the last state after count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::private;
use crate::state::{FileState, StoredPath};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub path: StoredPath,
    pub before: FileState,
    /// `None`: the process ended before it could record the state.
    pub after: Option<FileState>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Line {
    /// The first line of a turn.
    Turn { owner: String, turn: u64, at: u64 },
    /// The first line of an undo. `newest`: the owner's newest turn at that time.
    Undo { owner: String, turns: Vec<u64>, newest: u64, at: u64 },
    /// A file tool is about to write.
    Before { path: StoredPath, state: FileState },
    /// A file tool has written.
    After { path: StoredPath, state: FileState },
    /// A command of an earlier version is about to run; the file `baseline` holds the state of `root`.
    Command { root: StoredPath, baseline: String },
    /// A command is about to run; the first `length` bytes of the file `baseline`, or all of it, hold the state of `root`. An
    /// earlier version cannot read such a file, and must not take it for an empty one.
    CommandBegan { root: StoredPath, baseline: String, length: Option<u64> },
    /// A command has ended.
    Changes { changes: Vec<Change> },
    /// Files that the store does not hold.
    Uncovered { paths: Vec<StoredPath> },
    /// An undo was taken back.
    Redone,
}

/// Where the state of a root before a command is kept.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pub(crate) root: PathBuf,
    /// A file beside the log.
    pub(crate) name: String,
    /// What the file has beyond this came later.
    pub(crate) length: Option<u64>,
}

/// A whole log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) owner: String,
    /// The turn, or the turns that an undo took back.
    pub(crate) turns: Vec<u64>,
    pub(crate) newest: u64,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) changes: BTreeMap<PathBuf, Change>,
    pub(crate) uncovered: Vec<PathBuf>,
    pub(crate) redone: bool,
    /// Paths that file tools wrote.
    pub(crate) written: BTreeSet<PathBuf>,
    pub(crate) commands: Vec<Baseline>,
}

impl Record {
    /// `None` where there is no such log.
    pub(crate) fn load(log: &Path) -> Option<Self> {
        let text = fs::read(log).ok()?;
        let mut record = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice(line) {
                record.add(line);
            }
        }
        // A turn that left everything as it was changed nothing.
        record.changes.retain(|_, change| change.after.as_ref() != Some(&change.before));
        Some(record)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Turn { owner, turn, at } => {
                (self.owner, self.turns, self.newest, self.at) = (owner, vec![turn], turn, at);
            }
            Line::Undo { owner, turns, newest, at } => {
                (self.owner, self.turns, self.newest, self.at) = (owner, turns, newest, at);
            }
            Line::Before { path, state } => {
                self.written.insert(path.0.clone());
                self.merge(Change { path, before: state, after: None });
            }
            Line::After { path, state } => {
                if let Some(known) = self.changes.get_mut(&path.0) {
                    known.after = Some(state);
                }
            }
            Line::Command { root, baseline } => {
                self.commands.push(Baseline { root: root.0, name: baseline, length: None });
            }
            Line::CommandBegan { root, baseline, length } => {
                self.commands.push(Baseline { root: root.0, name: baseline, length });
            }
            Line::Changes { changes } => changes.into_iter().for_each(|change| self.merge(change)),
            Line::Uncovered { paths } => {
                for StoredPath(path) in paths {
                    if !self.uncovered.contains(&path) {
                        self.uncovered.push(path);
                    }
                }
            }
            Line::Redone => self.redone = true,
        }
    }

    /// What commands changed and file tools did not write.
    pub(crate) fn changed_by_commands(self) -> Vec<PathBuf> {
        let Self { changes, written, .. } = self;
        changes.into_keys().filter(|path| !written.contains(path)).collect()
    }

    fn merge(&mut self, change: Change) {
        match self.changes.get_mut(&change.path.0) {
            Some(known) => known.after = change.after,
            None => {
                self.changes.insert(change.path.0.clone(), change);
            }
        }
    }
}

/// Appends a line.
pub(crate) fn append(log: &Path, line: &Line) -> io::Result<()> {
    append_all(log, std::slice::from_ref(line)).map(drop)
}

/// Appends lines and waits until they are on disk: for lines without which a change could not be taken back.
pub(crate) fn append_synced(log: &Path, lines: &[Line]) -> io::Result<()> {
    append_all(log, lines)?.sync_data()
}

/// One write, so that lines of several writers do not mix.
fn append_all(log: &Path, lines: &[Line]) -> io::Result<fs::File> {
    let mut file = private::append_to(log)?;
    let mut text = Vec::new();
    // A line that a kill cut short must not swallow these.
    if !ends_line(&mut file)? {
        text.push(b'\n');
    }
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    file.write_all(&text)?;
    Ok(file)
}

fn ends_line(file: &mut fs::File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}
