//! What a restore would do, path by path, before anything is done.
//!
//! Must not write to the workspace. Invariant: a file that somebody changed since the turn is merged, marked or kept,
//! never overwritten with its former state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{At, UndoError};
use crate::objects::Stored;
use crate::record::{Change, Record};
use crate::state::FileState;
use crate::{UndoStore, git, resolve};

/// Larger texts are not merged.
const LARGEST_MERGE: u64 = 4 << 20;

/// What happens to one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It gets its former content.
    Restore,
    /// It was deleted and comes back.
    Create,
    /// The turn made it; it goes.
    Delete,
    /// It was changed since, and both changes fit together.
    Merge,
    /// It was changed since; the file gets conflict markers around both versions.
    Conflict,
    /// It was changed since and stays as it is.
    KeepChanged,
    /// The store does not hold its former content; it stays as it is.
    KeepUncovered,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub path: PathBuf,
    pub action: Action,
    pub(crate) current: FileState,
    pub(crate) target: FileState,
}

/// A restore that can be shown and then applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub(crate) owner: String,
    /// The turns to undo; empty for a redo.
    pub(crate) turns: Vec<u64>,
    pub(crate) newest: u64,
    /// The log of the undo that a redo takes back.
    pub(crate) redoes: Option<PathBuf>,
}

impl Step {
    /// Several turns may have deleted, made and changed the same path.
    fn named_by_outcome(mut self) -> Self {
        if matches!(self.action, Action::Restore | Action::Create | Action::Delete) {
            self.action = match (&self.current, &self.target) {
                (FileState::Absent, _) => Action::Create,
                (_, FileState::Absent) => Action::Delete,
                _ => Action::Restore,
            };
        }
        self
    }

    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.action, Action::KeepChanged | Action::KeepUncovered)
    }
}

impl UndoStore {
    /// The steps that take records back, newest first.
    pub(crate) fn steps(&self, records: &[Record]) -> Result<Vec<Step>, UndoError> {
        let mut steps: BTreeMap<PathBuf, Step> = BTreeMap::new();
        for record in records {
            for (path, change) in &record.changes {
                // A later turn of this plan may already have decided what this path becomes.
                let planned = steps.get(path);
                let current = match planned {
                    Some(step) => step.target.clone(),
                    // Behind a link there is another file, which may have the same name and content.
                    None if resolve(path) != *path => FileState::Absent,
                    None => self.state_of(path)?,
                };
                let Some((action, target)) = self.revert(path, change, &current)? else { continue };
                let (first, action) = match planned {
                    Some(step) => (step.current.clone(), combine(step, action)),
                    None => (current, action),
                };
                let step = Step { path: path.clone(), action, current: first, target };
                steps.insert(path.clone(), step);
            }
        }
        let changes = |step: &Step| step.is_kept() || step.target != step.current;
        Ok(steps.into_values().map(Step::named_by_outcome).filter(changes).collect())
    }

    /// `None`: there is nothing to do.
    fn revert(
        &self,
        path: &Path,
        change: &Change,
        current: &FileState,
    ) -> Result<Option<(Action, FileState)>, UndoError> {
        let before = &change.before;
        let Some(after) = &change.after else { return self.revert_unknown(path, before, current) };
        if current.same_content(before) && !current.same_content(after) || current == before {
            return Ok(None);
        }
        let uncovered = |state: &FileState| matches!(state, FileState::Uncovered { .. });
        if uncovered(before) || uncovered(current) {
            return Ok(Some((Action::KeepUncovered, current.clone())));
        }
        if current.same_content(after) {
            let action = match (before, after) {
                (FileState::Absent, _) => Action::Delete,
                (_, FileState::Absent) => Action::Create,
                _ => Action::Restore,
            };
            return Ok(Some((action, with_users_mode(before, after, current))));
        }
        self.merge(path, before, after, current).map(Some)
    }

