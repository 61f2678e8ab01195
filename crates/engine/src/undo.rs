//! Recording what a turn's tools change, and taking it back: `/undo`, `/redo` and rollbacks that include files.
//!
//! Must not know how files are kept; `undo` does. Invariants: a tool that may change files runs only after their former
//! bytes are recorded, in trusted chats too; a chat's turn is found again by the chat's id and the turn's number, so
//! nothing of it is in the journal.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use domain::event::{Fact, Level, Notice};
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Review, ToolEffect};
use domain::{Failure, ItemId, TurnId, visible_line};
use platform::project_files;
use serde_json::{Value, json};
use undo::{Action, CommandSnapshot, Coverage, DueNote, Outcome, Plan, TurnKey, UndoError, UndoStore};

use crate::destruction;
use crate::session::Session;
use crate::turn::Turn;
use crate::undo_log::UndoLog;

/// Paths that a message lists; more are counted.
const LISTED: usize = 20;

/// A tool that runs, and whose changes are to be recorded when it ends.
pub(crate) struct Recording {
    store: Arc<UndoStore>,
    key: TurnKey,
    subject: Subject,
    /// Settled by the next process, where this one is killed first.
    due: Option<DueNote>,
}

enum Subject {
    Files(Vec<PathBuf>),
    Command(Box<CommandSnapshot>),
}

