//! Where a hunk is in a text.
//!
//! Invariant: one place, or none: among several only an anchor, a line number or the order of hunks decides.

use super::hunk::{Hunk, Mark};
use crate::edit::lines::{Likeness, Lines, line_matches};
use crate::edit::matching::{NoMatch, Repair, ambiguous};
use crate::edit::nearest;

pub(super) struct Place {
    /// The line of the file, from 0, at which the hunk begins.
    pub(super) start: usize,
    pub(super) repair: Repair,
    /// The hunk as it fits there.
    pub(super) hunk: Hunk,
}

impl Place {
    /// Its lines are there, and it is in doubt how the new ones are to be written.
    pub(super) fn doubt(&self, text: &str, file: &Lines<'_>) -> NoMatch {
        let nearest =
            nearest::excerpt(text, &file.lines[self.start..self.start + self.hunk.old_lines().len()]);
        NoMatch::Doubtful { line: self.start + 1, nearest }
    }
}

/// `after`: the line behind the hunk before.
pub(super) fn find(text: &str, file: &Lines<'_>, hunk: &Hunk, after: usize) -> Result<Place, NoMatch> {
    if hunk.old_lines().is_empty() {
        return insertion(text, file, hunk);
    }
    for hunk in [hunk.clone(), without_blank_ends(hunk)] {
        let old = hunk.old_lines();
        for likeness in [Likeness::Exact].into_iter().chain(Likeness::FORGIVING) {
            let starts = line_matches(file, &old, likeness, false);
            if starts.is_empty() {
                continue;
            }
            let start = choose(text, file, &hunk, starts, after)?;
            let repair = repair_of(file, start, &old);
            return Ok(Place { start, repair, hunk });
        }
    }
    Err(NoMatch::Absent { nearest: nearest::excerpt(text, &hunk.old_lines()) })
}

/// What the lines of the model had that the file has not.
fn repair_of(file: &Lines<'_>, start: usize, old: &[&str]) -> Repair {
    let pairs = || old.iter().zip(&file.lines[start..]);
    if pairs().all(|(old, file)| old == file) {
        Repair::Exact
    } else if pairs()
        .all(|(old, file)| Likeness::TrailingBlanks.key(old) == Likeness::TrailingBlanks.key(file))
        && pairs().all(|(old, file)| old.trim_end().len() == old.len() || file.trim_end().len() != file.len())
    {
        Repair::Typography
    } else {
        Repair::Whitespace
    }
}

/// A hunk that only adds lines: behind its anchor, or at the end of the file.
fn insertion(text: &str, file: &Lines<'_>, hunk: &Hunk) -> Result<Place, NoMatch> {
    let place = |start| Ok(Place { start, repair: Repair::Exact, hunk: hunk.clone() });
    let Some(anchor) = hunk.anchors.last() else {
        let is_end = hunk.line.is_none_or(|line| line >= file.lines.len());
        return match is_end {
            true => place(file.lines.len()),
            // A number alone is not enough to go by.
            false => Err(NoMatch::Absent { nearest: None }),
        };
    };
    match anchor_lines(file, anchor)[..] {
        [line] => place(line + 1),
        [] => Err(NoMatch::Absent { nearest: nearest::excerpt(text, &[anchor.as_str()]) }),
        ref lines => {
            let starts: Vec<usize> = lines.iter().map(|line| file.starts[*line]).collect();
            Err(ambiguous(text, starts.len(), &starts))
        }
    }
}

/// The hunk without blank lines that stay at its ends.
fn without_blank_ends(hunk: &Hunk) -> Hunk {
    let is_blank = |(mark, line): &&(Mark, String)| *mark == Mark::Keep && line.trim().is_empty();
    let before = hunk.lines.iter().take_while(is_blank).count();
    let after = hunk.lines[before..].iter().rev().take_while(is_blank).count();
    Hunk { lines: hunk.lines[before..hunk.lines.len() - after].to_vec(), ..hunk.clone() }
}

/// The one of these places that is meant.
fn choose(
    text: &str,
    file: &Lines<'_>,
    hunk: &Hunk,
    mut starts: Vec<usize>,
    after: usize,
) -> Result<usize, NoMatch> {
    let count = hunk.old_lines().len();
    let refuse = |starts: &[usize]| {
        let places: Vec<usize> = starts.iter().map(|line| file.starts[*line]).collect();
        ambiguous(text, places.len(), &places)
    };
    if hunk.is_at_end && starts.contains(&(file.lines.len() - count)) {
        return Ok(file.lines.len() - count);
    }
    if let Some(anchor) = hunk.anchors.last() {
        let anchors = anchor_lines(file, anchor);
        if !anchors.is_empty() {
            let mut reached: Vec<usize> =
                anchors.iter().filter_map(|line| first_in_reach(file, *line, &starts)).collect();
            reached.dedup();
            if reached.is_empty() {
                return Err(NoMatch::Absent { nearest: nearest::excerpt(text, &hunk.old_lines()) });
            }
            starts = reached;
        }
    }
    if let [start] = starts[..] {
        return Ok(start);
    }
    if let Some(line) = hunk.line.filter(|line| starts.contains(&line.saturating_sub(1))) {
        return Ok(line.saturating_sub(1));
    }
    let later: Vec<usize> = starts.iter().copied().filter(|start| *start >= after).collect();
    match later[..] {
        [start] if after > 0 && !hunk.is_unordered => Ok(start),
        _ => Err(refuse(&starts)),
    }
}

/// Lines that an anchor names: the whole line, else its beginning, else a part of it.
fn anchor_lines(file: &Lines<'_>, anchor: &str) -> Vec<usize> {
    let anchor = anchor.trim();
    let by = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let lines = file.lines.iter().enumerate();
        lines.filter(|(_, line)| is_it(line.trim())).map(|(number, _)| number).collect()
    };
    let mut found = by(&|line| line == anchor);
    if found.is_empty() {
        found = by(&|line| line.starts_with(anchor));
    }
    if found.is_empty() {
        found = by(&|line| line.contains(anchor));
    }
    found
}

/// The first of the places behind an anchor, and inside what it opens where it opens something.
fn first_in_reach(file: &Lines<'_>, anchor: usize, starts: &[usize]) -> Option<usize> {
    let start = starts.iter().copied().find(|start| *start >= anchor)?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(file.lines[anchor]);
    let mut inner = file.lines[anchor + 1..].iter().filter(|line| !line.trim().is_empty());
    let opens = inner.next().is_some_and(|line| indent(line) > own);
    if !opens || start <= anchor + 1 {
        return Some(start);
    }
    let leaves = |line: &&str| {
        !line.trim().is_empty()
            && indent(line) <= own
            && !line.trim_start().starts_with(['}', ')', ']', '{', '#'])
    };
    (!file.lines[anchor + 1..=start].iter().any(leaves)).then_some(start)
}
