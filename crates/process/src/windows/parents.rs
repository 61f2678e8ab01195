//! The line of parents of a process on Windows, from one look at the list of all processes.
//!
//! Windows keeps the number of a parent that has ended. Where that number belongs to a Dragoman by now, its process counts as
//! the parent: a process is refused too often rather than too seldom.

use std::collections::HashMap;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION};

/// No line of parents is longer.
const GENERATIONS: usize = 256;
/// How the program is called, whatever a copy of it is called.
const PROGRAM: &str = "dragoman.exe";

/// Whether a process is in one of our jobs, or a Dragoman is above it. One that cannot be looked at counts as below.
pub(crate) fn is_below(process: u32) -> bool {
    let Some(opened) = open(process) else { return true };
    if crate::reaper::is_in_own_job(&opened) {
        return true;
    }
    let Some(processes) = processes() else { return true };
    let own = std::process::id();
    let own_name = processes.get(&own).map(|(_, name)| name.clone());
    let is_dragoman = |name: &String| name == PROGRAM || Some(name) == own_name.as_ref();
    let mut at = process;
    for _ in 0..GENERATIONS {
        let Some((parent, _)) = processes.get(&at) else { return false };
        let Some((_, name)) = processes.get(parent).filter(|_| *parent != 0) else { return false };
        if *parent == own || is_dragoman(name) {
            return true;
        }
        at = *parent;
    }
    true
}

fn open(process: u32) -> Option<OwnedHandle> {
    // SAFETY: a number of a process; the new handle is owned below.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process) };
    // SAFETY: a handle that was just made and has no other owner.
    (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// The parent and the program's name in lower case of each process.
fn processes() -> Option<HashMap<u32, (u32, String)>> {
    // SAFETY: the new handle is owned below.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return None;
    }
    // SAFETY: a handle that was just made and has no other owner.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry =
        PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..PROCESSENTRY32W::default() };
    let mut found = HashMap::new();
    // SAFETY: the snapshot is open, and the structure has its size in it.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let end = entry.szExeFile.iter().position(|unit| *unit == 0).unwrap_or(entry.szExeFile.len());
        let name = String::from_utf16_lossy(&entry.szExeFile[..end]).to_lowercase();
        found.insert(entry.th32ProcessID, (entry.th32ParentProcessID, name));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Some(found)
}
