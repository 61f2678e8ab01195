//! Recording: the state before a file tool writes or a command runs, and the state after.
//!
//! Must not know how changes are taken back. Invariant: when `before_write` or `before_command` returns, the store holds
//! the former bytes of everything that it does not name as uncovered.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::coverage::Coverage;
use crate::error::{At, UndoError};
use crate::index::{Content, Entry, Index, TIMESTAMP_TICK};
use crate::known::KnownIndex;
use crate::objects::Stored;
use crate::record::{self, Baseline, Change, Line};
use crate::scan::{self, Kind, Seen};
use crate::state::{FileState, StoredPath};
use crate::{TurnKey, UndoStore, git, resolve};

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
            let names = index.iter().filter(|(path, _)| wanted(last_name(path)));
            found.extend(names.map(|(path, _)| root.join(path)));
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
        self.forget_scans();
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
        self.forget_scans();
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
        self.objects.flush_size();
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
            let Some(known) = self.refresh(&root, skip, &mut coverage)? else { continue };
            let baseline = self.keep_baseline(&log, &root, &known)?;
            taken.push(RootSnapshot { root, skip, index: known.index, baseline });
        }
        record_uncovered(&log, &coverage)?;
        self.objects.must_sync(log.clone());
        self.objects.sync().at("write", &self.folder)?;
        self.forget_scans();
        Ok(CommandSnapshot { log, roots: taken, coverage })
    }

    /// Links the index file as the command's baseline, so that a kill during the command loses nothing.
    fn keep_baseline(&self, log: &Path, root: &Path, known: &KnownIndex) -> Result<PathBuf, UndoError> {
        let folder = log.parent().unwrap_or(&self.folder);
        let index = self.index_path(root);
        for number in 0.. {
            let name = format!("baseline-{number}");
            let baseline = folder.join(&name);
            match fs::hard_link(&index, &baseline) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error).at("link", &index),
                Ok(()) => {}
            }
            let is_linked = known.file.is_some_and(|file| file.begins(&baseline));
            if !is_linked {
                // Another process has replaced the file.
                known.index.save(&baseline).at("write", &baseline)?;
                self.objects.must_sync(baseline.clone());
            }
            self.live_baselines().insert(baseline.clone());
            let length = known.file.filter(|_| is_linked).map(|file| file.length);
            let line = Line::CommandBegan { root: root.into(), baseline: name, length };
            record::append(log, &line).at("write", log)?;
            return Ok(baseline);
        }
        Ok(folder.to_owned())
    }

    /// Records what the command changed. Returns the paths.
    pub fn after_command(&self, snapshot: CommandSnapshot) -> Result<Vec<PathBuf>, UndoError> {
        self.forget_scans();
        let _lock = self.lock()?;
        let mut coverage = Coverage::default();
        let mut paths = Vec::new();
        for RootSnapshot { root, skip, index, baseline } in snapshot.roots {
            let Some(after) = self.refresh(&root, skip, &mut coverage)? else { continue };
            let after = after.index;
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
        self.objects.flush_size();
        Ok(paths)
    }

    /// Records what commands changed whose process was killed while they ran.
    pub(crate) fn finish_interrupted(&self, log: &Path) -> Result<(), UndoError> {
        let Some(record) = record::Record::load(log) else { return Ok(()) };
        self.forget_scans();
        for Baseline { root, name, length } in record.commands {
            let baseline = log.parent().unwrap_or(&self.folder).join(name);
            if !baseline.exists() {
                continue;
            }
            let skip = if git::is_inside(&root) { git::NOT_STATE } else { &[] };
            let Some(before) = Index::load_beginning(&baseline, length) else {
                // Without the state before, every file would look as if the command had made it.
                tracing::warn!(root = %root.display(), "what a command changed cannot be taken back: its state is damaged");
                let _ = fs::remove_file(baseline);
                continue;
            };
            let Some(after) = self.refresh(&root, skip, &mut Coverage::default())? else { continue };
            let changes = differences(&root, &before, &after.index);
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
    pub(crate) fn read_entry(&self, path: &Path, seen: Seen, started: i64) -> Option<Entry> {
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
}

/// The workspace's folders without those inside of another, and git's folders outside of them.
pub(crate) fn all_roots(roots: &[PathBuf]) -> Vec<(PathBuf, &'static [&'static str])> {
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
    for path in before.paths_beside(after) {
        let (before, after) = (before.get(path), after.get(path));
        if before != after {
            let state = |entry: Option<&Entry>| entry.map_or(FileState::Absent, Entry::state);
            add(path, state(before), state(after));
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
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
