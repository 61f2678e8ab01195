//! Places in a text by vi's motions, and the edits that need more than a range.
//!
//! Must not know modes. Invariant: every place is a boundary of characters inside the text.

use std::ops::Range;

use super::input::Input;

/// `fx`, `tx`, `Fx` or `Tx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) kind: char,
    pub(super) wanted: char,
}

impl Find {
    pub(super) fn is_forward(self) -> bool {
        self.kind.is_ascii_lowercase()
    }

    pub(super) fn reversed(self) -> Self {
        let kind =
            if self.is_forward() { self.kind.to_ascii_uppercase() } else { self.kind.to_ascii_lowercase() };
        Self { kind, ..self }
    }
}

/// Where a motion leads, and whether an operator takes the character there, too. `typed`: the count, if one was typed.
pub(super) fn target(
    text: &str,
    cursor: usize,
    motion: char,
    count: usize,
    typed: Option<usize>,
) -> Option<(usize, bool)> {
    let start = line_start(text, cursor);
    let end = line_end(text, cursor);
    let repeat = |step: fn(&str, usize) -> usize| (0..count).fold(cursor, |at, _| step(text, at));
    Some(match motion {
        'h' => (repeat(before).max(start), false),
        'l' | ' ' => (repeat(after).min(end), false),
        '0' => (start, false),
        '^' | '_' => {
            let line = &text[start..end];
            (start + (line.len() - line.trim_start().len()), false)
        }
        '$' => (end, false),
        'G' => {
            let line = typed.map_or(usize::MAX, |line| line.saturating_sub(1));
            let starts = text.match_indices('\n').map(|(at, _)| at + 1);
            (std::iter::once(0).chain(starts).take(line.saturating_add(1)).last().unwrap_or(0), false)
        }
        'w' => (repeat(|text, at| next_word(text, at, kind)), false),
        'W' => (repeat(|text, at| next_word(text, at, blank)), false),
        'b' => (repeat(|text, at| word_start(text, at, kind)), false),
        'B' => (repeat(|text, at| word_start(text, at, blank)), false),
        'e' => (repeat(|text, at| word_end(text, at, kind)), true),
        'E' => (repeat(|text, at| word_end(text, at, blank)), true),
        _ => return None,
    })
}

/// The place that a find leads to, within the line.
pub(super) fn find(text: &str, cursor: usize, find: Find, count: usize) -> Option<usize> {
    let (start, end) = (line_start(text, cursor), line_end(text, cursor));
    if find.is_forward() {
        let from = after(text, cursor);
        let mut places = text.get(from..end)?.match_indices(find.wanted).map(|(at, _)| from + at);
        // `;` after `tx` goes on behind the one before which the cursor is.
        let at = places.by_ref().nth(count - 1)?;
        return Some(if find.kind == 't' { before(text, at) } else { at });
    }
    let mut places = text.get(start..cursor)?.rmatch_indices(find.wanted).map(|(at, _)| start + at);
    let at = places.nth(count - 1)?;
    Some(if find.kind == 'T' { after(text, at) } else { at })
}

/// `iw`, `aw`, and the same with quotes and brackets.
pub(super) fn text_object(text: &str, cursor: usize, is_around: bool, name: char) -> Option<Range<usize>> {
    match name {
        'w' => Some(word_object(text, cursor, is_around, kind)),
        'W' => Some(word_object(text, cursor, is_around, blank)),
        '"' | '\'' | '`' => quoted(text, cursor, is_around, name),
        '(' | ')' | 'b' => bracketed(text, cursor, is_around, '(', ')'),
        '[' | ']' => bracketed(text, cursor, is_around, '[', ']'),
        '{' | '}' | 'B' => bracketed(text, cursor, is_around, '{', '}'),
        '<' | '>' => bracketed(text, cursor, is_around, '<', '>'),
        _ => None,
    }
}

/// So many whole lines from that of the cursor on, without the end of the last one.
pub(super) fn lines(text: &str, cursor: usize, count: usize) -> Range<usize> {
    let start = line_start(text, cursor);
    let mut end = line_end(text, cursor);
    for _ in 1..count {
        if end < text.len() {
            end = line_end(text, end + 1);
        }
    }
    start..end
}

/// With the newline that makes the lines disappear.
pub(super) fn with_line_end(text: &str, lines: Range<usize>) -> Range<usize> {
    match (lines.end < text.len(), lines.start > 0) {
        (true, _) => lines.start..lines.end + 1,
        (false, true) => lines.start - 1..lines.end,
        (false, false) => lines,
    }
}

pub(super) fn letters_after(text: &str, cursor: usize, count: usize) -> usize {
    (0..count).fold(cursor, |at, _| after(text, at)).min(line_end(text, cursor))
}

pub(super) fn replace_letters(input: &mut Input, letter: char, count: usize) {
    let cursor = input.cursor();
    let end = letters_after(input.text(), cursor, count);
    let replaced = input.text()[cursor..end].chars().count();
    if replaced > 0 && !letter.is_control() {
        input.replace(cursor..end, &letter.to_string().repeat(replaced));
        input.left();
    }
}

