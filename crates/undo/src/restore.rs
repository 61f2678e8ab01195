//! Applying a plan.
//!
//! Must not decide what a path becomes. Invariants: the log of an undo is written before the first file changes, so the
//! undo can be taken back even after a kill in the middle; a path whose state is not the planned one is left alone; no
//! path is reached through a link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{At, UndoError};
use crate::plan::{Plan, Step};
use crate::record::{self, Change, Line};
use crate::state::{FileState, StoredPath};
use crate::{UndoStore, now, resolve, turns};

/// What a restore did.
#[derive(Debug, Default)]
pub struct Outcome {
    pub done: Vec<Step>,
    /// Paths that stayed as they are, with the reason.
    pub left: Vec<(PathBuf, String)>,
}

impl UndoStore {
    /// Carries out a plan whose log is written. Steps that are done already stay done.
    pub(crate) fn carry_out(&self, plan: &Plan) -> Result<Outcome, UndoError> {
        self.forget_scans();
        let mut outcome = Outcome::default();
        for step in in_order(&plan.steps) {
            match self.apply_step(step) {
                Ok(()) => outcome.done.push(step.clone()),
                Err(error) => outcome.left.push((step.path.clone(), error.to_string())),
            }
        }
        set_folder_modes(&plan.steps);
        self.objects.flush_size();
        if let Some(undo) = &plan.redoes {
            record::append(undo, &Line::Redone).at("write", undo)?;
        }
        Ok(outcome)
    }

    /// Where the log of a plan goes.
    pub(crate) fn next_log(&self, plan: &Plan) -> PathBuf {
        let kind = if plan.redoes.is_some() { "redo" } else { "undo" };
        let folder = self.owner_folder(&plan.owner);
        let number = turns::logs(&folder, &format!("{kind}-")).len() + 1;
        folder.join(format!("{kind}-{number:010}")).join("log")
    }

    pub(crate) fn write_log(&self, plan: &Plan, log: &Path) -> Result<(), UndoError> {
        let head = Line::Undo {
            owner: plan.owner.clone(),
            turns: plan.turns.clone(),
            newest: plan.newest,
            at: now(),
        };
        let changing = plan.steps.iter().filter(|step| !step.is_kept());
        let changes = changing.map(|step| Change {
            path: StoredPath(step.path.clone()),
            before: step.current.clone(),
            after: Some(step.target.clone()),
        });
        let changes = Line::Changes { changes: changes.collect() };
        record::append_synced(log, &[head, changes]).at("write", log)
    }

    fn apply_step(&self, step: &Step) -> io::Result<()> {
        let Step { path, current, target, .. } = step;
        if resolve(path) != *path {
            return Err(io::Error::other("a folder of its path is a link now"));
        }
        // A folder on the way may have gone with its last file.
        let found = self.state_of(path).map_err(io::Error::other)?;
        let is_same =
            found == *current || matches!(found, FileState::Folder { .. }) && found.same_content(current);
        if !is_same {
            if found == *target {
                return Ok(());
            }
            return Err(io::Error::other("it was changed meanwhile"));
        }
        if !matches!((current, target), (FileState::Folder { .. }, FileState::Folder { .. })) {
            remove(path, current, target)?;
        }
        match target {
            FileState::Absent | FileState::Uncovered { .. } => Ok(()),
            // The final mode comes last: a folder that must not be written is filled first.
            FileState::Folder { mode } => create_folders(path, mode | 0o700),
            FileState::Link { target } => {
                create_parent(path)?;
                platform::symlink(&target.0, path)
            }
            FileState::File { hash, mode, .. } => {
                create_parent(path)?;
                self.objects.write_to(hash, path, *mode)
            }
        }
    }
}

/// Removes what is in the way. A file that is replaced by a file stays until the new one is whole.
fn remove(path: &Path, current: &FileState, target: &FileState) -> io::Result<()> {
    match (current, target) {
        (FileState::Absent, _) | (FileState::File { .. }, FileState::File { .. }) => Ok(()),
        (FileState::Folder { .. }, _) => fs::remove_dir(path).or_else(|error| match target {
            // Somebody put files into it.
            FileState::Absent if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            FileState::Absent
            | FileState::File { .. }
            | FileState::Link { .. }
            | FileState::Folder { .. }
            | FileState::Uncovered { .. } => Err(error),
        }),
        _ => fs::remove_file(path),
    }
}

fn create_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| create_folders(parent, 0o755))
}

fn create_folders(path: &Path, mode: u32) -> io::Result<()> {
    platform::create_folder(path, mode)
}

fn set_folder_modes(steps: &[Step]) {
    for step in steps.iter().rev().filter(|step| !step.is_kept()) {
        if let FileState::Folder { mode } = step.target {
            let _ = platform::set_mode(&step.path, mode);
        }
    }
}

/// Files that go, then folders that go from the deepest, then folders that come, then files that come.
fn in_order(steps: &[Step]) -> Vec<&Step> {
    let phase = |step: &Step| match (&step.current, &step.target) {
        (FileState::Folder { .. }, FileState::Folder { .. }) => 2,
        (FileState::Folder { .. }, _) => 1,
        (_, FileState::Absent) => 0,
        (_, FileState::Folder { .. }) => 2,
        _ => 3,
    };
    let mut ordered: Vec<&Step> = steps.iter().filter(|step| !step.is_kept()).collect();
    ordered.sort_by(|one, other| {
        let deeper_first = phase(one) < 2;
        phase(one).cmp(&phase(other)).then_with(|| match deeper_first {
            true => other.path.cmp(&one.path),
            false => one.path.cmp(&other.path),
        })
    });
    ordered
}
