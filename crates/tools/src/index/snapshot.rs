//! All paths of a workspace at one moment, packed so that a search reads memory in one sweep.
//!
//! Invariant: entries are sorted, so that the same tree gives the same answers.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ignore::{DirEntry, WalkState};
use platform::{System, names};

use super::FoundPath;
use crate::walk;

/// Entries that are kept of a tree without end.
const MAX_PATHS: usize = 1_500_000;
/// Entries that are found before the rest of a large tree.
const FIRST_PATHS: usize = 2_000;
/// A deeper tree has its top in fewer levels.
const MAX_TOP_DEPTH: usize = 16;
const THREADS: usize = 2;

pub struct Snapshot {
    roots: Vec<PathBuf>,
    /// Every path relative to its root, each followed by a line end. No path here holds one itself.
    pub(super) text: String,
    /// The same in lower case (ASCII), byte for byte.
    pub(super) lower: String,
    pub(super) entries: Vec<IndexedPath>,
}

#[derive(Clone, Copy)]
pub(super) struct IndexedPath {
    pub start: u32,
    pub end: u32,
    /// Where the name begins.
    pub name: u32,
    root: u16,
    /// Folders above it.
    pub depth: u16,
    pub folder: bool,
    /// Which letters it holds.
    pub letters: u64,
}

impl Snapshot {
    pub fn walk(roots: &[PathBuf]) -> Self {
        Self::pack(roots.to_vec(), list_all(roots, None, MAX_PATHS))
    }

    /// Hands over a small tree as a whole (`true`), and the levels of a large one, each with those above it, in about the
    /// same time for a tree of any size. Stops where `publish` returns false. Returns true if the rest is not wanted.
    pub fn walk_top(roots: &[PathBuf], mut publish: impl FnMut(Self, bool) -> bool) -> bool {
        let all = list_all(roots, None, FIRST_PATHS);
        if all.len() < FIRST_PATHS {
            publish(Self::pack(roots.to_vec(), all), true);
            return true;
        }
        let mut found = Vec::new();
        for depth in 1..=MAX_TOP_DEPTH {
            // The last level is cut off, so the one before it is kept beside it.
            found.extend(list_all(roots, Some(depth), FIRST_PATHS));
            if !publish(Self::pack(roots.to_vec(), found.clone()), false) {
                return true;
            }
            if found.len() >= FIRST_PATHS {
                break;
            }
        }
        false
    }

    /// The entries with the last word of the query in those folders that the rest of it names from a root on. Reads
    /// only these folders, so it takes about the same time in a tree of any size.
    pub(super) fn walk_named(roots: &[PathBuf], query: &str) -> Self {
        let mut named = Self::pack(roots.to_vec(), Vec::new());
        let query = names::for_rules(query.trim(), System::CURRENT);
        let query = named.without_root(&query).to_ascii_lowercase();
        if let Some((folders, name)) = query.rsplit_once('/') {
            let folders: Vec<&str> = folders.split('/').collect();
            let mut found = Vec::new();
            for (number, root) in (0..=u16::MAX).zip(roots) {
                let paths = list_named(root, &folders, name, FIRST_PATHS);
                found.extend(paths.into_iter().map(|(path, folder)| (number, path, folder)));
            }
            named = Self::pack(roots.to_vec(), found);
        }
        named
    }

    /// From relative paths; `true` for folders.
    pub fn from_paths(root: PathBuf, paths: Vec<(String, bool)>) -> Self {
        Self::pack(vec![root], paths.into_iter().map(|(path, folder)| (0, path, folder)).collect())
    }

