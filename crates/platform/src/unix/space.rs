//! Free space of a disk.

use std::path::Path;

/// Bytes that the user may still write to the disk of this folder.
pub fn free_space(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}
