//! Small steps on the files of a layer and of a git directory. No link is followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, statat, unlinkat};

/// Larger files are not looked into.
const MOST_BYTES: u64 = 16 << 20;
/// Set on a folder that hides the one below it.
const OPAQUE: &str = "user.overlay.opaque";

pub(super) fn beneath() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

pub(super) fn names(folder: &OwnedFd) -> Vec<std::ffi::OsString> {
    let Ok(entries) = Dir::read_from(folder) else { return Vec::new() };
    let names =
        entries.flatten().map(|entry| std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    names.filter(|name| name != "." && name != "..").collect()
}

pub(super) fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0; 1];
    rustix::fs::fgetxattr(folder, OPAQUE, &mut value).is_ok_and(|length| length == 1 && value == *b"y")
}

pub(super) fn read(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(file.try_clone()?).take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // The file may be read once more.
    rustix::fs::seek(file.as_fd(), rustix::fs::SeekFrom::Start(0))?;
    Ok(bytes)
}

/// Removes a folder with everything in it; a link counts itself.
pub(super) fn remove_all(above: &OwnedFd, name: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(above, name, flags, Mode::empty())?;
    for entry in names(&folder) {
        let stat = statat(&folder, &entry, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            remove_all(&folder, Path::new(&entry))?;
        } else {
            unlinkat(&folder, &entry, AtFlags::empty())?;
        }
    }
    Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
}
