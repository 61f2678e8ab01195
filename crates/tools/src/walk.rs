//! Walking the workspace: ignored files left out, symlinks not followed, sorted, bounded in time.
//!
//! Invariant: two walks of an unchanged tree give the same entries in the same order.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::CancellationToken;
use ignore::{DirEntry, WalkBuilder};

const MAX_IGNORE_FILE: u64 = 1 << 20;

/// A walk that can be stopped and ends by itself.
pub(crate) struct Walk {
    inner: ignore::Walk,
    cancel: CancellationToken,
    deadline: Instant,
    /// The time was up before the end.
    pub cut_short: bool,
}

impl Walk {
    pub(crate) fn new(from: &Path, time: Duration, cancel: CancellationToken) -> Self {
        let inner = builder(from).sort_by_file_name(|one, other| one.cmp(other)).build();
        Self { inner, cancel, deadline: Instant::now() + time, cut_short: false }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

impl Iterator for Walk {
    type Item = DirEntry;

    fn next(&mut self) -> Option<DirEntry> {
        loop {
            if self.cancel.is_cancelled() {
                return None;
            }
            if Instant::now() > self.deadline {
                self.cut_short = true;
                return None;
            }
            // A folder that cannot be read is left out.
            if let Ok(entry) = self.inner.next()? {
                return Some(entry);
            }
        }
    }
}

/// What every walk has in common: .gitignore and the like hold, hidden files are seen, `.git` is not.
pub(crate) fn builder(from: &Path) -> WalkBuilder {
    builder_where(from, |_| true)
}

/// The same, only of entries that are wanted; others are not looked at.
pub(crate) fn builder_where(
    from: &Path,
    is_wanted: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(from);
    builder.hidden(false).follow_links(false).require_git(false);
    let readable = has_readable_ignore_files(from);
    builder.git_ignore(readable).ignore(readable);
    builder.filter_entry(move |entry| {
        entry.depth() == 0
            || entry.file_name() != ".git"
                && is_wanted(entry)
                && (entry.file_type().is_none_or(|kind| !kind.is_dir())
                    || has_readable_ignore_files(entry.path()))
    });
    builder
}

/// The walk reads these files of a folder before it enters it. A pipe, a device or a file without end in their place
/// would stop it for ever, so such a folder is left out.
fn has_readable_ignore_files(folder: &Path) -> bool {
    [".gitignore", ".ignore"].iter().all(|name| match folder.join(name).metadata() {
        Ok(metadata) => metadata.is_file() && metadata.len() <= MAX_IGNORE_FILE,
        Err(_) => true,
    })
}
