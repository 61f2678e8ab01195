//! A folder that is held open: what is done in it happens in this folder, wherever its path leads by now.
//!
//! Invariant: no function follows a symbolic link, wherever it is in a path.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// Opens a resolved path for reading, without following any link and without waiting for a pipe.
pub fn open_file(path: &Path) -> io::Result<File> {
    Ok(open(path, OFlags::RDONLY | OFlags::NONBLOCK)?.into())
}

impl Folder {
    /// Opens a folder by its resolved path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { handle: open(path, OFlags::RDONLY | OFlags::DIRECTORY)?, path: path.to_owned() })
    }

    /// Opens a file in it for reading; `None`: there is none.
    pub fn open_file(&self, name: &OsStr) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file in it to write over it.
    pub fn open_to_write(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Makes a file that is not there yet.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as _);
        Ok(rustix::fs::openat(&self.handle, name, flags, mode)?.into())
    }

    /// Opens the folder of this name, after making it where it is missing.
    pub fn create_folder(&self, name: &OsStr) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Self { handle, path: self.path.join(name) })
    }

    /// Something has this name; a link counts itself.
    pub fn contains(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Renames, over what has the new name.
    pub fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, name, &to.handle, new)?)
    }

    /// Renames, and fails where something has the new name.
    pub fn rename_new(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.handle, name, &to.handle, new, RenameFlags::NOREPLACE) {
            // File systems that cannot promise it: looked at first.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                if to.contains(new) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                self.rename(name, to, new)
            }
            other => Ok(other?),
        }
    }

    /// Gives a file its final name, and fails where something has it.
    pub fn publish_new(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        match rustix::fs::linkat(&self.handle, temporary, &self.handle, name, AtFlags::empty()) {
            Ok(()) => self.remove_file(temporary),
            // File systems without hard links.
            Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK) => self.rename(temporary, self, name),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Removes a file, a link or a folder with everything in it.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let kind = FileType::from_raw_mode(rustix::fs::statat(&self.handle, name, flags)?.st_mode);
        if kind != FileType::Directory {
            return self.remove_file(name);
        }
        // The open folder, wherever its path leads by now.
        let place = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        let place = if cfg!(target_os = "linux") { place } else { self.path.clone() };
        std::fs::remove_dir_all(place.join(name))
    }

    /// Waits until its entries are on disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }

    /// Takes over mode and owner of another file; false where the owner cannot be had.
    pub fn copy_owner_and_mode(file: &File, from: &std::fs::Metadata) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (from.uid(), from.gid()) {
            let (user, group) = (Some(from.uid()), Some(from.gid()));
            if std::os::unix::fs::fchown(file, user, group).is_err() {
                return Ok(false);
            }
        }
        file.set_permissions(from.permissions())?;
        Ok(true)
    }

    /// How many names lead to an open file.
    pub fn names_of(file: &File) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(file.metadata()?.nlink())
    }
}

/// Opens a path without following any symbolic link, wherever it is in the path.
fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            // Old kernels and some containers do not have the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other.map_err(describe_error),
        }
    }
    open_by_walk(path, flags)
}

/// For systems without `openat2`: opens one folder after the other, each without following a link.
fn open_by_walk(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names: Vec<&OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::other("the path is not resolved"));
            }
        }
    }
    let start = if path.is_absolute() { "/" } else { "." };
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some((last, folders)) = names.split_last() else {
        return rustix::fs::openat(CWD, start, flags, Mode::empty()).map_err(describe_error);
    };
    let mut folder = rustix::fs::openat(CWD, start, folder_flags, Mode::empty())?;
    for name in folders {
        let flags = folder_flags | OFlags::NOFOLLOW;
        folder = rustix::fs::openat(&folder, *name, flags, Mode::empty()).map_err(describe_error)?;
    }
    rustix::fs::openat(&folder, *last, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(describe_error)
}

fn describe_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a symbolic link has come into its path"),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn neither_way_of_opening_follows_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("real/file", root.join("link")).unwrap();
        for (path, opens) in [("real/file", true), ("folder/file", false), ("link", false)] {
            assert_eq!(open_by_walk(&root.join(path), OFlags::RDONLY).is_ok(), opens, "{path}");
            assert_eq!(open(&root.join(path), OFlags::RDONLY).is_ok(), opens, "{path}");
        }
    }

    #[test]
    fn a_new_name_is_never_that_of_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = Folder::open(&folder.path().canonicalize().unwrap()).unwrap();
        for name in ["a", "b"] {
            root.create_file(name.as_ref(), 0o600).unwrap();
        }
        let error = root.rename_new("a".as_ref(), &root, "b".as_ref()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            root.publish_new("a".as_ref(), "b".as_ref()).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        root.publish_new("a".as_ref(), "c".as_ref()).unwrap();
        assert!(root.contains("c".as_ref()) && !root.contains("a".as_ref()));
    }
}
