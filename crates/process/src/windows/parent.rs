//! Watching a process that is not our child, such as the editor that started us, for its death.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::WAIT_TIMEOUT;
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

/// How the watched process was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentEnd {
    /// It lived and is gone.
    Died,
    /// It was not there at the first look: dead already, or the number belongs to another machine or container.
    NotFound,
}

/// Resolves when the process `pid` has ended. Dropping the future ends the watch.
pub async fn watch_parent(pid: u32) -> ParentEnd {
    let Some(process) = open(pid).filter(is_alive) else { return ParentEnd::NotFound };
    while is_alive(&process) {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    ParentEnd::Died
}

/// The handle keeps the number from going to another process.
fn open(pid: u32) -> Option<OwnedHandle> {
    // SAFETY: a number of a process; the new handle is owned below.
    let handle = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid) };
    // SAFETY: a handle that was just made and has no other owner.
    (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn is_alive(process: &OwnedHandle) -> bool {
    // SAFETY: the handle is open and may be waited for; the call returns at once.
    unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_TIMEOUT }
}
