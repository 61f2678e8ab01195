//! A restore that has begun: it is written down before its first step and forgotten after its last one, so that a process
//! that is killed in between leaves something that the next one finishes.
//!
//! Must not know what else belongs to it: the caller's note says that. Invariants: one restore of an owner is pending at most;
//! finishing it again changes nothing more.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{At, UndoError};
use crate::plan::{Action, Plan, Step};
use crate::record::Record;
use crate::restore::Outcome;
use crate::state::{FileState, StoredPath};
use crate::{UndoStore, private};

#[derive(Serialize, Deserialize)]
struct Pending {
    steps: Vec<PendingStep>,
    turns: Vec<u64>,
    newest: u64,
    redoes: Option<StoredPath>,
    log: StoredPath,
    note: String,
    /// The process that began it.
    pid: u32,
}

#[derive(Serialize, Deserialize)]
struct PendingStep {
    path: StoredPath,
    action: Action,
    current: FileState,
    target: FileState,
}

impl UndoStore {
    /// Carries out a plan.
    pub fn apply(&self, plan: &Plan) -> Result<Outcome, UndoError> {
        self.begin(plan, "")?;
        let carried_out = self.go_on(&plan.owner)?;
        self.end(&plan.owner)?;
        Ok(carried_out.map(|(outcome, _)| outcome).unwrap_or_default())
    }

    /// Writes down that a plan is to be carried out, and what the caller has to do with it. Nothing changes yet.
    pub fn begin(&self, plan: &Plan, note: &str) -> Result<(), UndoError> {
        let _lock = self.lock()?;
        let steps = plan.steps.iter().map(|step| PendingStep {
            path: StoredPath(step.path.clone()),
            action: step.action,
            current: step.current.clone(),
            target: step.target.clone(),
        });
        let pending = Pending {
            steps: steps.collect(),
            turns: plan.turns.clone(),
            newest: plan.newest,
            redoes: plan.redoes.clone().map(StoredPath),
            log: StoredPath(self.next_log(plan)),
            note: note.to_owned(),
            pid: std::process::id(),
        };
        let path = self.pending_file(&plan.owner);
        let text = serde_json::to_vec(&pending).map_err(std::io::Error::other).at("write", &path)?;
        private::replace(&path, &text).at("write", &path)?;
        fs::File::open(&path).and_then(|file| file.sync_data()).at("write", &path)
    }

    /// Whether a restore was begun and not ended.
    pub fn is_pending(&self, owner: &str) -> bool {
        self.pending_file(owner).exists()
    }

    /// Carries out what is pending, also what another process left. Gives the note of the caller. `None`: there is
    /// nothing, or it cannot be read.
    pub fn go_on(&self, owner: &str) -> Result<Option<(Outcome, String)>, UndoError> {
        let _lock = self.lock()?;
        let Ok(text) = fs::read(self.pending_file(owner)) else { return Ok(None) };
        let Ok(pending) = serde_json::from_slice::<Pending>(&text) else { return Ok(None) };
        let steps = pending.steps.into_iter().map(|step| Step {
            path: step.path.0,
            action: step.action,
            current: step.current,
            target: step.target,
        });
        let plan = Plan {
            steps: steps.collect(),
            owner: owner.to_owned(),
            turns: pending.turns,
            newest: pending.newest,
            redoes: pending.redoes.map(|path| path.0),
        };
        if pending.pid != std::process::id() {
            remove_temporary_files(&plan, pending.pid);
        }
        let log = pending.log.0;
        // A log that a kill cut short names no changes.
        if Record::load(&log).is_none_or(|record| record.changes.is_empty()) {
            self.write_log(&plan, &log)?;
        }
        Ok(Some((self.carry_out(&plan)?, pending.note)))
    }

    /// Forgets what was pending: everything that belongs to it is done.
    pub fn end(&self, owner: &str) -> Result<(), UndoError> {
        let path = self.pending_file(owner);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at("delete", &path),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn pending_file(&self, owner: &str) -> PathBuf {
        self.owner_folder(owner).join("pending.json")
    }
}

/// A process that was killed while it wrote a file left its unfinished copy beside it.
fn remove_temporary_files(plan: &Plan, pid: u32) {
    let folders: BTreeSet<&Path> = plan.steps.iter().filter_map(|step| step.path.parent()).collect();
    for entry in folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && private::is_temporary_of(&entry.file_name(), pid) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
