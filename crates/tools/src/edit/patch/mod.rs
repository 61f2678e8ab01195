//! Patches: what models write to change several places or files at once, in the three forms that they use.
//!
//! Owns the forms and what a hunk makes of a text; knows no disk. Invariants: a patch is read whole or refused with the line
//! that is wrong; a hunk is placed where its lines are, and refused where that is nowhere or in doubt.

mod blocks;
mod envelope;
mod hunk;
mod place;
mod unified;

use std::ops::Range;

pub use hunk::{FilePatch, Hunk, Mark, Operation};

use super::lines::{FoundLines, Lines};
use super::matching::{NoMatch, Repair};

/// The form of `apply_patch` as a grammar for models that take one.
pub const GRAMMAR: &str = include_str!("apply_patch.lark");

/// Whether a text looks like a patch in one of the forms.
pub fn is_patch(text: &str) -> bool {
    envelope::is_form(text) || blocks::is_form(text) || unified::is_form(text)
}

/// Reads a patch. Pieces without a name are for `path`.
pub fn parse(text: &str, path: Option<&str>) -> Result<Vec<FilePatch>, String> {
    let text = text.replace("\r\n", "\n");
    let files = if envelope::is_form(&text) {
        envelope::parse(&text)?
    } else if blocks::is_form(&text) {
        blocks::parse(&text, path)?
    } else if unified::is_form(&text) {
        unified::parse(&text, path)?
    } else {
        return Err("The patch is not understood. Begin it with `*** Begin Patch`, then for each file \
                    `*** Update File: PATH` (or Add, Delete) and lines that begin with ` `, `-` or `+`, and end it \
                    with `*** End Patch`."
            .to_owned());
    };
    let files = merged(files)?;
    if files.is_empty() {
        return Err("The patch changes no file.".to_owned());
    }
    Ok(files)
}

/// Pieces for the same file become one.
fn merged(files: Vec<FilePatch>) -> Result<Vec<FilePatch>, String> {
    let mut all: Vec<FilePatch> = Vec::new();
    for file in files {
        let Some(known) = all.iter_mut().find(|known| known.path == file.path) else {
            all.push(file);
            continue;
        };
        match (&mut known.operation, file.operation) {
            (Operation::Update { hunks, move_to }, Operation::Update { hunks: more, move_to: to })
                if to.is_none() || move_to.is_none() =>
            {
                // A second piece begins again at the top.
                hunks.extend(more.into_iter().map(|hunk| Hunk { is_unordered: true, ..hunk }));
                *move_to = move_to.take().or(to);
            }
            _ => {
                return Err(format!(
                    "The patch does several things with {}. Send one piece for it.",
                    file.path
                ));
            }
        }
    }
    Ok(all)
}

/// A text with hunks placed in it.
pub(super) struct Placed {
    pub(super) changes: Vec<(Range<usize>, String)>,
    pub(super) repair: Repair,
}

/// Why a hunk (counted from 1) has no place.
pub(super) struct Misplaced {
    pub(super) hunk: usize,
    pub(super) why: NoMatch,
}

/// What the hunks make of a text, in the order of the text.
pub(super) fn place_all(text: &str, hunks: &[Hunk]) -> Result<Placed, Misplaced> {
    let file = Lines::new(text);
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut repair = Repair::Exact;
    let mut after = 0;
    for (number, hunk) in hunks.iter().enumerate().filter(|(_, hunk)| hunk.changes_anything()) {
        let misplaced = |why| Misplaced { hunk: number + 1, why };
        let place = place::find(text, &file, hunk, after).map_err(misplaced)?;
        let change = change_at(&file, &place).ok_or_else(|| misplaced(place.doubt(text, &file)))?;
        repair = repair.max(place.repair);
        after = place.start + place.hunk.old_lines().len();
        changes.push(change);
    }
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    if let Some(pair) = changes.windows(2).find(|pair| pair[0].0.end > pair[1].0.start) {
        let lines = pair.iter().map(|(range, _)| super::matching::line_at(text, range.start)).collect();
        return Err(Misplaced { hunk: hunks.len(), why: NoMatch::Ambiguous { count: 2, lines } });
    }
    Ok(Placed { changes, repair })
}

/// The change of one hunk at its place. `None`: it is in doubt how a new line is to be written.
fn change_at(file: &Lines<'_>, place: &place::Place) -> Option<(Range<usize>, String)> {
    let hunk = &place.hunk;
    let old = hunk.old_lines();
    let found = FoundLines::new(file, place.start, &old);
    let mut lines: Vec<String> = Vec::new();
    let mut at = 0;
    let mut rest = &hunk.lines[..];
    while let Some((mark, line)) = rest.first() {
        match mark {
            Mark::Keep => {
                lines.push(file.lines[place.start + at].to_owned());
                at += 1;
                rest = &rest[1..];
            }
            Mark::Add => {
                lines.push(found.added(line)?);
                rest = &rest[1..];
            }
            Mark::Remove => {
                let gone = rest.iter().take_while(|(mark, _)| *mark == Mark::Remove).count();
                let come = rest[gone..].iter().take_while(|(mark, _)| *mark == Mark::Add).count();
                let added = &rest[gone..gone + come];
                for (number, (_, line)) in added.iter().enumerate() {
                    let new = if gone == come { found.changed(at + number, line) } else { found.added(line) };
                    lines.push(new?);
                }
                at += gone;
                rest = &rest[gone + come..];
            }
        }
    }
    Some(splice(file, place.start, old.len(), lines, hunk.ends_with_newline))
}

/// Puts lines in the place of so many lines of the file.
fn splice(
    file: &Lines<'_>,
    start: usize,
    count: usize,
    lines: Vec<String>,
    newline: Option<bool>,
) -> (Range<usize>, String) {
    let (from, end) = (file.start_of(start), start + count);
    let is_last = end == file.lines.len();
    if count == 0 {
        let text = lines.join("\n");
        let is_open = start == file.lines.len() && !file.lines.is_empty() && !file.ends_with_newline();
        return (from..from, if is_open { format!("\n{text}") } else { format!("{text}\n") });
    }
    if lines.is_empty() {
        return (from..file.start_of(end), String::new());
    }
    let mut text = lines.join("\n");
    let mut until = file.end_of(end - 1);
    match newline {
        Some(true) if is_last && !file.ends_with_newline() => text.push('\n'),
        Some(false) if is_last => until = file.length,
        _ => {}
    }
    (from..until, text)
}
