//! Commands whose leftovers must be looked at when they end, also where their process is killed: a note for each, locked
//! while its process lives.
//!
//! Must not know what is looked for. Invariant: only a note whose process is gone is taken.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{At, UndoError};
use crate::record::Record;
use crate::state::StoredPath;
use crate::{TurnKey, UndoStore, now, private};

/// The note of a command. Whoever drops it leaves it to the next process.
#[derive(Debug)]
pub struct DueNote {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl DueNote {
    /// The look is done.
    pub fn done(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Serialize, Deserialize)]
struct Contents {
    owner: String,
    turn: u64,
    roots: Vec<StoredPath>,
    known: Vec<StoredPath>,
}

/// What a command changed whose process was killed.
#[derive(Debug)]
pub struct InterruptedCommand {
    pub changed: Vec<PathBuf>,
    /// As its note has it.
    pub known: Vec<PathBuf>,
    pub note: DueNote,
}

impl UndoStore {
    /// Notes a command of a turn before it runs. `known` is handed back with what it changed.
    pub fn note_due(
        &self,
        key: &TurnKey,
        known: &[PathBuf],
        roots: &[PathBuf],
    ) -> Result<DueNote, UndoError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.due_folder().join(format!("{}-{number}-{}", std::process::id(), now()));
        let stored = |paths: &[PathBuf]| paths.iter().map(|path| StoredPath(path.clone())).collect();
        let contents =
            Contents { owner: key.owner.clone(), turn: key.turn, roots: stored(roots), known: stored(known) };
        let file = private::append_to(&path).at("write", &path)?;
        file.try_lock_shared().map_err(std::io::Error::from).at("lock", &path)?;
        let text = serde_json::to_vec(&contents).map_err(std::io::Error::from).at("write", &path)?;
        std::io::Write::write_all(&mut &file, &text).at("write", &path)?;
        Ok(DueNote { path, _file: file })
    }

    /// The commands in these folders whose processes were killed, each once.
    pub fn take_due(&self, roots: &[PathBuf]) -> Vec<InterruptedCommand> {
        let entries = fs::read_dir(self.due_folder()).into_iter().flatten().flatten();
        entries.filter_map(|entry| self.take_note(&entry.path(), roots)).collect()
    }

    fn take_note(&self, path: &Path, roots: &[PathBuf]) -> Option<InterruptedCommand> {
        let file = File::open(path).ok()?;
        file.try_lock().ok()?;
        let contents: Contents = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let paths = |stored: Vec<StoredPath>| stored.into_iter().map(|path| path.0).collect::<Vec<_>>();
        if paths(contents.roots) != roots {
            return None;
        }
        let log = self.turn_folder(&TurnKey { owner: contents.owner, turn: contents.turn }).join("log");
        let changed = self.finish_interrupted(&log).ok().and_then(|()| Record::load(&log));
        let changed = changed.map(|record| record.changed_by_commands()).unwrap_or_default();
        Some(InterruptedCommand {
            changed,
            known: paths(contents.known),
            note: DueNote { path: path.to_owned(), _file: file },
        })
    }

    fn due_folder(&self) -> PathBuf {
        self.folder.join("due")
    }
}
