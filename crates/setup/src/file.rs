//! Reads and replaces the settings file of an editor. Links are followed: many users keep such files in a repository.
//!
//! Invariant: a reader sees the old text or the new one, and the mode of the file stays.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::SetupError;

/// A settings file of a person is far smaller.
const MAX_BYTES: u64 = 4 << 20;

/// The text of a file; nothing where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, SetupError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SetupError::unreadable(path, error)),
    };
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err(SetupError::unreadable(path, "it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| SetupError::unreadable(path, error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SetupError::unreadable(path, "it is larger than 4 MB"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| SetupError::unreadable(path, "it is not UTF-8"))
}

/// Replaces the text of a file, and makes the file and its folder where they are missing.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), SetupError> {
    let target = link_target(path);
    replace(&target, text).map_err(|error| SetupError::unwritable(path, error))
}

pub(crate) fn remove(path: &Path) -> Result<(), SetupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SetupError::unwritable(path, error)),
        _ => Ok(()),
    }
}

fn replace(target: &Path, text: &str) -> std::io::Result<()> {
    let folder = target.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut fresh = tempfile::Builder::new().prefix(".dragoman-").tempfile_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    if let Ok(data) = fs::metadata(target) {
        // A read-only file is read-only on purpose.
        if data.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        fresh.as_file().set_permissions(data.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// The file behind links, also where the last one leads to a file that is not there yet.
fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().map_or(next.clone(), |folder| folder.join(&next));
    }
    target
}
