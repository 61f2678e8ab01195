//! The one error of this crate: an action on a path that the system refused.
//!
//! Must not know callers. Invariant: the message never holds file content.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[error("Undo cannot {action} {}: {source}.", path.display())]
pub struct UndoError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

pub(crate) trait At<T> {
    /// Names the action and the path of an error.
    fn at(self, action: &'static str, path: &Path) -> Result<T, UndoError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, UndoError> {
        self.map_err(|source| UndoError { action, path: path.to_owned(), source })
    }
}
