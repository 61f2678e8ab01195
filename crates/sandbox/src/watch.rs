//! What runs in a workspace now, and the state that the last look at it saw.

use std::path::PathBuf;

use crate::due::DueLook;

/// What runs in a workspace now, and the state that the last look saw.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) running: Vec<Running>,
    pub(crate) next: u64,
    pub(crate) before: git::Before,
    pub(crate) due: DueLook,
    /// Taken back before anybody could be told.
    pub(crate) untold: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) id: u64,
    /// Git directories that it cannot change.
    pub(crate) covered: Vec<PathBuf>,
    /// Protected links and where they led.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    pub(crate) missing: Vec<PathBuf>,
    /// Folders outside of the workspace that it can write.
    pub(crate) writable: Vec<PathBuf>,
}

impl Watch {
    /// What none of those that run can change.
    pub(crate) fn covered(&self) -> Vec<PathBuf> {
        let Some((first, others)) = self.running.split_first() else { return Vec::new() };
        let by_all = |folder: &&PathBuf| others.iter().all(|other| other.covered.contains(folder));
        first.covered.iter().filter(by_all).cloned().collect()
    }
}
