//! A folder that is held open. Windows has no calls relative to an open folder for programs, so paths are used; while the
//! folder is held without the right to delete it, nobody can rename it or put a junction in its place.
//!
//! Invariant: a path that leads elsewhere than it says (a link or junction in it) is refused: the open handle tells its
//! real path, and that must be the one that was asked for.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ, FILE_SHARE_WRITE,
    MOVEFILE_WRITE_THROUGH, MoveFileExW,
};

use super::files::{information, retry_while_busy};
use super::paths::path_of;
use super::wide;
use crate::names;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    _handle: File,
    path: PathBuf,
}

/// Opens a resolved path for reading, without following any link.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    let file = retry_while_busy(|| OpenOptions::new().read(true).custom_flags(flags).open(path))?;
    check(&file, path)?;
    Ok(file)
}

impl Folder {
    /// Opens a folder by its resolved path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = OpenOptions::new()
            .read(true)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        if !handle.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        check(&handle, path)?;
        Ok(Self { _handle: handle, path: path.to_owned() })
    }

    fn at(&self, name: &OsStr) -> io::Result<PathBuf> {
        let text = name.to_string_lossy();
        match names::odd_windows_path(&text) {
            Some(reason) => Err(io::Error::new(io::ErrorKind::InvalidFilename, reason)),
            None => Ok(self.path.join(name)),
        }
    }

    /// Opens a file in it for reading; `None`: there is none.
    pub fn open_file(&self, name: &OsStr) -> io::Result<Option<File>> {
        match open_file(&self.at(name)?) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file in it to write over it.
    pub fn open_to_write(&self, name: &OsStr) -> io::Result<File> {
        let path = self.at(name)?;
        let file = retry_while_busy(|| {
            OpenOptions::new().write(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(&path)
        })?;
        check(&file, &path)?;
        Ok(file)
    }

    /// Makes a file that is not there yet.
    pub fn create_file(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.at(name)?)
    }

    /// Opens the folder of this name, after making it where it is missing.
    pub fn create_folder(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.at(name)?;
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Self::open(&path)
    }

    /// Something has this name; a link counts itself.
    pub fn contains(&self, name: &OsStr) -> bool {
        self.at(name).is_ok_and(|path| path.symlink_metadata().is_ok())
    }

    /// Renames, over what has the new name.
    pub fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        let (from, to) = (self.at(name)?, to.at(new)?);
        retry_while_busy(|| fs::rename(&from, &to))
    }

    /// Renames, and fails where something has the new name.
    pub fn rename_new(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        let (from, to) = (self.at(name)?, to.at(new)?);
        if to.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (from, to) = (wide(from.as_os_str()), wide(to.as_os_str()));
        retry_while_busy(|| {
            // SAFETY: both paths end with a zero. Without the flag to replace, the call fails where the name is taken.
            match unsafe { MoveFileExW(from.as_ptr(), to.as_ptr(), MOVEFILE_WRITE_THROUGH) } {
                0 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        })
    }

    /// Gives a file its final name, and fails where something has it.
    pub fn publish_new(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        self.rename_new(temporary, self, name)
    }

    /// Removes a file or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        let path = self.at(name)?;
        retry_while_busy(|| fs::remove_file(&path))
    }

    /// Removes a file, a link or a folder with everything in it.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let path = self.at(name)?;
        let kind = path.symlink_metadata()?;
        match (kind.is_symlink(), kind.is_dir()) {
            (true, _) => fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)),
            (false, true) => fs::remove_dir_all(&path),
            (false, false) => self.remove_file(name),
        }
    }

    /// Windows keeps the entries of folders in the file system's own journal.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Takes over the read-only flag; rights are inherited from the folder.
    pub fn copy_owner_and_mode(file: &File, from: &fs::Metadata) -> io::Result<bool> {
        file.set_permissions(from.permissions())?;
        Ok(true)
    }

    /// How many names lead to an open file.
    pub fn names_of(file: &File) -> io::Result<u64> {
        Ok(information(file)?.nNumberOfLinks.into())
    }
}

/// The open file is the one that the path names, without a link on the way.
fn check(file: &File, path: &Path) -> io::Result<()> {
    if file.metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    let real = path_of(file)?;
    if names::is_same_name(&real.to_string_lossy(), &path.to_string_lossy(), crate::System::Windows) {
        return Ok(());
    }
    Err(io::Error::other("a link has come into its path"))
}
