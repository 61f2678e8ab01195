//! Copies of git directories whose helper was killed before it took them over: a stop that the command did not follow, or
//! the end of Dragoman itself. What a command committed or stashed is in them.
//!
//! Invariants: a copy is described before the command begins; commands cannot reach its folder; it is taken over before its
//! folder is removed, and once.

use std::fs;
use std::path::Path;

use super::copy_marks::{DESCRIPTION, Description, TAKEN};
use super::git_copy::{GitCopy, take_over_one};

/// Takes a copy over that was left in this folder, if one was.
pub(crate) fn take_over_left(place: &Path) {
    if place.join(TAKEN).exists() {
        return;
    }
    let Ok(text) = fs::read(place.join(DESCRIPTION)) else { return };
    let Ok(description) = serde_json::from_slice::<Description>(&text) else { return };
    let began = description.began.parse().unwrap_or_default();
    let Ok(copy) = GitCopy::of_killed(place, description.folder, description.configuration, began) else {
        return;
    };
    let (refused, problem) = take_over_one(&copy);
    tracing::info!(folder = %copy.folder.display(), ?refused, ?problem, "a copy of a git directory was taken over late");
}

/// The same for all copies of a temporary folder.
pub(crate) fn take_over_all(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("git-") {
            take_over_left(&entry.path());
        }
    }
}