pub(super) fn swap_case(input: &mut Input, count: usize) {
    let cursor = input.cursor();
    let end = letters_after(input.text(), cursor, count);
    let swapped: String = input.text()[cursor..end]
        .chars()
        .flat_map(|letter| match letter.is_uppercase() {
            true => letter.to_lowercase().collect::<Vec<_>>(),
            false => letter.to_uppercase().collect::<Vec<_>>(),
        })
        .collect();
    input.replace(cursor..end, &swapped);
}

/// The next line is joined to this one, with one space between them.
pub(super) fn join_lines(input: &mut Input) {
    let end = line_end(input.text(), input.cursor());
    if end < input.text().len() {
        let rest = &input.text()[end + 1..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        input.replace(end..end + 1 + blanks, " ");
    }
}

/// What was deleted or yanked last, behind or before the cursor; whole lines become lines.
pub(super) fn put(input: &mut Input, is_behind: bool, count: usize) {
    let text = input.killed().repeat(count);
    let whole = lines(input.text(), input.cursor(), 1);
    // A yanked line has neither a beginning nor an end of its own.
    let is_line = !text.is_empty() && input.text()[whole.clone()] == text;
    match (is_line, is_behind) {
        (true, true) => input.replace(whole.end..whole.end, &format!("\n{text}")),
        (true, false) => input.replace(whole.start..whole.start, &format!("{text}\n")),
        (false, _) => {
            let at = if is_behind { letters_after(input.text(), input.cursor(), 1) } else { input.cursor() };
            input.replace(at..at, &text);
        }
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline)
}

fn before(text: &str, at: usize) -> usize {
    text[..at].chars().next_back().map_or(0, |letter| at - letter.len_utf8())
}

fn after(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(at, |letter| at + letter.len_utf8())
}

/// Letters, signs and blanks are three kinds; a word is a run of one kind.
fn kind(letter: char) -> u8 {
    match letter {
        letter if letter.is_whitespace() => 0,
        letter if letter.is_alphanumeric() || letter == '_' => 1,
        _ => 2,
    }
}

/// Everything between blanks is one word.
fn blank(letter: char) -> u8 {
    u8::from(!letter.is_whitespace())
}

type Kind = fn(char) -> u8;

fn next_word(text: &str, at: usize, kind: Kind) -> usize {
    let Some(first) = text[at..].chars().next().map(kind) else { return at };
    let rest = &text[at..];
    let run = rest.find(|letter| kind(letter) != first).unwrap_or(rest.len());
    let blanks = rest[run..].find(|letter| kind(letter) != 0).unwrap_or(rest.len() - run);
    at + run + if first == 0 { 0 } else { blanks }
}

fn word_start(text: &str, at: usize, kind: Kind) -> usize {
    let before = text[..at].trim_end_matches(|letter| kind(letter) == 0);
    let Some(last) = before.chars().next_back().map(kind) else { return 0 };
    before.trim_end_matches(|letter| kind(letter) == last).len()
}

/// The last letter of the word that ends behind the cursor.
fn word_end(text: &str, at: usize, kind: Kind) -> usize {
    let from = after(text, at);
    let rest = &text[from..];
    let word = rest.find(|letter| kind(letter) != 0).unwrap_or(rest.len());
    let Some(first) = rest[word..].chars().next().map(kind) else { return at };
    let run = rest[word..].find(|letter| kind(letter) != first).unwrap_or(rest.len() - word);
    before(text, from + word + run)
}

fn word_object(text: &str, cursor: usize, is_around: bool, kind: Kind) -> Range<usize> {
    let Some(here) = text[cursor..].chars().next().map(kind) else { return cursor..cursor };
    let start = text[..cursor].trim_end_matches(|letter| kind(letter) == here).len();
    let rest = &text[cursor..];
    let mut end = cursor + rest.find(|letter| kind(letter) != here).unwrap_or(rest.len());
    if is_around {
        let rest = &text[end..];
        end += rest.find(|letter: char| letter != ' ').unwrap_or(rest.len());
    }
    start..end
}

/// The quotes of the line around the cursor, or the next ones.
fn quoted(text: &str, cursor: usize, is_around: bool, quote: char) -> Option<Range<usize>> {
    let (start, end) = (line_start(text, cursor), line_end(text, cursor));
    let quotes: Vec<usize> = text[start..end].match_indices(quote).map(|(at, _)| start + at).collect();
    let pairs = quotes.chunks_exact(2);
    let (open, close) = pairs.map(|pair| (pair[0], pair[1])).find(|(_, close)| *close >= cursor)?;
    Some(if is_around { open..close + 1 } else { open + 1..close })
}

fn bracketed(text: &str, cursor: usize, is_around: bool, open: char, close: char) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut start = None;
    for (at, letter) in text[..after(text, cursor)].char_indices().rev() {
        if letter == close && at != cursor {
            depth += 1;
        } else if letter == open {
            if depth == 0 {
                start = Some(at);
                break;
            }
            depth -= 1;
        }
    }
    let start = start?;
    depth = 0;
    for (at, letter) in text[start..].char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                let end = start + at;
                return Some(if is_around { start..end + 1 } else { start + 1..end });
            }
        }
    }
    None
}
