//! Errors of the database, and the message for the user that each becomes.
//!
//! Must not know the tables. Invariant: no message holds text of a chat.

use std::path::Path;
use std::time::Duration;

use domain::Failure;
use rusqlite::{ErrorCode, ffi};

use crate::encoded::damaged_chat;

#[derive(Debug)]
pub(crate) enum StoreError {
    Sqlite(rusqlite::Error),
    /// Already a message for the user.
    Failure(Failure),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl StoreError {
    /// Another connection holds a lock that this one needs.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Failure(_) => None,
        }
    }

    /// SQLite cannot make sense of the bytes in the file, or the file ends too early.
    pub(crate) fn is_damage(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        let is_cut =
            error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ);
        is_cut || matches!(self.code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }

    /// Names the chat whose facts SQLite could not read.
    pub(crate) fn of_chat(self, chat: &str) -> Self {
        match self.is_damage() {
            true => damaged_chat(chat, "a part of the file that holds it cannot be read").into(),
            false => self,
        }
    }

    pub(crate) fn into_failure(self, database: &Path) -> Failure {
        let (code, is_damage) = (self.code(), self.is_damage());
        let error = match self {
            Self::Failure(failure) => return failure,
            Self::Sqlite(error) if is_damage => return damaged(database, &error),
            Self::Sqlite(error) => error,
        };
        let path = database.display();
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let mut failure = Failure::internal(format!("Another program has locked the chat database {path}."))
                    .hint("Try again. If the message returns, end the other Dragoman or SQLite program that uses the file.");
                failure.retry_after = Some(Duration::from_secs(1));
                failure
            }
            Some(ErrorCode::DiskFull) => Failure::config(format!("The disk of the chat database {path} is full."))
                .hint("Free some space and try again. Everything stored before is safe."),
            Some(ErrorCode::SystemIoFailure) => {
                Failure::config(format!("The chat database {path} cannot be read or written: {error}."))
                    .hint("Check the disk, its free space and your quota, then try again.")
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Failure::config(format!("The chat database {path} cannot be opened for writing: {error}."))
                    .hint("Make the file and its folder writable for you, or set XDG_DATA_HOME to a folder that is.")
            }
            Some(ErrorCode::TooBig) => Failure::user("This message is too large for a chat.")
                .hint("Leave out large images or files and try again."),
            _ => Failure::internal(format!("The chat database {path} failed: {error}.")),
        }
    }
}

fn damaged(database: &Path, error: &rusqlite::Error) -> Failure {
    let path = database.display();
    Failure::config(format!("The chat database {path} is damaged ({error}). Nothing was deleted or changed.")).hint(
        "`dragoman store repair` saves what can be read into a new file and keeps the damaged one. Or restore the file from a \
         backup, or move it away together with the files beside it that begin with its name: Dragoman then starts a new one.",
    )
}
