//! Mounts that several parts of the helper make: a copy of a mount, an empty folder in memory.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::mount::{MountFlags, OpenTreeFlags, mount, open_tree};

pub(super) fn clone(place: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, c"", flags)
}

pub(super) fn own_tmpfs(path: impl AsRef<Path>) -> rustix::io::Result<()> {
    own_tmpfs_with(path, "")
}

pub(super) fn own_tmpfs_with(path: impl AsRef<Path>, options: &str) -> rustix::io::Result<()> {
    let options = CString::new(format!("mode=755{options}")).map_err(|_| rustix::io::Errno::INVAL)?;
    mount("tmpfs", path.as_ref(), "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())
}
