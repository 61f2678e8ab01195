//! Recording: the state before a file tool writes or a command runs, and the state after.
//!
//! Must not know how changes are taken back. Invariant: when `before_write` or `before_command` returns, the store holds
//! the former bytes of everything that it does not name as uncovered.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{At, UndoError};
use crate::index::{Content, Entry, Index, TIMESTAMP_TICK};
use crate::objects::Stored;
use crate::record::{self, Change, Line};
use crate::scan::{self, Kind, Seen};
use crate::state::{FileState, Hash, StoredPath};
use crate::{CachedIndex, TurnKey, UndoStore, git, now, resolve};

/// What the store could not copy.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Files over a limit, or that cannot be read.
    pub uncovered: Vec<PathBuf>,
    /// Folders that a build tool makes anew.
    pub build_folders: Vec<PathBuf>,
}

/// The state of a workspace before a command.
pub struct CommandSnapshot {
    log: PathBuf,
    roots: Vec<RootSnapshot>,
    pub coverage: Coverage,
}

impl CommandSnapshot {
    /// Paths of the workspace as they were before the command, those whose last name is wanted.
    pub fn find(&self, wanted: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for RootSnapshot { root, index, .. } in &self.roots {
            let names = index.entries.keys().filter(|path| wanted(last_name(path)));
            found.extend(names.map(|path| root.join(path)));
        }
        found
    }
}

fn last_name(path: &OsStr) -> &OsStr {
    Path::new(path).file_name().unwrap_or(path)
}

struct RootSnapshot {
    root: PathBuf,
    skip: &'static [&'static str],
    index: Arc<Index>,
    baseline: PathBuf,
}

impl UndoStore {
    /// Must run before a file tool writes, moves or deletes `path`.
    pub fn before_write(&self, key: &TurnKey, path: &Path) -> Result<Coverage, UndoError> {
        let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
        if size <= self.limits.file {
            self.drop_old_turns(size)?;
        }
        let _lock = self.lock()?;
        let log = self.turn_log(key)?;
        let path = resolve(path);
        let mut coverage = Coverage::default();
        // A tool may write through the link, and then the link's target changes.
        let target = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
        // Folders that the tool will have to create.
        let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
        let mut lines = Vec::new();
        for path in missing.map(Path::to_owned).chain([path.clone()]).chain(target) {
            self.add_before(&path, &mut lines, &mut coverage)?;
        }
        self.objects.sync().at("write", &self.folder)?;
        record::append_synced(&log, &lines).at("write", &log)?;
        record_uncovered(&log, &coverage)?;
        Ok(coverage)
    }

    fn add_before(
        &self,
        path: &Path,
        lines: &mut Vec<Line>,
        coverage: &mut Coverage,
    ) -> Result<(), UndoError> {
        let state = self.state_of(path)?;
        let mut changes = vec![(path.to_owned(), state)];
        if path.is_dir() && !path.is_symlink() {
            let found = scan::scan(path, &[], self.limits.entries).at("read", path)?;
            coverage.build_folders.extend(found.build_folders);
            for (relative, _) in found.entries {
                let below = path.join(relative);
                let state = self.state_of(&below)?;
                changes.push((below, state));
            }
        }
        for (path, state) in changes {
            if matches!(state, FileState::Uncovered { .. }) {
                coverage.uncovered.push(path.clone());
            }
            lines.push(Line::Before { path: StoredPath(path), state });
        }
        Ok(())
    }

    /// Must run after the tool has ended, with the same paths.
    pub fn after_write(&self, key: &TurnKey, path: &Path) -> Result<(), UndoError> {
        let _lock = self.lock()?;
        let log = self.turn_log(key)?;
        let path = resolve(path);
        let known = record::Record::load(&log).unwrap_or_default();
        let affected = known.changes.values().filter(|change| change.after.is_none());
        for change in affected.cloned().collect::<Vec<_>>() {
            let state = self.state_of(&change.path.0)?;
            record::append(&log, &Line::After { path: change.path, state }).at("write", &log)?;
        }
        if path.is_dir() && !path.is_symlink() {
            // A folder was moved here: everything below it is new.
            let found = scan::scan(&path, &[], self.limits.entries).at("read", &path)?;
            let mut changes = Vec::new();
            for (relative, _) in found.entries {
                let below = path.join(relative);
                if !known.changes.contains_key(&below) {
                    let after = Some(self.state_of(&below)?);
                    changes.push(Change { path: StoredPath(below), before: FileState::Absent, after });
                }
            }
            record::append(&log, &Line::Changes { changes }).at("write", &log)?;
        }
        Ok(())
    }

