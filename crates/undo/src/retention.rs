//! How the store stays small.
//!
//! Must not touch a workspace. Invariants: the newest ten turns stay; a content that a log, an index or a baseline names
//! stays; contents go only while no process stores any.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{At, UndoError};
use crate::index::{self, Index};
use crate::record::Record;
use crate::state::Hash;
use crate::{UndoStore, private, turns};

/// Turns that no limit drops.
const KEPT_TURNS: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskUse {
    pub bytes: u64,
    pub objects: u64,
    pub turns: u64,
}

impl UndoStore {
    pub fn disk_use(&self) -> DiskUse {
        let (objects, bytes) =
            self.objects.all().fold((0, 0), |(count, bytes), (_, _, size)| (count + 1, bytes + size));
        let turns = self.owner_folders().iter().map(|folder| turns::logs(folder, "turn-").len() as u64).sum();
        DiskUse { bytes, objects, turns }
    }

    /// Removes everything that was recorded for an owner, and the contents that only it needed.
    pub fn forget(&self, owner: &str) -> Result<(), UndoError> {
        let folder = self.owner_folder(owner);
        if folder.exists() {
            fs::remove_dir_all(&folder).at("delete", &folder)?;
            self.remove_unused()?;
        }
        Ok(())
    }

    fn fits(&self, wanted: u64) -> bool {
        self.objects.used().saturating_add(wanted) <= self.limits.total
    }

    /// Drops the oldest turns where `wanted` bytes are not free.
    pub(crate) fn drop_old_turns(&self, wanted: u64) -> Result<(), UndoError> {
        if self.fits(wanted) {
            return Ok(());
        }
        for folder in self.old_turns() {
            let _ = fs::remove_dir_all(folder);
        }
        self.remove_unused()
    }

    /// Drops the oldest turns, and then the indexes of other workspaces, until `wanted` bytes are free.
    pub(crate) fn make_room(&self, wanted: u64, roots: &[PathBuf]) -> Result<(), UndoError> {
        self.drop_old_turns(wanted)?;
        if self.fits(wanted) {
            return Ok(());
        }
        let kept: Vec<PathBuf> = roots.iter().map(|root| self.index_path(root)).collect();
        for index in files_in(&self.folder.join("indexes")).into_iter().filter(|index| !kept.contains(index))
        {
            let _ = fs::remove_file(index);
        }
        self.remove_unused()
    }

    /// The folders of all turns and undos but the newest.
    fn old_turns(&self) -> Vec<PathBuf> {
        let logs = self.owner_folders().into_iter().flat_map(|folder| turns::logs(&folder, ""));
        let mut dated: Vec<(u64, PathBuf)> =
            logs.filter_map(|log| Some((Record::load(&log)?.at, log.parent()?.to_owned()))).collect();
        dated.sort_by(|one, other| other.cmp(one));
        let turns = dated.iter().filter(|(_, folder)| is_turn(folder));
        let oldest_kept = turns.map(|(at, _)| *at).nth(KEPT_TURNS - 1).unwrap_or(0);
        dated.into_iter().filter(|(at, _)| *at < oldest_kept).map(|(_, folder)| folder).collect()
    }

    fn owner_folders(&self) -> Vec<PathBuf> {
        files_in(&self.folder.join("turns"))
    }

    /// Removes contents that nothing names. Another process that stores contents just now postpones it.
    pub fn remove_unused(&self) -> Result<(), UndoError> {
        let path = self.folder.join("lock");
        let lock: File = private::append_to(&path).at("open", &path)?;
        if platform::try_lock(&lock).is_err() {
            return Ok(());
        }
        let used = self.named_contents();
        self.objects.retain(|hash| used.contains(hash));
        Ok(())
    }

    fn named_contents(&self) -> HashSet<Hash> {
        let mut named = HashSet::new();
        for index in files_in(&self.folder.join("indexes")) {
            named.extend(Index::load(&index).iter().filter_map(|(_, entry)| entry.hash()));
        }
        let folders: Vec<PathBuf> = self.owner_folders().iter().flat_map(|owner| files_in(owner)).collect();
        for baseline in folders.iter().flat_map(|folder| files_in(folder)) {
            if baseline.file_name().is_some_and(|name| name.to_string_lossy().starts_with("baseline-")) {
                // Its state is a part of this file, and what came later may hide an entry of it.
                named.extend(index::all_hashes(&baseline));
            }
        }
        for record in folders.iter().filter_map(|folder| Record::load(&folder.join("log"))) {
            for change in record.changes.values() {
                named.extend(change.before.hash());
                named.extend(change.after.as_ref().and_then(|after| after.hash()));
            }
        }
        named
    }
}

fn is_turn(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("turn-"))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
