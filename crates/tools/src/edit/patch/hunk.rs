//! What a patch says: files, hunks and their lines. Plain data.

use similar::DiffOp;

use crate::edit::line_diff::diff_lines;

/// What a patch does to one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePatch {
    pub path: String,
    pub operation: Operation,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    Add { content: String },
    Delete,
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that belong together, with what becomes of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hunk {
    /// Lines that are before it, outermost first.
    pub anchors: Vec<String>,
    /// Its first line in the old file, from 1.
    pub line: Option<usize>,
    pub lines: Vec<(Mark, String)>,
    /// It is at the end of the file.
    pub is_at_end: bool,
    /// Whether the file ends with a line end afterwards, where the patch says so.
    pub ends_with_newline: Option<bool>,
    /// Its place among the others says nothing.
    pub is_unordered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Keep,
    Remove,
    Add,
}

impl Hunk {
    /// Replaces these lines by others.
    pub(super) fn replacing(old: &[&str], new: &[&str]) -> Self {
        let mut lines = Vec::new();
        let mut add =
            |mark, texts: &[&str]| lines.extend(texts.iter().map(|line| (mark, (*line).to_owned())));
        for op in diff_lines(old, new, None) {
            if let DiffOp::Equal { .. } = op {
                add(Mark::Keep, &old[op.old_range()]);
            } else {
                add(Mark::Remove, &old[op.old_range()]);
                add(Mark::Add, &new[op.new_range()]);
            }
        }
        Self { lines, is_unordered: true, ..Self::default() }
    }

    /// Takes away blank lines at the end that carry no mark: they may only part one piece of a patch from the next.
    pub(super) fn drop_unmarked_end(&mut self, unmarked: usize) {
        self.lines.truncate(self.lines.len().saturating_sub(unmarked));
    }

    pub(super) fn old_lines(&self) -> Vec<&str> {
        self.lines.iter().filter(|(mark, _)| *mark != Mark::Add).map(|(_, line)| line.as_str()).collect()
    }

    pub(super) fn changes_anything(&self) -> bool {
        self.lines.iter().any(|(mark, _)| *mark != Mark::Keep) || self.ends_with_newline.is_some()
    }
}
