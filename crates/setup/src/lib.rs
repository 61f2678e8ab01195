//! Points editors at Dragoman: which editors this machine has, the change of settings that each needs, and its undo.
//!
//! Owns the table of editors and the editing of their files. Must not know the settings of Dragoman, the environment
//! or the terminal. Invariants: comments and the order of a file stay; a file changes as a whole or not at all; a copy
//! of its former text is kept before it changes.

mod editors;
mod file;
mod json;
mod plan;
mod record;
mod toml;

use std::path::{Path, PathBuf};

pub use editors::{EDITORS, Editor};
pub use plan::{Edit, Plan, apply, apply_undo, plan, plan_undo};

/// The folders in which editors keep their settings, and the folder for copies.
#[derive(Clone, Debug)]
pub struct Folders {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME` or `~/.config`.
    pub config: PathBuf,
    /// The settings of desktop programs: `config` on Linux, `~/Library/Application Support` on macOS,
    /// `%APPDATA%` on Windows.
    pub applications: PathBuf,
    /// `$XDG_DATA_HOME` or `~/.local/share`: editors keep their plugins there.
    pub data: PathBuf,
    /// Former texts of changed files.
    pub copies: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("{} cannot be read: {reason}.", file.display())]
    Unreadable { file: PathBuf, reason: String },
    #[error("{} cannot be written: {reason}.", file.display())]
    Unwritable { file: PathBuf, reason: String },
    #[error("{} cannot be changed safely: {reason}.", file.display())]
    Unclear { file: PathBuf, reason: String },
    #[error("{} changed in the meantime. Nothing was written; try again.", .0.display())]
    Changed(PathBuf),
    #[error("`dragoman setup` has changed no file of this editor.")]
    NothingToUndo,
}

impl SetupError {
    fn unreadable(file: &Path, reason: impl ToString) -> Self {
        Self::Unreadable { file: file.to_owned(), reason: reason.to_string() }
    }

    fn unwritable(file: &Path, reason: impl ToString) -> Self {
        Self::Unwritable { file: file.to_owned(), reason: reason.to_string() }
    }

    fn unclear(file: &Path, reason: impl Into<String>) -> Self {
        Self::Unclear { file: file.to_owned(), reason: reason.into() }
    }
}