    /// Must run before a command that may change files below `roots`.
    pub fn before_command(&self, key: &TurnKey, roots: &[PathBuf]) -> Result<CommandSnapshot, UndoError> {
        let roots = all_roots(roots);
        // A tenth is kept free, so that one command's files fit without a pause.
        let folders: Vec<PathBuf> = roots.iter().map(|(root, _)| root.clone()).collect();
        self.make_room(self.limits.total / 10, &folders)?;
        let _lock = self.lock()?;
        let log = self.turn_log(key)?;
        let mut coverage = Coverage::default();
        let mut taken = Vec::new();
        for (root, skip) in roots {
            let Some(index) = self.refresh(&root, skip, &mut coverage)? else { continue };
            let baseline = self.keep_baseline(&log, &root)?;
            taken.push(RootSnapshot { root, skip, index, baseline });
        }
        record_uncovered(&log, &coverage)?;
        self.objects.must_sync(log.clone());
        self.objects.sync().at("write", &self.folder)?;
        Ok(CommandSnapshot { log, roots: taken, coverage })
    }

    /// Files below `roots` whose former content could not be brought back: they are over a limit or cannot be read. A
    /// folder stands for everything below it.
    pub fn unrecoverable(&self, roots: &[PathBuf]) -> Result<Vec<PathBuf>, UndoError> {
        let mut paths = Vec::new();
        for (root, skip) in all_roots(roots) {
            let found = scan::scan(&root, skip, self.limits.entries).at("read", &root)?;
            if found.too_large {
                paths.push(root);
                continue;
            }
            paths.extend(found.unreadable);
            let large = found.entries.into_iter().filter(|(_, seen)| {
                // A file larger than the whole store fits in it no better than one that is too large by itself.
                seen.kind == Kind::File && seen.stamp.size > self.limits.file.min(self.limits.total)
            });
            paths.extend(large.map(|(path, _)| root.join(path)));
            let known = self.known_index(&root);
            let refused = known
                .entries
                .iter()
                .filter(|(_, entry)| entry.content == Content::Uncovered && !self.should_retry(entry));
            paths.extend(refused.map(|(path, _)| root.join(path)).filter(|path| path.exists()));
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Links the index file as the command's baseline, so that a kill during the command loses nothing.
    fn keep_baseline(&self, log: &Path, root: &Path) -> Result<PathBuf, UndoError> {
        let folder = log.parent().unwrap_or(&self.folder);
        let index = self.index_path(root);
        for number in 0.. {
            let name = format!("baseline-{number}");
            let baseline = folder.join(&name);
            match fs::hard_link(&index, &baseline) {
                Ok(()) => {
                    self.live_baselines().insert(baseline.clone());
                    let line = Line::Command { root: root.into(), baseline: name };
                    record::append(log, &line).at("write", log)?;
                    return Ok(baseline);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).at("link", &index),
            }
        }
        Ok(folder.to_owned())
    }

    /// Records what the command changed. Returns the paths.
    pub fn after_command(&self, snapshot: CommandSnapshot) -> Result<Vec<PathBuf>, UndoError> {
        let _lock = self.lock()?;
        let mut coverage = Coverage::default();
        let mut paths = Vec::new();
        for RootSnapshot { root, skip, index, baseline } in snapshot.roots {
            let Some(after) = self.refresh(&root, skip, &mut coverage)? else { continue };
            let is_unchanged = Arc::ptr_eq(&index, &after);
            let changes = if is_unchanged { Vec::new() } else { differences(&root, &index, &after) };
            paths.extend(changes.iter().map(|change| change.path.0.clone()));
            if !changes.is_empty() {
                record::append(&snapshot.log, &Line::Changes { changes }).at("write", &snapshot.log)?;
            }
            self.live_baselines().remove(&baseline);
            let _ = fs::remove_file(baseline);
        }
        record_uncovered(&snapshot.log, &coverage)?;
        Ok(paths)
    }

    /// Records what commands changed whose process was killed while they ran.
    pub(crate) fn finish_interrupted(&self, log: &Path) -> Result<(), UndoError> {
        let Some(record) = record::Record::load(log) else { return Ok(()) };
        for (root, name) in record.commands {
            let baseline = log.parent().unwrap_or(&self.folder).join(name);
            if !baseline.exists() {
                continue;
            }
            let skip = if git::is_inside(&root) { git::NOT_STATE } else { &[] };
            let before = Index::load(&baseline);
            let Some(after) = self.refresh(&root, skip, &mut Coverage::default())? else { continue };
            let changes = differences(&root, &before, &after);
            record::append(log, &Line::Changes { changes }).at("write", log)?;
            // A job goes on: its later changes are found from the same state.
            if !self.live_baselines().contains(&baseline) {
                let _ = fs::remove_file(baseline);
            }
        }
        Ok(())
    }

    fn live_baselines(&self) -> std::sync::MutexGuard<'_, std::collections::HashSet<PathBuf>> {
        self.live.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The state of a path now; the store then holds its content.
    pub(crate) fn state_of(&self, path: &Path) -> Result<FileState, UndoError> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => return Ok(FileState::Absent),
            Err(error) => return Err(error).at("read", path),
        };
        let Some(seen) = Seen::of(&metadata) else {
            return Ok(FileState::Uncovered { size: 0, mtime: 0 });
        };
        Ok(self.read_entry(path, seen, i64::MAX).map_or(FileState::Absent, |entry| entry.state()))
    }

