//! The git directories of a workspace as a command gets them. Plain data.

use std::path::PathBuf;

use crate::policy::GitCopy;

/// What a command may do with the git directories of the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GitAccess {
    #[default]
    ReadOnly,
    /// It may change a copy; commits, branches and other plain state are taken over when it ends.
    Copy,
}

/// The git directories of a workspace as a command gets them.
#[derive(Debug, Default)]
pub(crate) struct GitView {
    pub(crate) protected: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) copies: Vec<GitCopy>,
    /// Git directories that the command cannot change.
    pub(crate) covered: Vec<PathBuf>,
    /// Paths that git would obey, which do not exist.
    pub(crate) missing: Vec<PathBuf>,
}
