//! What each session last saw of a file, so that a change by somebody else is noticed before it is written over.
//!
//! Invariant: bounded; a stamp that was forgotten means "never read", which only costs the check.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use domain::SessionId;

use super::line_ends::NormalizedText;

const MAX_FILES: usize = 8_192;

/// The text of a file, without its line ends' form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextStamp(u64, usize);

impl TextStamp {
    pub fn from_text(text: &str) -> Self {
        let plain = NormalizedText::new(text);
        let mut hasher = DefaultHasher::new();
        plain.text().hash(&mut hasher);
        Self(hasher.finish(), plain.text().len())
    }
}

#[derive(Default)]
pub struct SeenFiles {
    entries: Mutex<SeenState>,
}

#[derive(Default)]
struct SeenState {
    map: HashMap<(SessionId, PathBuf), SeenFile>,
    clock: u64,
}

/// What a session knows of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenFile {
    pub stamp: TextStamp,
    pub how: SeenVia,
    at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeenVia {
    /// The model was shown the file on disk.
    Disk,
    /// The model was shown the text in the client, which may not be saved.
    Client,
    /// Only a person was shown it, to approve a change.
    Reviewed,
}

impl SeenFiles {
    /// The session has seen this text now. A review does not replace what the model has read.
    pub fn record(&self, session: &SessionId, path: &Path, stamp: TextStamp, how: SeenVia) {
        let mut entries = self.lock();
        entries.clock += 1;
        let at = entries.clock;
        let key = (session.clone(), path.to_owned());
        if how == SeenVia::Reviewed
            && entries.map.get(&key).is_some_and(|entry| entry.how != SeenVia::Reviewed)
        {
            return;
        }
        entries.map.insert(key, SeenFile { stamp, how, at });
        if entries.map.len() > MAX_FILES {
            let oldest_kept = at - (MAX_FILES as u64) / 2;
            entries.map.retain(|_, entry| entry.at > oldest_kept);
        }
    }

    pub fn get(&self, session: &SessionId, path: &Path) -> Option<SeenFile> {
        self.lock().map.get(&(session.clone(), path.to_owned())).copied()
    }

    /// The file has another name now.
    pub fn rename(&self, session: &SessionId, from: &Path, to: &Path) {
        let mut entries = self.lock();
        if let Some(entry) = entries.map.remove(&(session.clone(), from.to_owned())) {
            entries.map.insert((session.clone(), to.to_owned()), entry);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SeenState> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
