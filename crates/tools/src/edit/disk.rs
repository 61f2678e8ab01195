//! Files on disk: read whole within a bound, replaced in one step.
//!
//! Invariant: a file is seen whole, the old one or the new one, whenever the machine stops. Its mode survives. No
//! symlink is followed (the path is resolved before; see `paths`). Nothing here knows encodings.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use platform::Folder;

use crate::paths::ResolvedPath;

/// A file as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedFile {
    pub bytes: Vec<u8>,
}

/// `None`: there is no such file.
pub fn load(path: &ResolvedPath, max: u64) -> Result<Option<LoadedFile>, String> {
    let shown = path.shown();
    let file = match path.open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{shown} cannot be read: {error}.")),
    };
    let metadata = file.metadata().map_err(|error| format!("{shown} cannot be read: {error}."))?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder. Use directory_tree to list it."));
    }
    if !metadata.is_file() {
        return Err(format!("{shown} is not a regular file."));
    }
    if metadata.len() > max {
        return Err(format!(
            "{shown} has {} bytes, more than the {max} that can be taken whole.",
            metadata.len()
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    // It may grow while it is read.
    file.take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{shown} cannot be read: {error}."))?;
    if bytes.len() as u64 > max {
        return Err(format!("{shown} has more than the {max} bytes that can be taken whole."));
    }
    Ok(Some(LoadedFile { bytes }))
}

/// How a file came to hold its new bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteMethod {
    Renamed,
    /// So many names led to the same file; this name has a file of its own now.
    Unlinked {
        links: u64,
    },
    /// Its owner could not be kept otherwise, so it was written in place.
    Owned,
}

/// Replaces a file, or creates it with its folders, if it still holds `expected` (`None`: does not exist).
pub fn replace(path: &ResolvedPath, expected: Option<&[u8]>, bytes: &[u8]) -> Result<WriteMethod, String> {
    let shown = path.shown();
    let describe_error = |error: io::Error| format!("{shown} cannot be written: {error}.");
    if expected.is_none() {
        path.create_folders().map_err(describe_error)?;
    }
    let (folder, name) = path.folder().map_err(describe_error)?;
    let current = folder.open_file(&name).map_err(describe_error)?;
    let Some(mut current) = current else {
        if expected.is_some() {
            return Err(format!("{shown} was deleted meanwhile. Nothing was written."));
        }
        create(&folder, &name, bytes).map_err(describe_error)?;
        return Ok(WriteMethod::Renamed);
    };
    let metadata = current.metadata().map_err(describe_error)?;
    if platform::mode_of(&metadata) & 0o222 == 0 {
        return Err(format!("{shown} is read-only. Ask the user to make it writable first."));
    }
    let mut now = Vec::new();
    let most = expected.map_or(0, <[u8]>::len) as u64 + 1;
    Read::by_ref(&mut current).take(most).read_to_end(&mut now).map_err(describe_error)?;
    if expected != Some(now.as_slice()) {
        return Err(format!(
            "{shown} was changed by somebody else just now. Read it again; nothing was written."
        ));
    }
    let mut temporary = TemporaryFile::create(&folder, &name, 0o600).map_err(describe_error)?;
    let links = Folder::names_of(&current).map_err(describe_error)?;
    drop(current);
    if !temporary.copy_owner_and_mode(&metadata).map_err(describe_error)? {
        drop(temporary);
        if links > 1 {
            return Err(format!(
                "{shown} belongs to another user and has other names (hard links), so it was not written."
            ));
        }
        write_in_place(&folder, &name, &now, bytes)
            .map_err(|error| format!("{shown} cannot be written: {error}"))?;
        return Ok(WriteMethod::Owned);
    }
    temporary.fill(bytes).map_err(describe_error)?;
    temporary.rename(&name).map_err(describe_error)?;
    Ok(if links > 1 { WriteMethod::Unlinked { links } } else { WriteMethod::Renamed })
}

/// Deletes a file that still holds `expected`.
pub fn remove(path: &ResolvedPath, expected: &[u8]) -> Result<(), String> {
    let shown = path.shown();
    let describe_error = |error: io::Error| format!("{shown} cannot be deleted: {error}.");
    let (folder, name) = path.folder().map_err(describe_error)?;
    let Some(current) = folder.open_file(&name).map_err(describe_error)? else {
        return Err(format!("{shown} was deleted meanwhile."));
    };
    let mut now = Vec::new();
    current.take(expected.len() as u64 + 1).read_to_end(&mut now).map_err(describe_error)?;
    if now != expected {
        return Err(format!("{shown} was changed by somebody else just now. Read it again."));
    }
    folder.remove_file(&name).and_then(|()| folder.sync()).map_err(describe_error)
}

/// Other names lead to the same file (hard links), wherever they are.
pub fn has_other_names(path: &ResolvedPath) -> bool {
    path.open().is_ok_and(|file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file())
            && Folder::names_of(&file).is_ok_and(|names| names > 1)
    })
}

