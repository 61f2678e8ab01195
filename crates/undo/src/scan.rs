//! A walk over a workspace: what is where, by metadata alone.
//!
//! Must not know hashes or turns. Invariants: links are recorded and never followed; build folders are skipped and named;
//! nothing is opened for reading.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::build_folders::is_build_folder;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Link,
    Folder,
}

/// What tells that a file has not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) inode: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) stamp: Stamp,
}

#[derive(Default)]
pub(crate) struct Scan {
    /// By path relative to the root.
    pub(crate) entries: Vec<(OsString, Seen)>,
    pub(crate) build_folders: Vec<PathBuf>,
    /// Folders that could not be read.
    pub(crate) unreadable: Vec<PathBuf>,
    /// The walk ended early.
    pub(crate) too_large: bool,
}

impl Seen {
    /// `None`: neither a file, a link nor a folder.
    pub(crate) fn of(metadata: &fs::Metadata) -> Option<Self> {
        let kind = if metadata.is_file() {
            Kind::File
        } else if metadata.is_symlink() {
            Kind::Link
        } else if metadata.is_dir() {
            Kind::Folder
        } else {
            return None;
        };
        let platform::Stamp { mtime, ctime, inode } = platform::stamp_of(metadata);
        let stamp = Stamp { size: metadata.len(), mtime, ctime, inode };
        Some(Self { kind, mode: platform::mode_of(metadata), stamp })
    }
}

/// Walks `root` on a few threads, and gives up after `most` entries. `skip`: names of folders directly below the root
/// that are left out.
pub(crate) fn scan(root: &Path, skip: &[&str], most: usize) -> io::Result<Scan> {
    match fs::read_dir(root) {
        Ok(_) => {}
        // A command may delete the whole workspace.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Scan::default()),
        Err(error) => return Err(error),
    }
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    let queue = Queue { state: Mutex::default(), changed: Condvar::new(), most };
    lock(&queue.state).waiting.push(OsString::new());
    let mut whole = Scan::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| queue.work(root, skip))).collect();
        for worker in workers {
            let part = worker.join().unwrap_or_default();
            whole.entries.extend(part.entries);
            whole.build_folders.extend(part.build_folders);
            whole.unreadable.extend(part.unreadable);
        }
    });
    whole.too_large = whole.entries.len() > most;
    Ok(whole)
}

/// Folders that wait, and how many workers may still add some.
#[derive(Default)]
struct QueueState {
    waiting: Vec<OsString>,
    busy: usize,
    found: usize,
}

struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    most: usize,
}

fn lock(state: &Mutex<QueueState>) -> MutexGuard<'_, QueueState> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Queue {
    fn work(&self, root: &Path, skip: &[&str]) -> Scan {
        let mut part = Scan::default();
        while let Some(folder) = self.next() {
            let known = part.entries.len();
            let below = read_folder(root, &folder, skip, &mut part);
            let mut state = lock(&self.state);
            state.found += part.entries.len() - known;
            state.waiting.extend(below);
            if state.found > self.most {
                state.waiting.clear();
            }
            state.busy -= 1;
            drop(state);
            self.changed.notify_all();
        }
        part
    }

    /// `None`: nothing waits and no worker can add anything.
    fn next(&self) -> Option<OsString> {
        let mut state = lock(&self.state);
        loop {
            if let Some(folder) = state.waiting.pop() {
                state.busy += 1;
                return Some(folder);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// Adds what is in one folder; returns the folders below it.
fn read_folder(root: &Path, folder: &OsStr, skip: &[&str], part: &mut Scan) -> Vec<OsString> {
    let path = root.join(folder);
    let mut below = Vec::new();
    let Ok(entries) = fs::read_dir(&path) else {
        part.unreadable.push(path);
        return below;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // Relative to the open folder, and not through a link.
        let Some(seen) = entry.metadata().ok().as_ref().and_then(Seen::of) else { continue };
        let mut relative = OsString::with_capacity(folder.len() + name.len() + 1);
        if !folder.is_empty() {
            relative.push(folder);
            relative.push("/");
        }
        relative.push(&name);
        if seen.kind == Kind::Folder {
            let skipped = folder.is_empty() && skip.iter().any(|skip| name == *skip);
            if skipped {
                continue;
            }
            let whole = root.join(&relative);
            if is_build_folder(&whole) {
                part.build_folders.push(whole);
                continue;
            }
            below.push(relative.clone());
        }
        part.entries.push((relative, seen));
    }
    below
}
