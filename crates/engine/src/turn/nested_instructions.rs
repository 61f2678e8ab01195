//! Instructions that the model is given with the first tool result that touches what they are about: those of a folder
//! below the root, and rules for files of some patterns.
//!
//! Invariants: they are at the end of a result, so requests grow at their end; the history alone says which the model has,
//! so a compaction or a rollback makes them due again; with those from the start they stay below the one limit.

use std::path::{Component, Path, PathBuf};

use domain::item::{Item, ItemKind, Part};
use domain::tool_call::{Origin, ToolCall, ToolState};

use super::instructions;
use crate::instruction_files;
use crate::instruction_files::set::{self, InstructionFile, InstructionSet, LIMIT};
use crate::rules::matches_path;
use crate::session::Session;

/// Folders of programs of others: their instructions are not those of the project.
const FOREIGN: [&str; 10] = [
    ".git",
    ".venv",
    "bower_components",
    "node_modules",
    "site-packages",
    "target",
    "third_party",
    "third-party",
    "vendor",
    "venv",
];
/// What follows such texts.
const CONFLICTS: &str = "(Where instructions conflict, those of the nearest folder hold.)";
/// Deeper folders are not looked at.
const MAX_DEPTH: usize = 32;
/// Arguments of built-in tools that name a file or a folder.
const PATH_ARGUMENTS: [&str; 4] = ["path", "working_directory", "source", "destination"];

/// What the model must be given with the result of this call.
pub(crate) fn of_call(session: &Session, call: &ToolCall) -> Option<Part> {
    if call.state != ToolState::Done || call.origin != Origin::Native || session.decisions.is_recorded() {
        return None;
    }
    let paths = touched(session, call);
    if paths.is_empty() {
        return None;
    }
    let known = instructions::files(session);
    let mut due = due_files(session, &paths, &known);
    if due.files.is_empty() {
        // The whole history is not looked through for nothing.
        return None;
    }
    let is_given = given(session.state().items());
    due.files.retain(|file| !is_given.names.contains(&set::opening(&file.path)));
    let used: usize = known.given_at_start().map(|file| file.text.len()).sum();
    set::limit(&mut due, LIMIT.saturating_sub(used + is_given.bytes));
    if due.files.is_empty() {
        return None;
    }
    instructions::mark_taint(session, &due);
    let blocks: Vec<String> = due.files.iter().map(set::block).collect();
    let text = format!("{}\n{CONFLICTS}", blocks.join("\n\n"));
    Some(Part::text(text))
}

/// The files and folders of the workspace that a call touched, each with its root.
fn touched(session: &Session, call: &ToolCall) -> Vec<(PathBuf, PathBuf)> {
    let input = call.input.as_ref();
    let named = PATH_ARGUMENTS.iter().filter_map(|name| input?.get(name)?.as_str()).map(PathBuf::from);
    let located = call.locations.iter().map(|location| location.path.clone());
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in located.chain(named) {
        let candidates = session.roots.iter().map(|root| (root, root.join(&path)));
        let inside =
            candidates.filter(|(root, path)| path.starts_with(root) && path.symlink_metadata().is_ok());
        let plain = inside.filter(|(_, path)| path.components().all(|part| part != Component::ParentDir));
        for (root, path) in plain.take(1) {
            let entry = (root.clone(), path);
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found
}

fn due_files(session: &Session, paths: &[(PathBuf, PathBuf)], known: &InstructionSet) -> InstructionSet {
    let mut due = InstructionSet::default();
    for (root, path) in paths {
        let inner = path.strip_prefix(root).unwrap_or(path);
        let is_foreign = inner.components().any(|part| FOREIGN.iter().any(|name| part.as_os_str() == *name));
        if is_foreign {
            continue;
        }
        let relative = inner.to_string_lossy();
        let is_about = |file: &&InstructionFile| file.globs.iter().any(|glob| matches_path(glob, &relative));
        if !path.is_dir() {
            due.files.extend(known.files.iter().filter(is_about).cloned());
        }
        let folders = folders_to(root, path);
        if !folders.is_empty() {
            let is_forbidden = |path: &Path| instructions::is_forbidden(session, path);
            let mut nested = instruction_files::read_nested(root, &folders, known, &is_forbidden);
            nested.files.retain(|file| {
                let inner = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                file.globs.is_empty() || file.globs.iter().any(|glob| matches_path(glob, &inner))
            });
            due.files.append(&mut nested.files);
        }
    }
    let mut seen = std::collections::HashSet::new();
    due.files.retain(|file| seen.insert(file.path.clone()));
    due
}

/// The folders between a root and a path, outermost first, without the root.
fn folders_to(root: &Path, path: &Path) -> Vec<PathBuf> {
    let last = if path.is_dir() { Some(path) } else { path.parent() };
    let above = last.into_iter().flat_map(Path::ancestors).take(MAX_DEPTH);
    let mut folders: Vec<PathBuf> =
        above.take_while(|folder| *folder != root && folder.starts_with(root)).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

/// What the model has of them since the last compaction.
#[derive(Default)]
struct Given {
    /// The opening lines.
    names: Vec<String>,
    bytes: usize,
}

fn given(items: &[Item]) -> Given {
    let mut given = Given::default();
    let since = items.iter().rev().take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }));
    for item in since {
        let ItemKind::ToolCall(call) = &item.kind else { continue };
        // Where we put it: a file that looks like it comes before it, or is not followed by this.
        if let Some(Part::Text { text }) = call.result.last()
            && text.starts_with("<instructions file=\"")
            && text.ends_with(CONFLICTS)
        {
            given.bytes += text.len();
            let openings = text.lines().filter(|line| line.starts_with("<instructions file=\""));
            given.names.extend(openings.map(str::to_owned));
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_lead_from_below_the_root_to_the_file() {
        let root = Path::new("/w");
        let folders = folders_to(root, Path::new("/w/a/b/c.rs"));
        assert_eq!(folders, [PathBuf::from("/w/a"), PathBuf::from("/w/a/b")]);
        assert!(folders_to(root, Path::new("/w/c.rs")).is_empty());
        assert!(folders_to(root, Path::new("/elsewhere/c.rs")).is_empty());
    }
}
