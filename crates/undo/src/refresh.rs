//! The index of a root, brought up to date by a scan.
//!
//! Must not know turns. Invariant: the store holds every content that a refreshed index names; only the stamp of a file,
//! as a scan saw it, says that its content is still the same.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::error::{At, UndoError};
use crate::index::{Content, Entry, EntryChange, Index};
use crate::known::{KnownIndex, RecentScan, TimedScan};
use crate::scan::{self, Scan, Seen};
use crate::state::{self, Hash};
use crate::{UndoStore, now};

/// How old a scan may be that is used once more. The review of a command scans, and the command mostly begins at once;
/// what a person changes in between counts as the command's change, as it does while the command runs.
const MAX_SCAN_AGE: Duration = Duration::from_millis(100);

impl UndoStore {
    /// Brings the index of a root up to date; the store then holds every content that the index names. `None`: the root has
    /// too many entries.
    pub(crate) fn refresh(
        &self,
        root: &Path,
        skip: &'static [&'static str],
        coverage: &mut Coverage,
    ) -> Result<Option<KnownIndex>, UndoError> {
        if lock(&self.too_large).contains(root) {
            coverage.uncovered.push(root.to_owned());
            return Ok(None);
        }
        let known = self.known_index(root);
        let TimedScan { started, found, .. } = match self.take_recent_scan(root) {
            Some(recent) => recent,
            None => self.scan(root, skip)?,
        };
        if found.too_large {
            lock(&self.too_large).insert(root.to_owned());
            coverage.uncovered.push(root.to_owned());
            return Ok(None);
        }
        let changes = self.changes_since(root, &known.index, &found, started);
        coverage.build_folders.extend(found.build_folders);
        coverage.uncovered.extend(found.unreadable);
        let is_there = known.file.is_some_and(|file| file.is_at(&self.index_path(root)));
        let known =
            if changes.is_empty() && is_there { known } else { self.save_index(root, known, changes)? };
        coverage.uncovered.extend(known.index.uncovered().into_iter().map(|path| root.join(path)));
        Ok(Some(known))
    }

    pub(crate) fn scan(&self, root: &Path, skip: &[&str]) -> Result<TimedScan, UndoError> {
        let started = i64::try_from(now()).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        let recorded = self.recorded.load(Ordering::Acquire);
        let found = scan::scan(root, skip, self.limits.entries).at("read", root)?;
        Ok(TimedScan { started, recorded, found })
    }

    /// Keeps a scan for the command that is about to begin.
    pub(crate) fn keep_recent_scan(&self, root: PathBuf, timed: TimedScan) {
        let mut recent = lock(&self.recent);
        recent.retain(|other| other.root != root && other.ended.elapsed() < MAX_SCAN_AGE);
        recent.push(RecentScan { root, ended: Instant::now(), timed });
    }

    /// A scan of a moment ago, where this store has recorded nothing since.
    fn take_recent_scan(&self, root: &Path) -> Option<TimedScan> {
        let recorded = self.recorded.load(Ordering::Acquire);
        let mut recent = lock(&self.recent);
        recent.retain(|other| other.timed.recorded == recorded && other.ended.elapsed() < MAX_SCAN_AGE);
        let at = recent.iter().position(|other| other.root == root)?;
        Some(recent.swap_remove(at).timed)
    }

    /// Files have changed, or are about to: what was seen of them is seen again.
    pub fn forget_scans(&self) {
        self.recorded.fetch_add(1, Ordering::AcqRel);
        lock(&self.recent).clear();
    }

    /// Stores the contents of paths that the index does not know as they are, and tells which paths are gone.
    fn changes_since(&self, root: &Path, known: &Index, found: &Scan, started: i64) -> Vec<EntryChange> {
        let (mut met, mut stale) = (0, Vec::new());
        for (path, seen) in &found.entries {
            let entry = known.get(path);
            met += usize::from(entry.is_some());
            if !entry.is_some_and(|entry| entry.is_current(seen) && !self.should_retry(entry)) {
                stale.push((path, *seen));
            }
        }
        let mut changes = self.read_all(root, &stale, started);
        if met < known.len() {
            let found: HashSet<&OsString> = found.entries.iter().map(|(path, _)| path).collect();
            let gone = known.iter().filter(|(path, _)| !found.contains(path));
            changes.extend(gone.map(|(path, _)| (path.clone(), None)));
        }
        changes
    }

    /// The store was full, and may have room now.
    pub(crate) fn should_retry(&self, entry: &Entry) -> bool {
        let size = entry.seen.stamp.size;
        entry.content == Content::Uncovered
            && size <= self.limits.file
            && self.objects.used() + size <= self.limits.total
    }

    /// Stores contents on a few threads.
    fn read_all(&self, root: &Path, stale: &[(&OsString, Seen)], started: i64) -> Vec<EntryChange> {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
        let share = stale.len().div_ceil(threads).max(1);
        let read = |share: &[(&OsString, Seen)]| -> Vec<EntryChange> {
            let entry = |path: &OsString, seen| self.read_entry(&root.join(path), seen, started);
            share.iter().map(|(path, seen)| ((*path).clone(), entry(path, *seen))).collect()
        };
        if stale.len() < 64 {
            return read(stale);
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = stale.chunks(share).map(|share| scope.spawn(move || read(share))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        })
    }

    pub(crate) fn index_path(&self, root: &Path) -> PathBuf {
        let name = Hash::of(state::to_bytes(root.as_os_str())).hex();
        self.folder.join("indexes").join(&name[..32])
    }

    pub(crate) fn known_index(&self, root: &Path) -> KnownIndex {
        let path = self.index_path(root);
        let mut indexes = lock(&self.indexes);
        let is_current = |known: &&KnownIndex| known.file.is_some_and(|file| file.is_at(&path));
        if let Some(known) = indexes.get(root).filter(is_current) {
            return known.clone();
        }
        // Without its contents an index would promise what is not there.
        let is_held = self.folder.join("objects").exists();
        let (index, file) = if is_held { Index::open(&path) } else { Default::default() };
        let known = KnownIndex { index: Arc::new(index), file };
        indexes.insert(root.to_owned(), known.clone());
        known
    }

    /// Writes what has changed, or everything where another process has written meanwhile.
    fn save_index(
        &self,
        root: &Path,
        known: KnownIndex,
        changes: Vec<EntryChange>,
    ) -> Result<KnownIndex, UndoError> {
        let path = self.index_path(root);
        // An error, such as a file that has gone, is no reason to fail: the whole file can be written.
        let grown = known.file.and_then(|file| file.append(&path, &changes).ok().flatten());
        let index = Arc::new(known.index.with(changes));
        let file = match grown {
            Some(file) => file,
            None => index.save(&path).at("write", &path)?,
        };
        self.objects.must_sync(path);
        let known = KnownIndex { index, file: Some(file) };
        lock(&self.indexes).insert(root.to_owned(), known.clone());
        Ok(known)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
