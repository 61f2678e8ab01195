//! The lines that differ between two texts. One function for every caller: the library is generic in everything, and each
//! other use of it adds a copy of its algorithms to the program.

use std::time::Instant;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, group_diff_ops};

/// The text cut into lines with their ends.
pub(super) fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// What turns the old lines into the new ones. After the deadline the result is correct but no longer the shortest.
pub(super) fn diff_lines(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let done: Result<(), std::convert::Infallible> =
        myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    match done {
        Ok(()) => hook.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

/// The differences as hunks with so many lines around them, without the names of files.
pub(super) fn hunks(old: &[&str], new: &[&str], ops: Vec<DiffOp>, context: usize) -> String {
    let mut text = String::new();
    for hunk in group_diff_ops(ops, context) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let was = range(first.old_range().start, last.old_range().end);
        let is = range(first.new_range().start, last.new_range().end);
        text.push_str(&format!("@@ -{was} +{is} @@\n"));
        for op in &hunk {
            match op {
                DiffOp::Equal { .. } => push_lines(&mut text, ' ', &old[op.old_range()]),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    push_lines(&mut text, '-', &old[op.old_range()]);
                    push_lines(&mut text, '+', &new[op.new_range()]);
                }
            }
        }
    }
    text
}

/// A place where two texts differ, with the lines around it.
#[derive(Debug, PartialEq)]
pub struct Hunk<'t> {
    /// The first line in each text, from 1.
    pub old: usize,
    pub new: usize,
    pub lines: Vec<(Side, &'t str)>,
}

/// Which of the texts has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    Old,
    New,
}

/// The differences as data, for those who show them their own way.
pub fn compare<'t>(old: &'t str, new: &'t str, context: usize, deadline: Instant) -> Vec<Hunk<'t>> {
    let (old, new) = (lines_of(old), lines_of(new));
    let mut hunks = Vec::new();
    for group in group_diff_ops(diff_lines(&old, &new, Some(deadline)), context) {
        let Some(first) = group.first() else { continue };
        let mut hunk =
            Hunk { old: first.old_range().start + 1, new: first.new_range().start + 1, lines: Vec::new() };
        for op in &group {
            let mut add =
                |side: Side, lines: &[&'t str]| hunk.lines.extend(lines.iter().map(|line| (side, *line)));
            match op {
                DiffOp::Equal { .. } => add(Side::Both, &old[op.old_range()]),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    add(Side::Old, &old[op.old_range()]);
                    add(Side::New, &new[op.new_range()]);
                }
            }
        }
        hunks.push(hunk);
    }
    hunks
}

/// A range of lines as a hunk's head writes it; an empty one is named by the line before it.
fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

fn push_lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let (old, new) = (lines_of(old), lines_of(new));
        assert_eq!(hunks(&old, &new, diff_lines(&old, &new, None), 1), expected);
    }

    #[test]
    fn hunks_are_data_too() {
        let hunks = compare("a\nb\nc\n", "a\nx\nc\n", 1, Instant::now() + std::time::Duration::from_secs(1));
        let lines = vec![(Side::Both, "a\n"), (Side::Old, "b\n"), (Side::New, "x\n"), (Side::Both, "c\n")];
        assert_eq!(hunks, [Hunk { old: 1, new: 1, lines }]);
    }

    #[test]
    fn hunks_are_written_as_patch_reads_them() {
        check("a\nb\n", "a\nb\n", "");
        check("a\nb\nc\nd\n", "a\nx\nc\nd\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check("a\n", "", "@@ -1 +0,0 @@\n-a\n");
        check("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
        check(
            "1\n2\n3\n4\n5\n6\n",
            "x\n2\n3\n4\n5\ny\n",
            "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -5,2 +5,2 @@\n 5\n-6\n+y\n",
        );
    }
}
