//! Which turns of an owner can be undone, and which undo can be taken back.
//!
//! Must not change files of a workspace. Invariant: a turn is undone at most once until its undo is taken back; a redo is
//! possible only while no later turn has changed files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::UndoError;
use crate::plan::Plan;
use crate::record::Record;
use crate::{TurnKey, UndoStore};

/// A turn that changed files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnSummary {
    pub turn: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    pub paths: Vec<PathBuf>,
    pub uncovered: Vec<PathBuf>,
    pub undone: bool,
}

impl UndoStore {
    /// The turns of an owner that changed files, oldest first.
    pub fn turns(&self, owner: &str) -> Result<Vec<TurnSummary>, UndoError> {
        let undone = self.undone(owner);
        let mut turns = Vec::new();
        for log in logs(&self.owner_folder(owner), "turn-") {
            self.finish_interrupted(&log)?;
            let Some(record) = Record::load(&log).filter(|record| !record.changes.is_empty()) else {
                continue;
            };
            turns.push(TurnSummary {
                turn: record.newest,
                at: record.at,
                undone: undone.contains(&record.newest),
                paths: record.changes.into_keys().collect(),
                uncovered: record.uncovered,
            });
        }
        Ok(turns)
    }

    /// A plan that undoes every turn from `from` on, or the newest one that changed files. `None`: nothing to undo.
    pub fn plan_undo(&self, owner: &str, from: Option<u64>) -> Result<Option<Plan>, UndoError> {
        let turns = self.turns(owner)?;
        let newest = turns.iter().map(|turn| turn.turn).max().unwrap_or(0);
        let mut chosen: Vec<u64> = turns.iter().filter(|turn| !turn.undone).map(|turn| turn.turn).collect();
        chosen.reverse();
        match from {
            Some(from) => chosen.retain(|turn| *turn >= from),
            None => chosen.truncate(1),
        }
        if chosen.is_empty() {
            return Ok(None);
        }
        let log =
            |turn: &u64| self.turn_folder(&TurnKey { owner: owner.to_owned(), turn: *turn }).join("log");
        let records: Vec<Record> = chosen.iter().filter_map(|turn| Record::load(&log(turn))).collect();
        let steps = self.steps(&records)?;
        Ok(Some(Plan { steps, owner: owner.to_owned(), turns: chosen, newest, redoes: None }))
    }

    /// A plan that takes the newest undo back. `None`: there is no undo, or a later turn changed files.
    pub fn plan_redo(&self, owner: &str) -> Result<Option<Plan>, UndoError> {
        let newest = self.turns(owner)?.iter().map(|turn| turn.turn).max().unwrap_or(0);
        let undos = logs(&self.owner_folder(owner), "undo-");
        let open =
            |log: PathBuf| Record::load(&log).filter(|record| !record.redone).map(|record| (log, record));
        let Some((log, record)) = undos.into_iter().rev().find_map(open) else { return Ok(None) };
        if record.newest < newest {
            return Ok(None);
        }
        let steps = self.steps(&[record])?;
        Ok(Some(Plan { steps, owner: owner.to_owned(), turns: Vec::new(), newest, redoes: Some(log) }))
    }

    fn undone(&self, owner: &str) -> BTreeSet<u64> {
        let undos = logs(&self.owner_folder(owner), "undo-");
        let records = undos.iter().filter_map(|log| Record::load(log)).filter(|record| !record.redone);
        records.flat_map(|record| record.turns).collect()
    }
}

/// The logs in folders whose names begin with `prefix`, oldest first.
pub(crate) fn logs(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let mut logs: Vec<PathBuf> = named.map(|entry| entry.path().join("log")).collect();
    logs.sort();
    logs
}
