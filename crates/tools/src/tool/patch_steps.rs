//! The steps of a patch: what each file becomes, done one after the other and taken back where one fails.
//!
//! Invariant: after an error every file holds what it held before, as far as nobody else has changed it meanwhile; the error
//! names the files for which that failed.

use std::path::Path;
use std::sync::Arc;

use domain::tool::Invocation;
use domain::tool_call::FileChange;

use crate::edit::diff::{deletion, file_change, renaming};
use crate::edit::disk;
use crate::edit::document::Document;
use crate::edit::files::{CurrentFile, Files};
use crate::edit::matching::Repair;
use crate::edit::patch::{FilePatch, Hunk, Operation};
use crate::edit::plan::{Change, PlannedChange, plan};
use crate::paths::ResolvedPath;

/// What happens to one file.
pub(super) struct Step {
    path: ResolvedPath,
    kind: StepKind,
}

enum StepKind {
    Write {
        current: CurrentFile,
        planned: PlannedChange,
    },
    Delete {
        document: Document,
    },
    /// Another name; where it is also changed, with the bytes before and after.
    Move {
        to: ResolvedPath,
        change: Option<(Document, PlannedChange)>,
    },
}

/// What was done, so that it can be taken back.
enum Done {
    Written { path: ResolvedPath, old: Option<Document>, new: PlannedChange, is_in_client: bool },
    Deleted { path: ResolvedPath, document: Document },
    Moved { from: ResolvedPath, to: ResolvedPath },
}

impl Step {
    /// The files that it touches.
    pub(super) fn paths(&self) -> Vec<&Path> {
        match &self.kind {
            StepKind::Write { .. } | StepKind::Delete { .. } => vec![self.path.path()],
            StepKind::Move { to, .. } => vec![self.path.path(), to.path()],
        }
    }

    pub(super) fn change(&self) -> FileChange {
        let (path, shown) = (self.path.path(), self.path.shown());
        match &self.kind {
            StepKind::Write { current, planned } => {
                file_change(path, shown, current.document.as_ref().map(Document::text), &planned.text)
            }
            StepKind::Delete { document } => deletion(path, shown, document.text()),
            StepKind::Move { to, change } => {
                let change = change.as_ref().map(|(old, planned)| {
                    file_change(to.path(), to.shown(), Some(old.text()), &planned.text)
                });
                renaming(shown, to.shown(), change, to.path())
            }
        }
    }
}

/// What a link leads to would go away or move, and the link would stay.
pub(super) fn refuse_link(path: &ResolvedPath) -> Result<(), String> {
    match path.path().is_symlink() {
        true => Err("It is a symbolic link. Use move_file or shell_command for links.".to_owned()),
        false => Ok(()),
    }
}

/// Looks at the file and plans what it becomes. Changes nothing.
pub(super) async fn prepare(files: &Arc<Files>, file: FilePatch, call: &Invocation) -> Result<Step, String> {
    let takes_away = matches!(file.operation, Operation::Delete | Operation::Update { move_to: Some(_), .. });
    let path = match takes_away {
        true => files.paths.resolve_approved_entry(&file.path, call)?,
        false => files.paths.resolve_approved(&file.path, call)?,
    };
    refuse_link(&path)?;
    let current = files.current(&path, call).await?;
    files.check_seen(&path, &current, &call.scope)?;
    let kind = match file.operation {
        Operation::Add { .. } if current.document.is_some() => {
            return Err("It exists already. Use `*** Update File:` to change it.".to_owned());
        }
        Operation::Add { content } => {
            let planned = planned(None, &Change::WriteAll { content })?;
            StepKind::Write { current, planned }
        }
        Operation::Delete => StepKind::Delete { document: on_disk(files, &path, current).await? },
        Operation::Update { move_to: None, hunks } => {
            let planned = planned(current.document.as_ref(), &Change::Patch(hunks))?;
            StepKind::Write { current, planned }
        }
        Operation::Update { move_to: Some(to), hunks } => {
            let to = files.paths.resolve_approved(&to, call)?;
            let document = on_disk(files, &path, current).await?;
            StepKind::Move { to, change: moved_change(document, hunks)? }
        }
    };
    Ok(Step { path, kind })
}

fn planned(document: Option<&Document>, change: &Change) -> Result<PlannedChange, String> {
    plan(document, change).map_err(|refused| refused.into_message(true))
}

fn moved_change(document: Document, hunks: Vec<Hunk>) -> Result<Option<(Document, PlannedChange)>, String> {
    if hunks.is_empty() {
        return Ok(None);
    }
    let planned = planned(Some(&document), &Change::Patch(hunks))?;
    Ok(Some((document, planned)))
}

/// The file as the disk has it, refused where an editor has other text of it.
async fn on_disk(files: &Arc<Files>, path: &ResolvedPath, current: CurrentFile) -> Result<Document, String> {
    let known = current.document.ok_or("It does not exist.")?;
    let saved = files.blocking(path, |files, path| files.load_document(&path)).await?;
    match saved {
        Some(saved) if saved.text() == known.text() => Ok(saved),
        _ => {
            Err("It has unsaved changes in the editor. Ask the user to save or discard them first."
                .to_owned())
        }
    }
}