/// Gives a file or folder another name, never that of one that is there. A symlink is moved itself.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to the standard library and grows")]
pub fn rename(from: &ResolvedPath, to: &ResolvedPath) -> Result<(), String> {
    let describe_error =
        |error: io::Error| format!("{} cannot be moved to {}: {error}.", from.shown(), to.shown());
    let (old_folder, old_name) = from.folder().map_err(describe_error)?;
    if !old_folder.contains(&old_name) {
        return Err(format!("There is no {}.", from.shown()));
    }
    to.create_folders().map_err(describe_error)?;
    let (new_folder, new_name) = to.folder().map_err(describe_error)?;
    if let Err(error) = old_folder.rename_new(&old_name, &new_folder, &new_name) {
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => format!("{} exists already. Choose another name.", to.shown()),
            io::ErrorKind::CrossesDevices => {
                format!("{} is on another file system. Use shell_command with mv.", to.shown())
            }
            _ => describe_error(error),
        });
    }
    new_folder.sync().and_then(|()| old_folder.sync()).map_err(describe_error)
}

/// A new file appears whole under its name, and never over one that came meanwhile.
fn create(folder: &Folder, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = TemporaryFile::create(folder, name, 0o666)?;
    temporary.fill(bytes)?;
    folder.publish_new(&temporary.name, name)?;
    temporary.kept = true;
    folder.sync()
}

/// Writes over the file itself. A synced copy is beside it until that is done.
fn write_in_place(folder: &Folder, name: &OsStr, old: &[u8], new: &[u8]) -> Result<(), String> {
    let describe_error = |error: io::Error| format!("{error}.");
    let mut copy = TemporaryFile::create(folder, name, 0o600).map_err(describe_error)?;
    copy.fill(old).map_err(describe_error)?;
    folder.sync().map_err(describe_error)?;
    let mut file = folder.open_to_write(name).map_err(describe_error)?;
    let mut write = || {
        file.write_all(new)?;
        file.set_len(new.len() as u64)?;
        file.sync_all()
    };
    write().map_err(|error| {
        copy.kept = true;
        format!("{error}. What it held before is in {} beside it.", copy.name.display())
    })
}

/// A synced file beside the one it is for; gone again unless it was renamed or is to be kept.
struct TemporaryFile<'a> {
    folder: &'a Folder,
    name: OsString,
    file: File,
    kept: bool,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl<'a> TemporaryFile<'a> {
    fn create(folder: &'a Folder, name: &OsStr, mode: u32) -> io::Result<Self> {
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut own = OsString::from(".");
            // Names may have 255 bytes; the rest is for what makes it unique.
            own.push(shortened(name, 200));
            own.push(format!(".{}-{number}.tmp", std::process::id()));
            match folder.create_file(&own, mode) {
                Ok(file) => return Ok(Self { folder, name: own, file, kept: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()
    }

    /// Takes over mode and owner; false where the owner cannot be had.
    fn copy_owner_and_mode(&self, metadata: &std::fs::Metadata) -> io::Result<bool> {
        Folder::copy_owner_and_mode(&self.file, metadata)
    }

    fn rename(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, self.folder, name)?;
        self.kept = true;
        self.folder.sync()
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing better can be done about a file that cannot be removed; it is describe_error apart by its name.
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

fn shortened(name: &OsStr, max: usize) -> OsString {
    let bytes = platform::name_bytes(name);
    platform::name_from_bytes(bytes[..bytes.len().min(max)].to_vec())
}
