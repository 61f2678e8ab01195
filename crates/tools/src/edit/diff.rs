//! What a change looks like to people: a unified diff and two counts.

use std::path::Path;
use std::time::Duration;

use domain::tool_call::FileChange;
use similar::{ChangeTag, TextDiff};

use super::line_ends::NormalizedText;

const KEPT_TEXT: usize = 256 * 1024;
const KEPT_DIFF: usize = 256 * 1024;

/// `old` is `None` for a new file.
pub fn file_change(path: &Path, shown: &str, old: Option<&str>, new: &str) -> FileChange {
    let (old_plain, new_plain) = (NormalizedText::new(old.unwrap_or_default()), NormalizedText::new(new));
    // Line ends are noise in a diff, except where they are all that changed.
    let (before, after) = if old_plain.text() == new_plain.text() {
        (old.unwrap_or_default(), new)
    } else {
        (old_plain.text(), new_plain.text())
    };
    let diff = TextDiff::configure().timeout(Duration::from_millis(500)).diff_lines(before, after);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let from = if old.is_some() { format!("a/{shown}") } else { "/dev/null".to_owned() };
    let mut text = diff.unified_diff().context_radius(3).header(&from, &format!("b/{shown}")).to_string();
    if text.len() > KEPT_DIFF {
        text.truncate(text.floor_char_boundary(KEPT_DIFF));
        text.push_str("\n[the diff goes on]\n");
    }
    let kept = |text: &str| (text.len() <= KEPT_TEXT).then(|| text.to_owned());
    FileChange {
        path: path.to_owned(),
        diff: text,
        lines_added: added,
        lines_removed: removed,
        old_text: old.and_then(kept),
        new_text: kept(new),
    }
}
