//! Finds the text a model wants replaced: exactly where it can, else by steps that repair what models get wrong.
//!
//! Invariant: what is found is unique, or every occurrence where all were asked for; otherwise nothing is changed and
//! the answer says where the candidates are. All texts here have `\n` line ends.

use std::ops::Range;

use super::escapes;
use super::line_numbers;
use super::lines::{Likeness, Lines, Trimmed, line_change, line_matches};
use super::nearest;
use super::typography::{Folded, fold, transfer};

/// What to replace, and what with.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
}

/// What had to be repaired before the text was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Repair {
    #[default]
    Exact,
    /// The model copied the line numbers that it was shown.
    LineNumbers,
    /// Line ends as the two characters `\n`.
    Escapes,
    /// Typographic quotes, dashes or spaces.
    Typography,
    /// Whitespace.
    Whitespace,
}

impl Repair {
    pub const ALL: [Self; 5] =
        [Self::Exact, Self::LineNumbers, Self::Escapes, Self::Typography, Self::Whitespace];

    /// What the model should know about it.
    pub fn notice(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::LineNumbers => Some("The line numbers in the text were taken off; leave them out."),
            Self::Escapes => Some("The `\\n` of the text were read as line ends."),
            Self::Typography => Some("Quotes or dashes of the text were not those of the file."),
            Self::Whitespace => {
                Some("The whitespace of the text was not that of the file; it was matched by lines.")
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextMatches {
    /// Ranges of the text and what each becomes, in order.
    pub changes: Vec<(Range<usize>, String)>,
    pub repair: Repair,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoMatch {
    /// It is there more than once, at these lines (1-based, the first few).
    Ambiguous { count: usize, lines: Vec<usize> },
    /// It is not there; the lines that are most like it, with numbers.
    Absent { nearest: Option<String> },
    /// It is there but for blanks or typography, and it is in doubt how the new text is to be written.
    Doubtful { line: usize, nearest: Option<String> },
    /// The escapes in it may mean different things.
    UnclearEscapes,
}

const MAX_LINES_NAMED: usize = 10;

pub fn find(text: &str, wanted: Replacement<'_>) -> Result<TextMatches, NoMatch> {
    let exact = occurrences(text, wanted.old, wanted.all);
    if let Some(exact) = chosen(text, exact, wanted.all)? {
        let change = |start: usize| (start..start + wanted.old.len(), wanted.new.to_owned());
        return Ok(TextMatches { changes: exact.into_iter().map(change).collect(), repair: Repair::Exact });
    }
    let mut unclear = false;
    match escapes::read(wanted.old, wanted.new) {
        Some(Ok((old, new))) => {
            let read = Replacement { old: &old, new: &new, all: wanted.all };
            if let Ok(found) = find(text, read) {
                return Ok(TextMatches { repair: found.repair.max(Repair::Escapes), ..found });
            }
        }
        Some(Err(_)) => unclear = true,
        None => {}
    }
    if let Some(found) = find_numbered(text, wanted) {
        return Ok(found);
    }
    if let Some(found) = find_typographic(text, wanted)? {
        return Ok(found);
    }
    if let Some(found) = find_lines(text, wanted)? {
        return Ok(found);
    }
    if unclear {
        return Err(NoMatch::UnclearEscapes);
    }
    Err(NoMatch::Absent { nearest: nearest::excerpt(text, &Trimmed::new(wanted.old).lines) })
}

/// Without line numbers, at the line that the first of them names: elsewhere the numbers may be data of the file.
fn find_numbered(text: &str, wanted: Replacement<'_>) -> Option<TextMatches> {
    let (first, old, new) = line_numbers::take_off(wanted.old, wanted.new)?;
    let found = find(text, Replacement { old: &old, new: &new, all: false }).ok()?;
    let is_there = matches!(&found.changes[..], [(range, _)] if line_at(text, range.start) == first);
    is_there.then(|| TextMatches { repair: found.repair.max(Repair::LineNumbers), ..found })
}

/// By characters, with typographic ones as plain ones.
fn find_typographic(text: &str, wanted: Replacement<'_>) -> Result<Option<TextMatches>, NoMatch> {
    if text.is_ascii() && wanted.old.is_ascii() {
        return Ok(None);
    }
    let (folded, old) = (Folded::new(text), fold(wanted.old));
    let starts = occurrences(&folded.text, &old, wanted.all);
    let ranges: Vec<Range<usize>> =
        starts.iter().map(|start| folded.back(*start)..folded.back(start + old.len())).collect();
    let starts = ranges.iter().map(|range| range.start).collect();
    let Some(_) = chosen(text, starts, wanted.all)? else { return Ok(None) };
    let change = |range: Range<usize>| match transfer(&text[range.clone()], wanted.old, wanted.new) {
        Some(new) => Ok((range, new)),
        None => Err(doubtful(text, range.start, wanted.old)),
    };
    let changes = ranges.into_iter().map(change).collect::<Result<_, _>>()?;
    Ok(Some(TextMatches { changes, repair: Repair::Typography }))
}

/// By whole lines, with whitespace forgiven.
fn find_lines(text: &str, wanted: Replacement<'_>) -> Result<Option<TextMatches>, NoMatch> {
    let file = Lines::new(text);
    let old = Trimmed::new(wanted.old);
    let new = Trimmed::like(wanted.new, &old);
    for likeness in Likeness::FORGIVING {
        let starts = line_matches(&file, &old.lines, likeness, wanted.all);
        let places = starts.iter().map(|line| file.starts[*line]).collect();
        if chosen(text, places, wanted.all)?.is_none() {
            continue;
        }
        let change = |start: usize| {
            line_change(&file, start, &old, &new)
                .ok_or_else(|| doubtful(text, file.starts[start], wanted.old))
        };
        let changes = starts.into_iter().map(change).collect::<Result<_, _>>()?;
        return Ok(Some(TextMatches { changes, repair: Repair::Whitespace }));
    }
    Ok(None)
}

/// The places where there are some, refused where there are several and one is meant.
fn chosen(text: &str, starts: Vec<usize>, all: bool) -> Result<Option<Vec<usize>>, NoMatch> {
    match starts.len() {
        0 => Ok(None),
        1 => Ok(Some(starts)),
        _ if all => Ok(Some(starts)),
        count => Err(ambiguous(text, count, &starts)),
    }
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

pub(super) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

pub(super) fn ambiguous(text: &str, count: usize, starts: &[usize]) -> NoMatch {
    let lines = starts.iter().take(MAX_LINES_NAMED).map(|start| line_at(text, *start)).collect();
    NoMatch::Ambiguous { count, lines }
}

fn doubtful(text: &str, start: usize, old: &str) -> NoMatch {
    let nearest = nearest::excerpt(text, &Trimmed::new(old).lines);
    NoMatch::Doubtful { line: line_at(text, start), nearest }
}
