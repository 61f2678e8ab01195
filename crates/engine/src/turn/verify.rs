//! The nudge to verify: a turn that changed files and ran no check is asked once to check its work.
//!
//! Must not know how a project is built. Invariants: a turn is asked at most once; one that has run a check after its last
//! change, changed prose alone, or has no check that may run here, is not asked and costs no request.

mod lines;
mod project;

use std::path::{Path, PathBuf};

use domain::item::{Item, ItemKind};
use domain::note::{Note, NoteAbout};
use domain::tool_call::{Details, Origin, ToolCall, ToolState};
use serde_json::json;

use super::Turn;
use crate::behavior;
use crate::tool_calls;
use crate::tool_search::ToolList;

/// Checks that the nudge names.
const MOST_CHECKS: usize = 3;
/// Changed files whose folders are searched for checks, and that the nudge names.
const MOST_FILES: usize = 20;
const NAMED_FILES: usize = 5;

/// Endings of files that no check reads.
const PROSE: &[&str] =
    &["md", "mdx", "markdown", "txt", "rst", "adoc", "asciidoc", "org", "tex", "csv", "svg", "png"];
/// Names of files without an ending that no check reads.
const PROSE_NAMES: &[&str] =
    &["readme", "license", "licence", "copying", "changelog", "authors", "notice", ".gitignore"];

const FOR_PEOPLE: &str = "No check ran after the last change; the model is asked to verify it.";

/// What the model is told before the turn ends; `None`: the turn may end.
pub(super) async fn nudge(turn: &Turn, tools: &ToolList) -> Option<Note> {
    let session = &turn.session;
    if !session.workspace.settings.chat.verify_changes
        || behavior::forbids_changes(session, &session.behavior())
    {
        return None;
    }
    let files = {
        let state = session.state();
        let items: Vec<&Item> = state.items().iter().filter(|item| item.turn == turn.id).collect();
        unverified_files(&items)?
    };
    let mut checks = checks_of(&files, &session.roots);
    checks.truncate(MOST_CHECKS);
    let mut allowed = Vec::new();
    for check in checks {
        let input = json!({"command": check});
        if tool_calls::may_run(turn, tools, "shell_command", &input).await {
            allowed.push(format!("`{check}`"));
        }
    }
    if allowed.is_empty() {
        return None;
    }
    let names: Vec<String> = files.iter().take(NAMED_FILES).map(|file| shown(file, &session.roots)).collect();
    let more = if files.len() > NAMED_FILES { ", …" } else { "" };
    let message = format!(
        "You changed files ({}{more}) and ran no check after the last change. Verify the change now with the project's own \
         means, such as {}; mend what fails. Then answer again and say what you verified and what you did not. If a check \
         cannot run here, say so.",
        names.join(", "),
        allowed.join(" or ")
    );
    Some(Note::for_model(NoteAbout::Verification, FOR_PEOPLE, message))
}

/// The files that the turn changed last without a check after them; `None` where there is nothing to verify.
fn unverified_files(items: &[&Item]) -> Option<Vec<PathBuf>> {
    let is_nudge =
        |item: &&Item| matches!(&item.kind, ItemKind::Note(note) if note.about == NoteAbout::Verification);
    if items.iter().any(is_nudge) {
        return None;
    }
    let calls: Vec<&ToolCall> = items.iter().filter_map(|item| ended_call(item)).collect();
    let changes = |call: &&ToolCall| changed_files(call).iter().any(|path| !is_prose(path));
    let last = calls.iter().rposition(changes)?;
    if calls[last + 1..].iter().any(|call| is_check(call)) {
        return None;
    }
    let mut files: Vec<PathBuf> = calls.iter().flat_map(|call| changed_files(call)).collect();
    files.retain(|path| !is_prose(path));
    files.sort();
    files.dedup();
    files.truncate(MOST_FILES);
    Some(files)
}

/// A call that has run.
fn ended_call(item: &Item) -> Option<&ToolCall> {
    let ItemKind::ToolCall(call) = &item.kind else { return None };
    (call.state == ToolState::Done).then_some(call)
}

fn changed_files(call: &ToolCall) -> Vec<PathBuf> {
    if call.error {
        return Vec::new();
    }
    match &call.details {
        Some(Details::FileChange(change)) => vec![change.path.clone()],
        _ if call.origin == Origin::Native && ["apply_patch", "move_file"].contains(&call.name.as_str()) => {
            call.locations.iter().map(|location| location.path.clone()).collect()
        }
        _ => Vec::new(),
    }
}

