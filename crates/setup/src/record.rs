//! What `setup` changed, for its undo: for each editor the changed file, its text after the change, and a copy of the
//! former text. The copies may hold secrets of the user, so only the user may read them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Editor, Folders, SetupError, file};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub file: PathBuf,
    /// The text before the first change; nothing where the file was new.
    pub before: Option<String>,
    pub after: String,
}

impl Record {
    pub(crate) fn load(editor: &Editor, folders: &Folders) -> Result<Option<Self>, SetupError> {
        let path = path(editor, folders);
        let Some(text) = file::read(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| SetupError::unreadable(&path, error))
    }

    /// Keeps the record. The folder is private from its first moment, and new files are private anyway.
    pub(crate) fn save(&self, editor: &Editor, folders: &Folders) -> Result<(), SetupError> {
        platform::create_private_folder(&folders.copies)
            .map_err(|error| SetupError::unwritable(&folders.copies, error))?;
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| SetupError::unwritable(&path(editor, folders), error))?;
        if let Some(before) = &self.before {
            file::write(&copy_path(editor, folders), before)?;
        }
        file::write(&path(editor, folders), &text)
    }

    pub(crate) fn delete(editor: &Editor, folders: &Folders) -> Result<(), SetupError> {
        file::remove(&path(editor, folders))?;
        file::remove(&copy_path(editor, folders))
    }
}

/// The plain copy of the former text, for a user who looks for it.
pub(crate) fn copy_path(editor: &Editor, folders: &Folders) -> PathBuf {
    folders.copies.join(format!("{}.before", editor.name))
}

fn path(editor: &Editor, folders: &Folders) -> PathBuf {
    folders.copies.join(format!("{}.json", editor.name))
}
