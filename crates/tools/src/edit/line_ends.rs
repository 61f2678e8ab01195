//! Text seen with plain `\n` line ends, and the way back: which bytes a change there really replaces.
//!
//! Invariant: a line that a change leaves as it is keeps its own line end, also in a file that mixes them.

use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::DiffOp;

use super::document::Splice;
use super::line_diff::{diff_lines, lines_of};

const DIFF_TIME: Duration = Duration::from_millis(500);

/// A text whose `\r\n` are read as `\n`.
pub struct NormalizedText<'a> {
    text: Cow<'a, str>,
    /// Where in `text` a `\n` is that was `\r\n`.
    carriage: Vec<usize>,
}

impl<'a> NormalizedText<'a> {
    pub fn new(original: &'a str) -> Self {
        if !original.contains("\r\n") {
            return Self { text: Cow::Borrowed(original), carriage: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut carriage = Vec::new();
        for (number, piece) in original.split("\r\n").enumerate() {
            if number > 0 {
                carriage.push(text.len());
                text.push('\n');
            }
            text.push_str(piece);
        }
        Self { text: Cow::Owned(text), carriage }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The least change of the original that makes `range` of the plain text say `new`.
    pub fn change(&self, range: Range<usize>, new: &str) -> Vec<Splice> {
        let (old, lines) = (lines_of(&self.text[range.clone()]), lines_of(new));
        let ops = diff_lines(&old, &lines, Some(Instant::now() + DIFF_TIME));
        let mut starts = Vec::with_capacity(old.len() + 1);
        starts.push(range.start);
        for line in &old {
            starts.push(starts[starts.len() - 1] + line.len());
        }
        let mut splices = Vec::new();
        for op in ops {
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            let (was, is) = (op.old_range(), op.new_range());
            let replaced = &starts[was.start..was.end];
            let at = starts[was.start]..starts[was.end];
            splices.push((
                self.back(at.start)..self.back(at.end),
                self.with_ends(&lines[is], replaced, at.start),
            ));
        }
        splices
    }

    /// Where an offset of the plain text is in the original.
    pub fn back(&self, offset: usize) -> usize {
        offset + self.carriage.partition_point(|at| *at < offset)
    }

    /// New lines with the ends of the lines they replace (which begin at `replaced`), one for one and the last for
    /// the last; where they replace none, with the end of the line before `at`, else of the line there.
    fn with_ends(&self, lines: &[&str], replaced: &[usize], at: usize) -> String {
        if self.carriage.is_empty() {
            return lines.concat();
        }
        let neighbor = self.text[..at].rfind('\n').unwrap_or(at);
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                text.push_str(line);
                continue;
            };
            let twin = if number + 1 == lines.len() {
                replaced.last()
            } else {
                replaced.get(number).or(replaced.last())
            };
            text.push_str(line);
            text.push_str(self.end_from(*twin.unwrap_or(&neighbor)));
        }
        text
    }

    /// The first line end from `offset` on, else the one before it.
    fn end_from(&self, offset: usize) -> &'static str {
        let after = self.text[offset..].find('\n').map(|found| offset + found);
        match after.or_else(|| self.text[..offset].rfind('\n')) {
            Some(found) if self.carriage.binary_search(&found).is_ok() => "\r\n",
            _ => "\n",
        }
    }
}