/// Does all steps, or none. Says what was done, a line for each file.
pub(super) async fn carry_out(
    files: &Arc<Files>,
    steps: Vec<Step>,
    call: &Invocation,
) -> Result<Vec<String>, String> {
    let (mut done, mut told) = (Vec::new(), Vec::new());
    for step in steps {
        match take_step(files, step, call, &mut done).await {
            Ok(line) => told.push(line),
            Err(reason) => {
                let left = take_back(files, done, call).await;
                let what = match left.is_empty() {
                    true => "No file was changed.".to_owned(),
                    false => format!("These files could not be put back: {}.", left.join(", ")),
                };
                return Err(format!("{reason} {what}"));
            }
        }
    }
    Ok(told)
}

async fn take_step(
    files: &Arc<Files>,
    step: Step,
    call: &Invocation,
    done: &mut Vec<Done>,
) -> Result<String, String> {
    let change = step.change();
    let Step { path, kind } = step;
    let counts = format!("+{} -{} lines", change.lines_added, change.lines_removed);
    match kind {
        StepKind::Write { current, planned } => {
            let old = current.document.clone();
            let what = if old.is_some() { "Changed" } else { "Created" };
            let (repair, is_in_client) = (planned.repair, current.is_in_client());
            let notice = files.write(&path, current, planned.clone(), call).await?;
            let line = format!("{what} {}: {counts}.{}", path.shown(), notices(repair, notice.as_deref()));
            done.push(Done::Written { path, old, new: planned, is_in_client });
            Ok(line)
        }
        StepKind::Delete { document } => {
            let bytes = document.bytes().to_vec();
            files.blocking(&path, move |_, path| disk::remove(&path, &bytes)).await?;
            let line = format!("Deleted {}.", path.shown());
            done.push(Done::Deleted { path, document });
            Ok(line)
        }
        StepKind::Move { to, change } => {
            rename(files, &path, &to, call).await?;
            let mut line = format!("Moved {} to {}.", path.shown(), to.shown());
            done.push(Done::Moved { from: path, to: to.clone() });
            if let Some((old, planned)) = change {
                let repair = planned.repair;
                replace(files, &to, Some(old.clone()), planned.clone()).await?;
                line.push_str(&format!(" Changed it: {counts}.{}", notices(repair, None)));
                done.push(Done::Written { path: to, old: Some(old), new: planned, is_in_client: false });
            }
            Ok(line)
        }
    }
}

fn notices(repair: Repair, notice: Option<&str>) -> String {
    repair.notice().into_iter().chain(notice).map(|notice| format!(" {notice}")).collect()
}

async fn rename(
    files: &Arc<Files>,
    from: &ResolvedPath,
    to: &ResolvedPath,
    call: &Invocation,
) -> Result<(), String> {
    let (old, new) = (from.path().to_owned(), to.path().to_owned());
    let target = to.clone();
    files.blocking(from, move |_, from| disk::rename(&from, &target)).await?;
    files.seen.rename(&call.scope.session, &old, &new);
    Ok(())
}

async fn replace(
    files: &Arc<Files>,
    path: &ResolvedPath,
    old: Option<Document>,
    new: PlannedChange,
) -> Result<(), String> {
    let work = move |_: &Files, path: ResolvedPath| {
        disk::replace(&path, old.as_ref().map(Document::bytes), &new.bytes)
    };
    files.blocking(path, work).await.map(drop)
}

/// Takes everything back, the last first. Returns the files for which that failed.
async fn take_back(files: &Arc<Files>, done: Vec<Done>, call: &Invocation) -> Vec<String> {
    let mut left = Vec::new();
    for step in done.into_iter().rev() {
        let (path, taken) = match step {
            Done::Written { path, old: Some(old), new, is_in_client } => {
                let (bytes, text) = (old.bytes().to_vec(), old.text().to_owned());
                let back = PlannedChange { bytes, text, replacements: 1, repair: Repair::Exact };
                // A stop of the call does not stop this.
                let current = CurrentFile::written(old.after(new.bytes, new.text), is_in_client);
                let taken = files.write(&path, current, back, call).await.map(drop);
                (path, taken)
            }
            Done::Written { path, old: None, new, .. } => {
                let taken = files.blocking(&path, move |_, path| disk::remove(&path, &new.bytes)).await;
                (path, taken)
            }
            Done::Deleted { path, document } => {
                let work = move |_: &Files, path: ResolvedPath| disk::replace(&path, None, document.bytes());
                let taken = files.blocking(&path, work).await.map(drop);
                (path, taken)
            }
            Done::Moved { from, to } => {
                let taken = rename(files, &to, &from, call).await;
                (from, taken)
            }
        };
        if taken.is_err() {
            left.push(path.shown().to_owned());
        }
    }
    left
}