/// Must run before the tool does. `None`: the tool changes nothing, or the turn was stopped. An error says why the
/// changes of the tool could not be undone.
pub(crate) async fn begin(
    turn: &Turn,
    effect: ToolEffect,
    review: &Review,
) -> Result<Option<Recording>, String> {
    let Some(log) = turn.session.workspace.undo.clone() else { return Ok(None) };
    let (store, key) = (log.store.clone(), key(&turn.session, turn.id));
    let files: Vec<PathBuf> = review.locations.iter().map(|location| location.path.clone()).collect();
    let roots = turn.session.roots.to_vec();
    let work = move || -> Result<(Recording, Coverage), UndoError> {
        if effect == ToolEffect::WritesFiles {
            let mut coverage = Coverage::default();
            for file in &files {
                coverage.uncovered.extend(store.before_write(&key, file)?.uncovered);
            }
            return Ok((Recording { store, key, subject: Subject::Files(files), due: None }, coverage));
        }
        let snapshot = store.before_command(&key, &roots)?;
        let coverage = snapshot.coverage.clone();
        Ok((Recording { store, key, subject: Subject::Command(Box::new(snapshot)), due: None }, coverage))
    };
    let may_change = match effect {
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::UsesNetwork => false,
        ToolEffect::WritesFiles => true,
        ToolEffect::RunsCommands | ToolEffect::Other => review.changes,
    };
    if !may_change {
        return Ok(None);
    }
    let begun = tokio::select! {
        begun = tokio::task::spawn_blocking(work) => begun,
        () = turn.cancel.cancelled() => return Ok(None),
    };
    match begun {
        Ok(Ok((recording, coverage))) => {
            name_uncovered(&turn.session, &log, coverage.uncovered);
            Ok(Some(recording))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("Undo failed inside Dragoman; the log has the reason.".to_owned()),
    }
}

/// Files that the call may destroy and that could not be brought back.
pub(crate) async fn endangered(turn: &Turn, effect: ToolEffect, review: &Review) -> Vec<PathBuf> {
    let Some(log) = turn.session.workspace.undo.clone() else { return Vec::new() };
    if !destruction::may_destroy(effect, review) {
        return Vec::new();
    }
    let roots = turn.session.roots.to_vec();
    let store = log.store.clone();
    let files: Vec<PathBuf> = review.locations.iter().map(|location| location.path.clone()).collect();
    let work = tokio::task::spawn_blocking(move || match effect == ToolEffect::WritesFiles {
        // Such a tool changes what it names and nothing else, so nothing else is looked at.
        true => store.unrecoverable_at(&files, &roots),
        false => store.unrecoverable(&roots),
    });
    let found = tokio::select! {
        found = work => found,
        () = turn.cancel.cancelled() => return Vec::new(),
    };
    match found {
        Ok(Ok(found)) => destruction::endangered(effect, review, &turn.session.roots, &found),
        // The next step reports it: the same folders are recorded then.
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

/// Whether the typed line is a command that restores files: `/undo` or `/redo`, without `preview`.
fn changes_files(text: &str) -> bool {
    let mut words = text.split_whitespace();
    matches!(words.next(), Some("/undo" | "/redo")) && !words.any(|word| word == "preview")
}

/// What the model must know about undos since its last answer: files are no longer as it left them.
pub(crate) fn note_for_model(items: &[Item]) -> Option<Part> {
    let is_answer =
        |item: &Item| matches!(item.kind, ItemKind::UserMessage { .. } | ItemKind::Compaction { .. });
    let since = items.iter().rposition(is_answer).map_or(0, |at| at + 1);
    let recent = &items[since..];
    let is_undo = |item: &&Item| matches!(&item.kind, ItemKind::Command { text } if changes_files(text));
    let outputs: Vec<&str> = recent
        .iter()
        .filter(is_undo)
        .flat_map(|command| recent.iter().filter(move |item| item.turn == command.turn))
        .filter_map(|item| {
            let ItemKind::SystemText { text } = &item.kind else { return None };
            Some(text.as_str())
        })
        .collect();
    (!outputs.is_empty()).then(|| {
        Part::text(format!(
            "<note>The user took file changes back or forward since your last answer. Read these files again before you rely on \
             them:\n{}</note>",
            outputs.join("\n")
        ))
    })
}

impl Recording {
    /// What of the workspace runs later, at any depth, before a command.
    pub(crate) fn run_later(&self) -> Vec<PathBuf> {
        let Subject::Command(snapshot) = &self.subject else { return Vec::new() };
        let named = snapshot.find(project_files::may_run_later);
        let mut found: Vec<PathBuf> =
            named.iter().flat_map(|path| project_files::run_later_at(path)).collect();
        found.retain(|path| path.symlink_metadata().is_ok());
        found.sort();
        found.dedup_by(|path, before| path.starts_with(before));
        found
    }

    /// What the command leaves must be looked at, also where this process is killed.
    pub(crate) fn note_due(&mut self, known: &[PathBuf], roots: &[PathBuf]) {
        if let Subject::Command(_) = &self.subject {
            // Without the note the look is done at the command's end alone.
            self.due = self.store.note_due(&self.key, known, roots).ok();
        }
    }

    /// Must run after the tool has ended, however it ended. Returns the paths that a command changed, and the note that they
    /// must be looked at.
    pub(crate) async fn end(self, session: &Session) -> (Vec<PathBuf>, Option<DueNote>) {
        let Self { store, key, subject, due } = self;
        let work = move || match subject {
            Subject::Files(files) => {
                files.iter().try_for_each(|file| store.after_write(&key, file)).map(|()| Vec::new())
            }
            Subject::Command(snapshot) => store.after_command(*snapshot),
        };
        let changed = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(changed)) => changed,
            Ok(Err(error)) => {
                warn(session, format!("The last change can perhaps not be undone. {error}"));
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        (changed, due)
    }
}

/// What commands in the folders of a chat changed whose process was killed while they ran: the paths, and what was known
/// to run later before.
pub(crate) async fn interrupted(session: &Session) -> Vec<(Vec<PathBuf>, Vec<PathBuf>, DueNote)> {
    let Some(log) = session.workspace.undo.clone() else { return Vec::new() };
    let roots = session.roots.to_vec();
    let found = tokio::task::spawn_blocking(move || log.store.take_due(&roots)).await.unwrap_or_default();
    found.into_iter().map(|found| (found.changed, found.known, found.note)).collect()
}

/// `/undo`, `/undo 3`, `/undo preview`.
pub(crate) async fn undo(session: &Session, arguments: &[String]) -> Result<String, Failure> {
    let preview = arguments.iter().any(|argument| argument == "preview");
    let count = arguments.iter().find_map(|argument| argument.parse::<usize>().ok()).unwrap_or(1).max(1);
    let text = with_store(session, move |store, owner| {
        let done = store.turns(owner)?;
        let open: Vec<u64> = done.iter().filter(|turn| !turn.undone).map(|turn| turn.turn).collect();
        let from = open.iter().rev().nth(count - 1).or(open.first()).copied();
        match from.map(|from| store.plan_undo(owner, Some(from))).transpose()?.flatten() {
            None => Ok("No turn of this chat has changed files that could be undone.".to_owned()),
            Some(plan) => carry_out(store, &plan, preview),
        }
    });
    text.await
}

/// `/redo`, `/redo preview`.
pub(crate) async fn redo(session: &Session, arguments: &[String]) -> Result<String, Failure> {
    let preview = arguments.iter().any(|argument| argument == "preview");
    let text = with_store(session, move |store, owner| match store.plan_redo(owner)? {
        None => Ok("There is no undo to take back, or a later turn has changed files.".to_owned()),
        Some(plan) => carry_out(store, &plan, preview),
    });
    text.await
}

/// Takes back the file changes of a turn and of all later ones, and with them the history behind `keep`, where it is given.
/// Both happen, or the next process that opens the chat finishes them: the intention is on disk before the first change.
pub(crate) async fn roll_back(
    session: &Session,
    from: TurnId,
    keep: Option<Option<ItemId>>,
) -> Result<(), Failure> {
    let newest = session.state().items().iter().map(|item| item.id.0).max().unwrap_or_default();
    let note = keep.map(|keep| json!({"keep": keep.map(|id| id.0), "newest": newest}).to_string());
    let text = with_store(session, move |store, owner| {
        let Some(plan) = store.plan_undo(owner, Some(from.0))? else {
            return Ok("These turns changed no files.".to_owned());
        };
        store.begin(&plan, &note.unwrap_or_default())?;
        let done = store.go_on(owner)?.map(|(outcome, _)| outcome).unwrap_or_default();
        Ok(describe_outcome(&plan, &done))
    });
    let notice = Fact::Notice { notice: Notice { level: Level::Info, text: text.await? } };
    let replaced = keep.map(|keep| Fact::HistoryReplaced { keep });
    session.commit(std::iter::once(notice).chain(replaced).collect()).on_disk().await?;
    end_rollback(session).await
}

/// Finishes a rollback that a killed process left: its files, then its history.
pub(crate) async fn finish_rollback(session: &Session) -> Result<(), Failure> {
    let owner = session.id.to_string();
    if !session.workspace.undo.as_ref().is_some_and(|log| log.store.is_pending(&owner)) {
        return Ok(());
    }
    let note =
        with_store(session, |store, owner| Ok(store.go_on(owner)?.map(|(_, note)| note).unwrap_or_default()));
    let note: Value = serde_json::from_str(&note.await?).unwrap_or_default();
    if let Some(newest) = note["newest"].as_u64() {
        let keep = note["keep"].as_u64().map(ItemId);
        let (last, largest) = {
            let state = session.state();
            let items = state.items();
            (items.last().map(|item| item.id), items.iter().map(|item| item.id.0).max())
        };
        // Items that came later say that the chat went on.
        if last != keep && largest.is_some_and(|largest| largest <= newest) {
            let text = "A rollback that was interrupted is finished.".to_owned();
            let notice = Fact::Notice { notice: Notice { level: Level::Info, text } };
            session.commit(vec![notice, Fact::HistoryReplaced { keep }]).on_disk().await?;
        }
    }
    end_rollback(session).await
}

async fn end_rollback(session: &Session) -> Result<(), Failure> {
    with_store(session, |store, owner| store.end(owner).map(|()| String::new())).await.map(drop)
}

/// Deletes what was recorded for a chat.
pub(crate) async fn forget(session: &Session) {
    let forgotten = with_store(session, |store, owner| store.forget(owner).map(|()| String::new())).await;
    if let Err(failure) = forgotten {
        tracing::warn!(%failure, "a deleted chat's snapshots are not deleted");
    }
}

async fn with_store(
    session: &Session,
    work: impl FnOnce(&UndoStore, &str) -> Result<String, UndoError> + Send + 'static,
) -> Result<String, Failure> {
    let Some(log) = session.workspace.undo.clone() else {
        return Err(Failure::user("Undo is not available here."));
    };
    let owner = session.id.to_string();
    match tokio::task::spawn_blocking(move || work(&log.store, &owner)).await {
        Ok(done) => done.map_err(|error| Failure::internal(error.to_string())),
        Err(_) => Err(Failure::internal("Undo failed inside Dragoman; the log has the reason.")),
    }
}

fn carry_out(store: &UndoStore, plan: &Plan, preview: bool) -> Result<String, UndoError> {
    if preview {
        let lines = plan.steps.iter().map(|step| (describe(step.action), &step.path));
        let list = list(lines.map(|(action, path)| format!("- {action} {}", name(path))));
        return Ok(format!("This would happen:\n{list}"));
    }
    Ok(describe_outcome(plan, &store.apply(plan)?))
}

fn describe_outcome(plan: &Plan, Outcome { done, left }: &Outcome) -> String {
    let kept =
        plan.steps.iter().filter(|step| matches!(step.action, Action::KeepChanged | Action::KeepUncovered));
    let done = done.iter().chain(kept).map(|step| (describe(step.action), &step.path));
    let mut lines: Vec<String> = done.map(|(action, path)| format!("- {action} {}", name(path))).collect();
    lines.extend(left.iter().map(|(path, reason)| format!("- left {}: {reason}", name(path))));
    if lines.is_empty() {
        return "The files are already as they were.".to_owned();
    }
    list(lines.into_iter())
}

/// A path on one line, whatever its bytes are.
fn name(path: &Path) -> String {
    visible_line(&path.display().to_string()).into_owned()
}

fn describe(action: Action) -> &'static str {
    match action {
        Action::Restore => "restore",
        Action::Create => "bring back",
        Action::Delete => "delete",
        Action::Merge => "merge with your changes:",
        Action::Conflict => "mark a conflict with your changes in",
        Action::KeepChanged => "keep your version of",
        Action::KeepUncovered => "leave, because its former content was too large to keep:",
    }
}

fn list(lines: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = lines.collect();
    if lines.len() > LISTED {
        let more = lines.len() - LISTED;
        lines.truncate(LISTED);
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

fn name_uncovered(session: &Session, log: &UndoLog, mut uncovered: Vec<PathBuf>) {
    {
        let mut named = log.named.lock().unwrap_or_else(PoisonError::into_inner);
        uncovered.retain(|path| named.insert(path.clone()));
    }
    if !uncovered.is_empty() {
        let files = list(uncovered.iter().map(|path| format!("- {}", name(path))));
        warn(
            session,
            format!("Undo does not cover these files; they are too large or cannot be read:\n{files}"),
        );
    }
}

fn warn(session: &Session, text: String) {
    session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
}

/// What a subagent changes belongs to the turn of its parent, which the user sees and takes back. A worktree is not the
/// user's folder, and may be gone by then.
fn key(session: &Session, turn: TurnId) -> TurnKey {
    if let Some(inherited) = session.inherited.as_ref().filter(|it| it.parent.roots == session.roots) {
        let open = inherited.parent.state().open_turn();
        return key(&inherited.parent, open.unwrap_or(turn));
    }
    TurnKey { owner: session.id.to_string(), turn: turn.0 }
}