    fn pack(roots: Vec<PathBuf>, mut found: Vec<(u16, String, bool)>) -> Self {
        found.sort_unstable();
        found.dedup();
        let mut text = String::with_capacity(found.iter().map(|(_, path, _)| path.len() + 1).sum());
        let mut entries = Vec::with_capacity(found.len());
        for (root, path, folder) in found {
            let start = text.len();
            let Ok(end) = u32::try_from(start + path.len()) else { break };
            let name = path.rfind('/').map_or(0, |at| at + 1);
            // Both below `end`, which fits.
            let (start, name) = (start as u32, (start + name) as u32);
            let depth = path.bytes().filter(|byte| *byte == b'/').count().min(usize::from(u16::MAX)) as u16;
            entries.push(IndexedPath { start, end, name, root, depth, folder, letters: letter_set(&path) });
            text.push_str(&path);
            text.push('\n');
        }
        let lower = text.to_ascii_lowercase();
        Self { roots, text, lower, entries }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn path(&self, entry: &IndexedPath) -> &str {
        &self.text[entry.start as usize..entry.end as usize]
    }

    pub(super) fn found(&self, number: usize) -> FoundPath {
        let entry = &self.entries[number];
        let root = self.roots.get(usize::from(entry.root)).map(PathBuf::as_path).unwrap_or(Path::new("/"));
        let mut path = root.to_owned();
        path.extend(self.path(entry).split('/'));
        FoundPath { path, folder: entry.folder }
    }

    /// A query that is an absolute path means what is below its root.
    pub(super) fn without_root<'a>(&self, query: &'a str) -> &'a str {
        let below = self
            .roots
            .iter()
            .find_map(|root| query.strip_prefix(&*names::for_rules(root.to_str()?, System::CURRENT)));
        below.map_or(query, |rest| rest.trim_start_matches('/')).trim_start_matches("./")
    }
}

/// The paths of all roots with the numbers of the roots.
fn list_all(roots: &[PathBuf], depth: Option<usize>, max: usize) -> Vec<(u16, String, bool)> {
    let mut found = Vec::new();
    for (number, root) in (0..=u16::MAX).zip(roots) {
        let paths = list_paths(root, depth, max - found.len());
        found.extend(paths.into_iter().map(|(path, folder)| (number, path, folder)));
    }
    found
}

fn list_paths(root: &Path, depth: Option<usize>, max: usize) -> Vec<(String, bool)> {
    let found = Mutex::new(Vec::new());
    walk::builder(root).max_depth(depth).threads(THREADS).build_parallel().run(|| {
        let mut own = Batch { found: &found, list: Vec::new() };
        Box::new(move |entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.depth() == 0 {
                return WalkState::Continue;
            }
            let relative = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
            // A name that is no text, or breaks lines, cannot be typed.
            if let Some(path) = relative.filter(|path| !path.contains('\n')) {
                own.push(
                    names::for_rules(path, System::CURRENT),
                    entry.file_type().is_some_and(|kind| kind.is_dir()),
                );
            }
            if own.is_full(max) { WalkState::Quit } else { WalkState::Continue }
        })
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.truncate(max);
    found
}

/// The entries of the folder `folders` whose names hold `name`, both in lower case. Ignored ones are left out as always.
fn list_named(root: &Path, folders: &[&str], name: &str, max: usize) -> Vec<(String, bool)> {
    let depth = folders.len() + 1;
    let (folders, name): (Vec<String>, String) =
        (folders.iter().map(ToString::to_string).collect(), name.into());
    let is_wanted = move |entry: &DirEntry| {
        let lower = entry.file_name().to_string_lossy().to_ascii_lowercase();
        match entry.depth().checked_sub(1).and_then(|above| folders.get(above)) {
            Some(folder) => lower == *folder,
            None => lower.contains(&name),
        }
    };
    let walk = walk::builder_where(root, is_wanted).max_depth(Some(depth)).build();
    let entries = walk.flatten().filter(|entry| entry.depth() == depth);
    let named = entries.filter_map(|entry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str().filter(|path| !path.contains('\n'))?;
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some((names::for_rules(path, System::CURRENT), is_folder))
    });
    named.take(max).collect()
}

/// A thread hands over this many entries at once.
const BATCH_PATHS: usize = 512;

/// What one thread found and has not flushed.
struct Batch<'a> {
    found: &'a Mutex<Vec<(String, bool)>>,
    list: Vec<(String, bool)>,
}

impl Batch<'_> {
    fn push(&mut self, path: String, folder: bool) {
        self.list.push((path, folder));
        if self.list.len() >= BATCH_PATHS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Ok(mut found) = self.found.lock() {
            found.append(&mut self.list);
        }
    }

    fn is_full(&self, max: usize) -> bool {
        self.list.is_empty() && self.found.lock().is_ok_and(|found| found.len() >= max)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A bit for each letter and digit, in lower case; one for everything else.
pub(super) fn letter_set(text: &str) -> u64 {
    text.bytes().fold(0, |set, byte| {
        set | match byte.to_ascii_lowercase() {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            digit @ b'0'..=b'9' => 1 << (26 + digit - b'0'),
            _ => 0,
        }
    })
}
