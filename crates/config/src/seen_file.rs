//! Settings files as they were when they were read, and those that this process wrote itself.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A file that was looked for, and what was there.
#[derive(Debug, Clone)]
pub(crate) struct SeenFile {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

/// The time and the length of a file; `None` where there is no file.
pub(crate) type Stamp = Option<(SystemTime, u64)>;

impl SeenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let stamp = stamp(&path);
        Self { path, stamp }
    }
}

pub(crate) fn stamp(path: &Path) -> Stamp {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// What this process wrote, which it acts on at once.
static OWN_WRITES: Mutex<Vec<(PathBuf, Stamp)>> = Mutex::new(Vec::new());

/// This process has just written a settings file.
pub(crate) fn note_own_write(path: &Path) {
    let mut writes = OWN_WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    writes.retain(|(known, _)| known != path);
    writes.push((path.to_owned(), stamp(path)));
}

pub(crate) fn is_own_write(path: &Path) -> bool {
    let writes = OWN_WRITES.lock().unwrap_or_else(PoisonError::into_inner);
    writes.iter().any(|(known, written)| known == path && *written == stamp(path))
}
