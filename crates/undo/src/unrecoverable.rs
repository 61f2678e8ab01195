//! Files whose former content could not be brought back, known before anything changes them.
//!
//! Must not store anything. Invariant: a file over a limit, or one that cannot be read, is named.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::UndoError;
use crate::index::Content;
use crate::scan::{Kind, Scan};
use crate::snapshot::{all_roots, is_missing};
use crate::{UndoStore, resolve};

impl UndoStore {
    /// Files below `roots` whose former content could not be brought back: they are over a limit or cannot be read. A
    /// folder stands for everything below it.
    pub fn unrecoverable(&self, roots: &[PathBuf]) -> Result<Vec<PathBuf>, UndoError> {
        let mut paths = Vec::new();
        for (root, skip) in all_roots(roots) {
            let timed = self.scan(&root, skip)?;
            if timed.found.too_large {
                paths.push(root);
                continue;
            }
            paths.extend(self.lost_in(&root, &timed.found));
            paths.extend(self.refused_below(&root));
            self.keep_recent_scan(root, timed);
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// The same of the files that a tool is about to write, move or delete. Nothing else is looked at, so that it takes
    /// the same time in a workspace of any size.
    pub fn unrecoverable_at(&self, files: &[PathBuf], roots: &[PathBuf]) -> Result<Vec<PathBuf>, UndoError> {
        let mut paths = Vec::new();
        let mut is_near_full = false;
        for file in files {
            let path = resolve(file);
            // A tool may write through a link.
            let target = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
            for path in std::iter::once(path).chain(target) {
                is_near_full |= self.add_lost(&path, &mut paths)?;
            }
        }
        if is_near_full {
            // A path may be named by a link, so both forms are compared.
            let is_meant = |path: &PathBuf| {
                files.iter().any(|file| path.starts_with(file) || path.starts_with(resolve(file)))
            };
            let refused = all_roots(roots).into_iter().flat_map(|(root, _)| self.refused_below(&root));
            paths.extend(refused.filter(is_meant));
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Adds a path that is lost, or such paths below it. Whether the store may have no room for it.
    fn add_lost(&self, path: &Path, paths: &mut Vec<PathBuf>) -> Result<bool, UndoError> {
        let Ok(metadata) = path.symlink_metadata() else { return Ok(false) };
        if metadata.is_dir() {
            let found = self.scan(path, &[])?.found;
            if found.too_large {
                paths.push(path.to_owned());
                return Ok(false);
            }
            paths.extend(self.lost_in(path, &found));
            let sizes = found.entries.iter().filter(|(_, seen)| seen.kind == Kind::File);
            return Ok(self.has_no_room(sizes.map(|(_, seen)| seen.stamp.size).sum()));
        }
        if metadata.is_file() {
            let is_read = match platform::open_unfollowed(path) {
                Ok(_) => true,
                Err(error) => is_missing(&error),
            };
            if !is_read || self.is_over_limit(metadata.len()) {
                paths.push(path.to_owned());
            }
            return Ok(self.has_no_room(metadata.len()));
        }
        Ok(false)
    }

    /// Of a scan of a folder.
    fn lost_in(&self, root: &Path, found: &Scan) -> Vec<PathBuf> {
        let is_large =
            |seen: &crate::scan::Seen| seen.kind == Kind::File && self.is_over_limit(seen.stamp.size);
        let large = found.entries.iter().filter(|(_, seen)| is_large(seen));
        found.unreadable.iter().cloned().chain(large.map(|(path, _)| root.join(path))).collect()
    }

    /// Files that the store was too full for, and still is.
    fn refused_below(&self, root: &Path) -> Vec<PathBuf> {
        let known = self.known_index(root).index;
        let is_refused = |path: &&&std::ffi::OsString| {
            known
                .get(path)
                .is_some_and(|entry| entry.content == Content::Uncovered && !self.should_retry(entry))
        };
        let refused = known.uncovered();
        refused.iter().filter(is_refused).map(|path| root.join(path)).filter(|path| path.exists()).collect()
    }

    /// A file larger than the whole store fits in it no better than one that is too large by itself.
    fn is_over_limit(&self, size: u64) -> bool {
        size > self.limits.file.min(self.limits.total)
    }

    fn has_no_room(&self, size: u64) -> bool {
        // Where there is no store, there is nothing in it.
        fs::metadata(&self.folder).is_ok() && self.objects.used().saturating_add(size) > self.limits.total
    }
}
