//! What is written beside a copy of a git directory: whose copy it is, and that it was taken over.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::policy;

pub(super) const DESCRIPTION: &str = "copy.json";
pub(super) const TAKEN: &str = "taken";

#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) folder: PathBuf,
    pub(super) configuration: bool,
    /// Nanoseconds since 1970, as text: more than a number of JSON holds.
    pub(super) began: String,
}

pub(super) fn describe(wanted: &policy::GitCopy, folder: &Path, began: i128) -> io::Result<()> {
    let (folder, began) = (folder.to_owned(), began.to_string());
    let description = Description { folder, configuration: wanted.configuration, began };
    fs::write(wanted.place.join(DESCRIPTION), serde_json::to_vec(&description)?)
}

pub(super) fn mark_taken(place: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let _ = openat(place, TAKEN, flags, Mode::from_raw_mode(0o600));
}