fn is_check(call: &ToolCall) -> bool {
    let command = call.input.as_ref().and_then(|input| input["command"].as_str());
    match call.name.as_str() {
        "shell_command" => command.is_some_and(lines::is_check),
        "editor_diagnostics" => true,
        _ => false,
    }
}

fn is_prose(path: &Path) -> bool {
    let lower = |text: Option<&std::ffi::OsStr>| text.map(|text| text.to_string_lossy().to_lowercase());
    match lower(path.extension()) {
        Some(ending) => PROSE.contains(&ending.as_str()),
        None => lower(path.file_name()).is_some_and(|name| PROSE_NAMES.contains(&name.as_str())),
    }
}

/// The checks of the folders that hold the files, the nearest folder first.
fn checks_of(files: &[PathBuf], roots: &[PathBuf]) -> Vec<String> {
    let mut folders: Vec<&Path> = Vec::new();
    for file in files {
        let Some(root) = roots.iter().find(|root| file.starts_with(root)) else { continue };
        let above = file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        for folder in above {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    let mut checks: Vec<String> = Vec::new();
    for check in folders.into_iter().flat_map(project::checks_in) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    checks
}

/// A path as the user would write it.
fn shown(file: &Path, roots: &[PathBuf]) -> String {
    let inner = roots.iter().find_map(|root| file.strip_prefix(root).ok());
    domain::visible_line(&inner.unwrap_or(file).display().to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use domain::tool_call::FileChange;
    use domain::{ItemId, TurnId};

    use super::*;

    fn item(kind: ItemKind) -> Item {
        Item { id: ItemId(1), turn: TurnId(1), step: 1, parent: None, kind }
    }

    fn call(name: &str, file: Option<&str>, command: &str, error: bool) -> Item {
        let mut call = ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
        call.state = ToolState::Done;
        call.error = error;
        call.input = Some(json!({"command": command}));
        call.details = file.map(|path| {
            Details::FileChange(FileChange {
                path: path.into(),
                diff: String::new(),
                lines_added: 1,
                lines_removed: 0,
                old_text: None,
                new_text: None,
            })
        });
        item(ItemKind::ToolCall(Box::new(call)))
    }

    fn edit(file: &str) -> Item {
        call("edit_file", Some(file), "", false)
    }

    fn shell(line: &str) -> Item {
        call("shell_command", None, line, false)
    }

    #[test]
    fn only_unchecked_changes_of_code_are_to_be_verified() {
        let failed = call("edit_file", Some("/p/a.rs"), "", true);
        let note = item(ItemKind::Note(Box::new(Note::for_people(NoteAbout::Verification, "x"))));
        for (items, wanted) in [
            (vec![], None),
            (vec![edit("/p/a.rs")], Some(1)),
            (vec![edit("/p/a.rs"), shell("cargo test")], None),
            (vec![edit("/p/a.rs"), call("shell_command", None, "cargo test", true)], None),
            (vec![shell("cargo test"), edit("/p/a.rs")], Some(1)),
            (vec![edit("/p/a.rs"), shell("git diff")], Some(1)),
            (vec![edit("/p/a.rs"), shell("make"), edit("/p/b.rs"), edit("/p/b.rs")], Some(2)),
            (vec![edit("/p/a.rs"), shell("make"), edit("/p/README.md")], None),
            (vec![edit("/p/README.md"), edit("/p/LICENSE")], None),
            (vec![failed], None),
            (vec![edit("/p/a.rs"), call("editor_diagnostics", None, "", false)], None),
            (vec![edit("/p/a.rs"), note], None),
        ] {
            let found = unverified_files(&items.iter().collect::<Vec<_>>()).map(|files| files.len());
            assert_eq!(found, wanted, "{items:?}");
        }
    }

    #[test]
    fn the_checks_of_the_nearest_folder_come_first() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("web/src");
        std::fs::create_dir_all(&inner).expect("a folder");
        std::fs::write(root.path().join("Makefile"), "test:\n\ttrue\n").expect("a file");
        std::fs::write(root.path().join("web/package.json"), r#"{"scripts": {"test": "x"}}"#)
            .expect("a file");
        let roots = [root.path().to_owned()];
        assert_eq!(checks_of(&[inner.join("a.ts")], &roots), ["npm test", "make test"]);
        assert_eq!(checks_of(&[root.path().join("b.c")], &roots), ["make test"]);
        assert!(checks_of(&["/elsewhere/a.c".into()], &roots).is_empty());
    }
}
