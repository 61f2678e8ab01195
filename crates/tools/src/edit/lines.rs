//! Texts as lines: where each stands, which of them match lines that a model wrote, and what a change makes of them.
//!
//! Invariant: a line that a change keeps has the file's own bytes; a new line is written as the file is written, and where
//! that is in doubt there is no change. All texts here have `\n` line ends.

use std::ops::Range;

use similar::DiffOp;

use super::indent::{Indent, Learned};
use super::line_diff::diff_lines;
use super::typography::{self, Style};

/// The lines of a text without their ends, and where each begins.
pub(super) struct Lines<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) starts: Vec<usize>,
    pub(super) length: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut starts = Vec::new();
        let mut at = 0;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            starts.push(at);
            at += line.len();
            lines.push(line.strip_suffix('\n').unwrap_or(line));
        }
        Self { lines, starts, length: text.len() }
    }

    pub(super) fn end_of(&self, line: usize) -> usize {
        self.starts[line] + self.lines[line].len()
    }

    /// Where a line begins, or the end of the text.
    pub(super) fn start_of(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.length)
    }

    /// The last line has an end.
    pub(super) fn ends_with_newline(&self) -> bool {
        self.lines.last().is_none_or(|last| self.starts[self.lines.len() - 1] + last.len() < self.length)
    }
}

/// How lines are compared, from exact to hardly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Likeness {
    Exact,
    TrailingBlanks,
    Indentation,
    InnerBlanks,
}

impl Likeness {
    /// Ways to compare where the exact text was not found.
    pub(super) const FORGIVING: [Self; 3] = [Self::TrailingBlanks, Self::Indentation, Self::InnerBlanks];

    /// What two lines have in common that are alike. Typographic characters count as plain ones.
    pub(super) fn key(self, line: &str) -> String {
        match self {
            Self::Exact => line.to_owned(),
            Self::TrailingBlanks => typography::fold(line.trim_end()).into_owned(),
            Self::Indentation => typography::fold(line.trim()).into_owned(),
            Self::InnerBlanks => {
                typography::fold(&line.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
            }
        }
    }
}

/// The lines at which all of `old` is found. Overlapping ones count unless all are wanted, since they are ambiguous too.
pub(super) fn line_matches(file: &Lines<'_>, old: &[&str], likeness: Likeness, all: bool) -> Vec<usize> {
    if old.is_empty() || old.len() > file.lines.len() {
        return Vec::new();
    }
    let old: Vec<String> = old.iter().map(|line| likeness.key(line)).collect();
    let lines: Vec<String> = file.lines.iter().map(|line| likeness.key(line)).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + old.len() <= lines.len() {
        if lines[at..at + old.len()] == old[..] {
            found.push(at);
            at += if all { old.len() } else { 1 };
        } else {
            at += 1;
        }
    }
    found
}

/// Lines of what a model wrote, without blank ones at both ends.
pub(super) struct Trimmed<'a> {
    pub(super) lines: Vec<&'a str>,
    before: usize,
    after: usize,
}

impl<'a> Trimmed<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let all: Vec<&str> = text.split('\n').collect();
        let blank = |line: &&&str| line.trim().is_empty();
        let before = all.iter().take_while(blank).count();
        if before == all.len() {
            return Self { lines: Vec::new(), before, after: 0 };
        }
        let after = all.iter().rev().take_while(blank).count();
        Self { lines: all[before..all.len() - after].to_vec(), before, after }
    }

    /// Drops as many blank lines at both ends as `other` lost, where they are there.
    pub(super) fn like(text: &'a str, other: &Self) -> Self {
        let own = Self::new(text);
        if own.lines.is_empty() {
            return own;
        }
        let all: Vec<&str> = text.split('\n').collect();
        let (before, after) = (own.before.min(other.before), own.after.min(other.after));
        Self { lines: all[before..all.len() - after].to_vec(), before, after }
    }
}

/// Lines of the file that were found for lines of a model: how what the model adds is to be written there.
pub(super) struct FoundLines<'a> {
    file: &'a [&'a str],
    old: &'a [&'a str],
    indent: Learned,
    style: Style,
    /// The model wrote blanks at the ends of lines that have none.
    is_trimmed: bool,
}

impl<'a> FoundLines<'a> {
    pub(super) fn new(file: &'a Lines<'_>, start: usize, old: &'a [&'a str]) -> Self {
        let found = &file.lines[start..start + old.len()];
        let pairs = || old.iter().zip(found).map(|(old, file)| (*old, *file));
        let indent = Indent::learn(pairs(), &file.lines);
        let is_trimmed = pairs().any(|(old, file)| old != old.trim_end() && file == file.trim_end());
        Self { file: found, old, indent, style: Style::learn(pairs()), is_trimmed }
    }

    /// A line that the model adds. `None`: it is in doubt how it is to be written.
    pub(super) fn added(&self, line: &str) -> Option<String> {
        let line = if self.is_trimmed { line.trim_end() } else { line };
        self.indent.apply(&self.style.written(line)?)
    }

    /// What a line becomes that the model changes.
    pub(super) fn changed(&self, at: usize, new: &str) -> Option<String> {
        let (file, old) = (self.file[at], self.old[at]);
        let (file_text, old_text) = (file.trim(), old.trim());
        if file_text == old_text || new.trim().is_empty() {
            return self.added(new);
        }
        let text = typography::transfer(file_text, old_text, new.trim())?;
        let blank = &new[..new.len() - new.trim_start().len()];
        let line = self.indent.apply(&format!("{blank}x"))?;
        Some(format!("{}{text}", line.strip_suffix('x').unwrap_or(&line)))
    }
}

/// Lines that the model left as they were keep the file's own bytes; its new lines are written as the file is.
pub(super) fn line_change(
    file: &Lines<'_>,
    start: usize,
    old: &Trimmed<'_>,
    new: &Trimmed<'_>,
) -> Option<(Range<usize>, String)> {
    let last = start + old.lines.len() - 1;
    let from = file.starts[start];
    if new.lines.is_empty() {
        return Some((from..file.start_of(last + 1), String::new()));
    }
    let found = FoundLines::new(file, start, &old.lines);
    let mut lines: Vec<String> = Vec::new();
    for op in diff_lines(&old.lines, &new.lines, None) {
        let (was, is) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            lines.extend(found.file[was].iter().map(|line| (*line).to_owned()));
        } else if was.len() == is.len() {
            let pairs = was.zip(is);
            lines.extend(
                pairs.map(|(old, at)| found.changed(old, new.lines[at])).collect::<Option<Vec<_>>>()?,
            );
        } else {
            let added = new.lines[is].iter().map(|line| found.added(line));
            lines.extend(added.collect::<Option<Vec<_>>>()?);
        }
    }
    Some((from..file.end_of(last), lines.join("\n")))
}
