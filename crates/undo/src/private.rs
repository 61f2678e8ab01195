//! Files and folders of the store itself: private to the user and changed atomically.
//!
//! Must not know what is in them. Invariants: folders are 0700 and files 0600 under every umask; a file appears whole
//! or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use platform::OpenOptionsExt;

pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    platform::create_private_folder(folder)
}

/// A new file with a name that no other process uses, in `folder`.
pub(crate) fn temporary(folder: &Path) -> io::Result<(PathBuf, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".undo-{}-{number}.tmp", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).private().open(&path) {
            Ok(file) => return Ok((path, file)),
            // A process with the same id was killed here.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a file has a name of `temporary`, as this process gave it.
pub(crate) fn is_temporary_of(name: &OsStr, pid: u32) -> bool {
    let number =
        name.to_str().and_then(|name| name.strip_prefix(&format!(".undo-{pid}-"))?.strip_suffix(".tmp"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Replaces a file of the store as a whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_open(path, content).map(drop)
}

/// The same, and the file that was written: another process may have replaced it since.
pub(crate) fn replace_open(path: &Path, content: &[u8]) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let (temporary, mut file) = in_folder(folder, || temporary(folder))?;
    let written = file.write_all(content).and_then(|()| platform::replace_file(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map(|()| file)
}

/// Makes a file of the store that is known by its size and its hash, so that a part of it, which a kill leaves, harms nobody:
/// one step less than [`replace`], which is for a name that is taken.
pub(crate) fn create_or_replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let open = || OpenOptions::new().write(true).create_new(true).private().open(path);
    match in_folder(path.parent().unwrap_or(Path::new("/")), open) {
        Ok(mut file) => file.write_all(content).inspect_err(|_| {
            let _ = fs::remove_file(path);
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => replace(path, content),
        Err(error) => Err(error),
    }
}

/// Opens a log for appending; creates it where it does not exist.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).append(true).create(true).private().open(path);
    in_folder(path.parent().unwrap_or(Path::new("/")), open)
}

/// Makes a file in a folder, which mostly exists.
fn in_folder<T>(folder: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder(folder)?;
            make()
        }
        made => made,
    }
}