    /// Stores the content of one path. `None`: it has vanished meanwhile.
    fn read_entry(&self, path: &Path, seen: Seen, started: i64) -> Option<Entry> {
        let mut seen = seen;
        let content = match seen.kind {
            Kind::Folder => Content::Folder,
            Kind::Link => Content::Link(fs::read_link(path).ok()?.into_os_string()),
            Kind::File => match self.objects.store_file(path) {
                Ok(Stored::Held(hash, size)) => {
                    seen.stamp.size = size;
                    Content::Held(hash)
                }
                Ok(Stored::Refused) => Content::Uncovered,
                Err(error) if is_missing(&error) => return None,
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "undo cannot copy a file");
                    Content::Uncovered
                }
            },
        };
        Some(Entry { seen, content, racy: seen.stamp.ctime > started - TIMESTAMP_TICK })
    }

    /// Brings the index of a root up to date; the store then holds every content that the index names. `None`: the root has
    /// too many entries.
    fn refresh(
        &self,
        root: &Path,
        skip: &'static [&'static str],
        coverage: &mut Coverage,
    ) -> Result<Option<Arc<Index>>, UndoError> {
        let too_large = || self.too_large.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if too_large().contains(root) {
            coverage.uncovered.push(root.to_owned());
            return Ok(None);
        }
        let started = i64::try_from(now()).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        let known = self.known_index(root);
        let found = scan::scan(root, skip, self.limits.entries).at("read", root)?;
        if found.too_large {
            too_large().insert(root.to_owned());
            coverage.uncovered.push(root.to_owned());
            return Ok(None);
        }
        coverage.build_folders.extend(found.build_folders);
        coverage.uncovered.extend(found.unreadable);
        let (mut current, mut stale) = (0, Vec::new());
        for (path, seen) in &found.entries {
            match known.entries.get(path) {
                Some(entry) if entry.is_current(seen) && !self.should_retry(entry) => current += 1,
                _ => stale.push((path, *seen)),
            }
        }
        let index = if stale.is_empty() && current == known.entries.len() && self.index_path(root).exists() {
            known
        } else {
            let mut entries = self.read_all(root, &stale, started);
            for (path, _) in &found.entries {
                if let Some(entry) = known.entries.get(path).filter(|_| !entries.contains_key(path)) {
                    entries.insert(path.clone(), Some(entry.clone()));
                }
            }
            let entries = entries.into_iter().filter_map(|(path, entry)| Some((path, entry?))).collect();
            self.save_index(root, Index { entries })?
        };
        let refused = index.entries.iter().filter(|(_, entry)| entry.content == Content::Uncovered);
        coverage.uncovered.extend(refused.map(|(path, _)| root.join(path)));
        Ok(Some(index))
    }

    /// The store was full, and may have room now.
    fn should_retry(&self, entry: &Entry) -> bool {
        let size = entry.seen.stamp.size;
        entry.content == Content::Uncovered
            && size <= self.limits.file
            && self.objects.used() + size <= self.limits.total
    }

    /// Stores contents on a few threads.
    fn read_all(
        &self,
        root: &Path,
        stale: &[(&OsString, Seen)],
        started: i64,
    ) -> HashMap<OsString, Option<Entry>> {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
        let share = stale.len().div_ceil(threads).max(1);
        let read = |share: &[(&OsString, Seen)]| -> Vec<(OsString, Option<Entry>)> {
            let entry = |path: &OsString, seen| self.read_entry(&root.join(path), seen, started);
            share.iter().map(|(path, seen)| ((*path).clone(), entry(path, *seen))).collect()
        };
        if stale.len() < 64 {
            return read(stale).into_iter().collect();
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = stale.chunks(share).map(|share| scope.spawn(move || read(share))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        })
    }

    pub(crate) fn index_path(&self, root: &Path) -> PathBuf {
        let name = Hash::of(crate::state::to_bytes(root.as_os_str())).hex();
        self.folder.join("indexes").join(&name[..32])
    }

    fn known_index(&self, root: &Path) -> Arc<Index> {
        let path = self.index_path(root);
        let stamp = fs::metadata(&path).ok().as_ref().and_then(Seen::of).map(|seen| seen.stamp);
        let mut indexes = self.indexes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = indexes.get(root).filter(|known| known.stamp == stamp) {
            return known.index.clone();
        }
        // Without its contents an index would promise what is not there.
        let index = if self.folder.join("objects").exists() { Index::load(&path) } else { Index::default() };
        let index = Arc::new(index);
        indexes.insert(root.to_owned(), CachedIndex { stamp, index: index.clone() });
        index
    }

    fn save_index(&self, root: &Path, index: Index) -> Result<Arc<Index>, UndoError> {
        let path = self.index_path(root);
        index.save(&path).at("write", &path)?;
        self.objects.must_sync(path.clone());
        let stamp = fs::metadata(&path).ok().as_ref().and_then(Seen::of).map(|seen| seen.stamp);
        let index = Arc::new(index);
        let mut indexes = self.indexes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        indexes.insert(root.to_owned(), CachedIndex { stamp, index: index.clone() });
        Ok(index)
    }
}

