//! Settings files as they were when they were read. Plain data.

use std::path::{Path, PathBuf};
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