    /// The process ended between the two records: nobody knows which of the bytes on disk are the tool's.
    fn revert_unknown(
        &self,
        path: &Path,
        before: &FileState,
        current: &FileState,
    ) -> Result<Option<(Action, FileState)>, UndoError> {
        if current.same_content(before) {
            return Ok(None);
        }
        match (before, current) {
            (FileState::Uncovered { .. }, _) | (_, FileState::Uncovered { .. }) => {
                Ok(Some((Action::KeepUncovered, current.clone())))
            }
            (_, FileState::Absent) => Ok(Some((Action::Create, before.clone()))),
            (FileState::Absent, _) => Ok(Some((Action::KeepChanged, current.clone()))),
            _ => self.merge(path, before, &FileState::Absent, current).map(Some),
        }
    }

    /// The path was changed since the turn.
    fn merge(
        &self,
        path: &Path,
        before: &FileState,
        after: &FileState,
        current: &FileState,
    ) -> Result<(Action, FileState), UndoError> {
        let keep = Ok((Action::KeepChanged, current.clone()));
        if matches!((before, current), (FileState::File { .. }, FileState::Absent)) && !git::is_inside(path) {
            // Somebody deleted the turn's version. The former one may hold what the turn took away.
            return Ok((Action::Create, before.clone()));
        }
        let (FileState::File { .. }, FileState::File { mode, .. }) = (before, current) else { return keep };
        if git::is_inside(path) {
            return keep;
        }
        let (Some(base), Some(ours), Some(theirs)) =
            (self.text(path, after)?, self.text(path, current)?, self.text(path, before)?)
        else {
            return keep;
        };
        let (action, merged) = match diffy::merge_bytes(&base, &ours, &theirs) {
            Ok(merged) => (Action::Merge, merged),
            Err(marked) => (Action::Conflict, marked),
        };
        match self.objects.store_bytes(&merged).at("store", path)? {
            Stored::Held(hash, size) => Ok((action, FileState::File { hash, size, mode: *mode })),
            Stored::Refused => keep,
        }
    }

    /// `None`: not a text, or too large to merge. A file that is not there is an empty text.
    fn text(&self, path: &Path, state: &FileState) -> Result<Option<Vec<u8>>, UndoError> {
        match state {
            FileState::Absent => Ok(Some(Vec::new())),
            FileState::File { hash, size, .. } if *size <= LARGEST_MERGE => {
                let bytes = self.objects.read(hash).at("read the stored copy of", path)?;
                Ok((!bytes.contains(&0)).then_some(bytes))
            }
            FileState::File { .. }
            | FileState::Link { .. }
            | FileState::Folder { .. }
            | FileState::Uncovered { .. } => Ok(None),
        }
    }
}

/// A mode that the user changed since stays.
fn with_users_mode(before: &FileState, after: &FileState, current: &FileState) -> FileState {
    let mode_of = |state: &FileState| match state {
        FileState::File { mode, .. } | FileState::Folder { mode } => Some(*mode),
        FileState::Absent | FileState::Link { .. } | FileState::Uncovered { .. } => None,
    };
    let (Some(set), Some(left)) = (mode_of(current), mode_of(after)) else { return before.clone() };
    match before {
        FileState::File { hash, size, .. } if set != left => {
            FileState::File { hash: *hash, size: *size, mode: set }
        }
        FileState::Absent
        | FileState::File { .. }
        | FileState::Link { .. }
        | FileState::Folder { .. }
        | FileState::Uncovered { .. } => before.clone(),
    }
}

/// The action of two steps on the same path.
fn combine(first: &Step, second: Action) -> Action {
    match (first.action, second) {
        // The path changes all the same, by the first step.
        (_, Action::KeepChanged | Action::KeepUncovered) if first.target != first.current => first.action,
        (Action::Conflict, _) | (Action::Merge, Action::Restore | Action::Create | Action::Delete) => {
            first.action
        }
        _ => second,
    }
}
