//! What a change looks like to people: a unified diff and two counts.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::tool_call::FileChange;
use similar::DiffTag;

use super::line_diff::{diff_lines, hunks, lines_of};
use super::line_ends::NormalizedText;

const KEPT_TEXT: usize = 256 * 1024;
const KEPT_DIFF: usize = 256 * 1024;
const DIFF_TIME: Duration = Duration::from_millis(500);
const CONTEXT_LINES: usize = 3;

/// `old` is `None` for a new file.
pub fn file_change(path: &Path, shown: &str, old: Option<&str>, new: &str) -> FileChange {
    let (old_plain, new_plain) = (NormalizedText::new(old.unwrap_or_default()), NormalizedText::new(new));
    // Line ends are noise in a diff, except where they are all that changed.
    let (before, after) = if old_plain.text() == new_plain.text() {
        (old.unwrap_or_default(), new)
    } else {
        (old_plain.text(), new_plain.text())
    };
    let (before, after) = (lines_of(before), lines_of(after));
    let ops = diff_lines(&before, &after, Some(Instant::now() + DIFF_TIME));
    let changes = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    let (added, removed) = changes
        .fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()));
    let count = |lines: usize| u32::try_from(lines).unwrap_or(u32::MAX);
    let from = if old.is_some() { format!("a/{shown}") } else { "/dev/null".to_owned() };
    let mut text = hunks(&before, &after, ops, CONTEXT_LINES);
    if !text.is_empty() {
        text.insert_str(0, &format!("--- {from}\n+++ b/{shown}\n"));
    }
    if text.len() > KEPT_DIFF {
        text.truncate(text.floor_char_boundary(KEPT_DIFF));
        text.push_str("\n[the diff goes on]\n");
    }
    let kept = |text: &str| (text.len() <= KEPT_TEXT).then(|| text.to_owned());
    FileChange {
        path: path.to_owned(),
        diff: text,
        lines_added: count(added),
        lines_removed: count(removed),
        old_text: old.and_then(kept),
        new_text: kept(new),
    }
}

/// A file that goes away.
pub fn deletion(path: &Path, shown: &str, old: &str) -> FileChange {
    let change = file_change(path, shown, Some(old), "");
    let diff = change.diff.replacen(&format!("+++ b/{shown}\n"), "+++ /dev/null\n", 1);
    FileChange { diff, new_text: None, ..change }
}

/// A file that gets another name, with what else changes in it.
pub fn renaming(from: &str, to: &str, change: Option<FileChange>, path: &Path) -> FileChange {
    let head = format!("rename from {from}\nrename to {to}\n");
    match change {
        Some(change) => FileChange {
            diff: format!("{head}{}", change.diff),
            path: path.to_owned(),
            old_text: None,
            new_text: None,
            ..change
        },
        None => FileChange {
            path: path.to_owned(),
            diff: head,
            lines_added: 0,
            lines_removed: 0,
            old_text: None,
            new_text: None,
        },
    }
}

/// Changes of several files as one, told by the diff alone.
pub fn combined(mut changes: Vec<FileChange>) -> Option<FileChange> {
    if changes.len() < 2 {
        return changes.pop();
    }
    let sum = |count: fn(&FileChange) -> u32| changes.iter().map(count).fold(0, u32::saturating_add);
    let (lines_added, lines_removed) = (sum(|it| it.lines_added), sum(|it| it.lines_removed));
    let diff = changes.iter().map(|change| change.diff.as_str()).collect();
    let path = changes.swap_remove(0).path;
    Some(FileChange { path, diff, lines_added, lines_removed, old_text: None, new_text: None })
}
