//! Modes, owners and names of files on Unix.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt as _, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, Mode, OFlags};

use crate::Stamp;

/// How a file is made and opened.
pub trait OpenOptionsExt {
    /// A new file is for its owner alone.
    fn private(&mut self) -> &mut Self;
    /// A new file gets this mode, less what the user's mask forbids. Windows has no modes.
    fn new_mode(&mut self, mode: u32) -> &mut Self;
    /// A symbolic link at the end of the path is not followed.
    fn no_follow(&mut self) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn private(&mut self) -> &mut Self {
        self.mode(0o600)
    }

    fn new_mode(&mut self, mode: u32) -> &mut Self {
        self.mode(mode)
    }

    fn no_follow(&mut self) -> &mut Self {
        self.custom_flags(libc::O_NOFOLLOW)
    }
}

/// Makes the missing folders of a path, for their owner alone.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a folder for its owner alone; fails where something has its name.
pub fn create_new_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)
}

/// The file belongs to the user of this process.
pub fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Nobody but root can change the file, or put another one in its place. The error says what is wrong.
pub fn check_owned_by_administrator(path: &Path) -> Result<(), String> {
    for place in path.ancestors() {
        let name = place.display();
        let kind = place.symlink_metadata().map_err(|error| format!("{name}: {error}"))?;
        if kind.is_symlink() {
            return Err(format!("{name} is a link"));
        }
        if kind.uid() != 0 && !(kind.uid() == UNMAPPED && maps_some_users()) {
            return Err(format!("{name} does not belong to root"));
        }
        if kind.mode() & 0o022 != 0 {
            return Err(format!("users other than root can write to {name}"));
        }
    }
    Ok(())
}

/// How owners that a user namespace does not know are shown, root outside of it among them.
const UNMAPPED: u32 = 65534;

fn maps_some_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut lines = map.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    lines.next().is_some_and(|first| first != ["0", "0", "4294967295"])
}

/// Makes the missing folders of a path with this mode, less what the user's mask forbids.
pub fn create_folder(folder: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(folder)
}

/// Takes away the rights of others, also where the user's mask would leave some.
pub fn restrict(path: &Path, wanted: u32) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(path)?.permissions().mode();
    // Many users share a sticky folder, such as /tmp: its mode must stay.
    if mode & 0o777 == wanted || mode & STICKY != 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(wanted))
}

/// Takes the exclusive lock on a file without waiting; it ends with the last handle. Other processes can read the file.
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// The twelve bits of a mode; on Windows what the read-only flag says.
pub fn mode_of(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Permissions of a new file for everybody whom the user's mask lets read it. `None`: new files are like that anyway.
pub fn permissions_for_all() -> Option<Permissions> {
    Some(Permissions::from_mode(0o666))
}

/// Tells a file from another one that later got the same name.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The same for an open file.
pub fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

pub fn stamp_of(metadata: &Metadata) -> Stamp {
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Stamp {
        mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
        ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}

/// A regular file that somebody may execute.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
        && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// Files can be made in a folder.
pub fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, Access::WRITE_OK).is_ok()
}

/// Makes a symbolic link.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// A name as bytes: any on Unix, WTF-8 on Windows.
pub fn name_bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}

/// The name that [`name_bytes`] gave.
pub fn name_from_bytes(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// Opens a file for reading without following a link at its end and without waiting for a pipe.
pub fn open_unfollowed(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Gives a file a name that another one may have. On Windows it is tried again while another program has that one open.
pub fn replace_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Makes a call that on Windows fails while another program has the file open, and is then repeated for a second at most.
pub fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    attempt()
}

/// Waits until a folder's entries are on disk. Windows does not offer it and keeps them in its own journal.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Waits until everything on the file system of this folder is on disk; false where that cannot be asked.
pub fn sync_file_system(folder: &Path) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::syncfs(File::open(folder)?)?;
        Ok(true)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        Ok(false)
    }
}

/// Lets the copy share the blocks of the source, where the file system can.
pub fn clone_file(copy: &File, source: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(copy, source).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (copy, source);
        false
    }
}

/// Standard input and output, unbuffered. Nothing else may use them meanwhile.
pub fn standard_streams() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    Ok((input.into(), io::stdout().as_fd().try_clone_to_owned()?.into()))
}
