//! Finds the text a model wants replaced: exactly where it can, else by whole lines with whitespace forgiven.
//!
//! Invariant: what is found is unique, or every occurrence where all were asked for; otherwise nothing is changed and
//! the answer says where the candidates are. All texts here have `\n` line ends.

use std::ops::Range;

use similar::DiffOp;

use super::indent::Indent;
use super::line_diff::diff_lines;

/// What to replace, and what with.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextMatches {
    /// Ranges of the text and what each becomes, in order.
    pub changes: Vec<(Range<usize>, String)>,
    /// The whitespace of `old` was not that of the file.
    pub forgiven: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoMatch {
    /// It is there more than once, at these lines (1-based, the first few).
    Ambiguous { count: usize, lines: Vec<usize> },
    /// It is not there; the line (1-based) of what is most like it.
    Absent { nearest: Option<usize> },
}

const MAX_LINES_NAMED: usize = 10;

pub fn find(text: &str, wanted: Replacement<'_>) -> Result<TextMatches, NoMatch> {
    let exact = occurrences(text, wanted.old, wanted.all);
    match exact.len() {
        0 => {}
        1 => return Ok(exact_change(&exact, wanted)),
        _ if wanted.all => return Ok(exact_change(&exact, wanted)),
        count => return Err(ambiguous(text, count, &exact)),
    }
    let file = Lines::new(text);
    let old = Trimmed::new(wanted.old);
    let new = Trimmed::like(wanted.new, &old);
    for normal in [trim_trailing as fn(&str) -> String, trim_both, collapse_spaces] {
        let starts = line_matches(&file, &old.lines, normal, wanted.all);
        match starts.len() {
            0 => continue,
            1 => {}
            _ if wanted.all => {}
            count => {
                let at: Vec<usize> = starts.iter().map(|line| file.starts[*line]).collect();
                return Err(ambiguous(text, count, &at));
            }
        }
        let changes = starts.into_iter().map(|start| line_change(&file, start, &old, &new)).collect();
        return Ok(TextMatches { changes, forgiven: true });
    }
    Err(NoMatch::Absent { nearest: nearest(&file, &old) })
}

fn exact_change(starts: &[usize], wanted: Replacement<'_>) -> TextMatches {
    let changes =
        starts.iter().map(|start| (*start..start + wanted.old.len(), wanted.new.to_owned())).collect();
    TextMatches { changes, forgiven: false }
}

/// Where `old` begins. Overlapping ones count unless all are to be replaced, since they are ambiguous too.
fn occurrences(text: &str, old: &str, all: bool) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find(old) {
        let start = from + offset;
        starts.push(start);
        let step = if all { old.len() } else { text[start..].chars().next().map_or(1, char::len_utf8) };
        from = start + step;
    }
    starts
}

fn ambiguous(text: &str, count: usize, starts: &[usize]) -> NoMatch {
    let lines =
        starts.iter().take(MAX_LINES_NAMED).map(|start| text[..*start].matches('\n').count() + 1).collect();
    NoMatch::Ambiguous { count, lines }
}

/// The lines of the file without their ends, and where each begins.
struct Lines<'a> {
    lines: Vec<&'a str>,
    starts: Vec<usize>,
    length: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
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

    fn end_of(&self, line: usize) -> usize {
        self.starts[line] + self.lines[line].len()
    }
}

/// Lines of what a model wrote, without blank ones at both ends.
struct Trimmed<'a> {
    lines: Vec<&'a str>,
    before: usize,
    after: usize,
}

impl<'a> Trimmed<'a> {
    fn new(text: &'a str) -> Self {
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
    fn like(text: &'a str, other: &Self) -> Self {
        let own = Self::new(text);
        if own.lines.is_empty() {
            return own;
        }
        let all: Vec<&str> = text.split('\n').collect();
        let (before, after) = (own.before.min(other.before), own.after.min(other.after));
        Self { lines: all[before..all.len() - after].to_vec(), before, after }
    }
}

fn trim_trailing(line: &str) -> String {
    line.trim_end().to_owned()
}

fn trim_both(line: &str) -> String {
    line.trim().to_owned()
}

fn collapse_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines of the file where all of `old` matches under `normal`.
fn line_matches(file: &Lines<'_>, old: &[&str], normal: fn(&str) -> String, all: bool) -> Vec<usize> {
    if old.is_empty() || old.len() > file.lines.len() {
        return Vec::new();
    }
    let old: Vec<String> = old.iter().map(|line| normal(line)).collect();
    let lines: Vec<String> = file.lines.iter().map(|line| normal(line)).collect();
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

/// Lines that the model left as they were keep the file's own whitespace; its new lines are indented as the file is.
fn line_change(
    file: &Lines<'_>,
    start: usize,
    old: &Trimmed<'_>,
    new: &Trimmed<'_>,
) -> (Range<usize>, String) {
    let last = start + old.lines.len() - 1;
    let from = file.starts[start];
    if new.lines.is_empty() {
        let next = file.starts.get(last + 1).copied().unwrap_or(file.length);
        return (from..next, String::new());
    }
    let pairs = old.lines.iter().zip(&file.lines[start..=last]).map(|(old, file)| (*old, *file));
    let indent = Indent::learn(pairs);
    let mut lines: Vec<String> = Vec::new();
    for op in diff_lines(&old.lines, &new.lines, None) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            lines.extend(
                file.lines[start + old_index..start + old_index + len].iter().map(|line| (*line).to_owned()),
            );
        } else {
            lines.extend(new.lines[op.new_range()].iter().map(|line| indent.apply(line)));
        }
    }
    (from..file.end_of(last), lines.join("\n"))
}

/// The line most like the first line that was looked for.
fn nearest(file: &Lines<'_>, old: &Trimmed<'_>) -> Option<usize> {
    let first = old.lines.first()?;
    let words: Vec<&str> =
        first.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 1).collect();
    let score = |line: &str| words.iter().filter(|word| line.contains(**word)).count();
    let (line, best) = file
        .lines
        .iter()
        .enumerate()
        .map(|(number, line)| (number, score(line)))
        .max_by_key(|(number, score)| (*score, std::cmp::Reverse(*number)))?;
    (best * 2 > words.len()).then_some(line + 1)
}
