//! What the store could not copy. Plain data.

use std::path::PathBuf;

/// What the store could not copy.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Files over a limit, or that cannot be read.
    pub uncovered: Vec<PathBuf>,
    /// Folders that a build tool makes anew.
    pub build_folders: Vec<PathBuf>,
}