/// The workspace's folders without those inside of another, and git's folders outside of them.
fn all_roots(roots: &[PathBuf]) -> Vec<(PathBuf, &'static [&'static str])> {
    let mut whole: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    whole.sort();
    whole.dedup_by(|one, before| one.starts_with(before));
    let mut outer: Vec<PathBuf> = whole.iter().flat_map(|root| git::outer_folders(root)).collect();
    outer.sort();
    outer.dedup();
    outer.retain(|folder| !whole.iter().any(|root| folder.starts_with(root)));
    let skip_none: &'static [&'static str] = &[];
    let whole = whole.into_iter().map(|root| (root, skip_none));
    whole.chain(outer.into_iter().map(|folder| (folder, git::NOT_STATE))).collect()
}

fn differences(root: &Path, before: &Index, after: &Index) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |path: &OsString, before: FileState, after: FileState| {
        let path = root.join(path);
        let only_added = before == FileState::Absent && git::is_object(&path);
        if before != after && !only_added {
            changes.push(Change { path: StoredPath(path), before, after: Some(after) });
        }
    };
    for (path, entry) in &before.entries {
        match after.entries.get(path) {
            Some(now) if now == entry => {}
            Some(now) => add(path, entry.state(), now.state()),
            None => add(path, entry.state(), FileState::Absent),
        }
    }
    for (path, now) in &after.entries {
        if !before.entries.contains_key(path) {
            add(path, FileState::Absent, now.state());
        }
    }
    changes
}

fn record_uncovered(log: &Path, coverage: &Coverage) -> Result<(), UndoError> {
    if coverage.uncovered.is_empty() {
        return Ok(());
    }
    let paths = coverage.uncovered.iter().map(|path| StoredPath(path.clone())).collect();
    record::append(log, &Line::Uncovered { paths }).at("write", log)
}

/// The path is not there, or one of its folders is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
