//! Free space of a disk.

use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;

/// Bytes that the user may still write to the disk of this folder.
pub fn free_space(folder: &Path) -> Option<u64> {
    let folder = super::wide(folder.as_os_str());
    let mut free = 0;
    // SAFETY: the path ends with a zero; the two other results are not wanted.
    let asked = unsafe {
        GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, std::ptr::null_mut(), std::ptr::null_mut())
    };
    (asked != 0).then_some(free)
}
