//! Windows.

pub mod credentials;
pub(crate) mod files;
pub(crate) mod folder;
pub mod local_socket;
pub(crate) mod paths;
pub(crate) mod space;
pub mod terminal;

use std::ffi::OsStr;
use std::os::windows::ffi::OsStrExt;

/// A text as the system's functions want it.
pub(crate) fn wide(text: &OsStr) -> Vec<u16> {
    text.encode_wide().chain([0]).collect()
}
