//! Which part of a growing Markdown text will not change any more.
//!
//! Invariant: a text that is drawn piece by piece has the rows that it has as a whole.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "most Markdown events and tags need no handling of their own"
)]

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::markdown::options;

/// The start of the last but one block of a growing text: the text before it will not change any more. The last
/// block may still become part of the one before (`|` of a table, `2` of a list).
pub(crate) fn settled(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut begins = [0, 0];
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            begins = [begins[1], range.start];
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    begins[0]
}

/// The beginning of a growing text that can be printed for good.
#[derive(Debug, PartialEq)]
pub(crate) struct Printable {
    /// In bytes.
    pub length: usize,
    /// What the rest must begin with to be drawn as before: the first line of the code block that goes on in it.
    pub opening: String,
    /// A blank row follows.
    pub ends_block: bool,
}

/// The blocks of a growing text that will not change any more, with the finished lines of an open code block and the
/// finished items of a list.
pub(crate) fn printable(text: &str) -> Option<Printable> {
    let last = last_block(text);
    if let Some(length) = last.item {
        return Some(Printable { length, opening: String::new(), ends_block: false });
    }
    let within = |ends_block| move |length| Printable { length, opening: String::new(), ends_block };
    let before = Some(last.start).filter(|start| !text[..*start].trim().is_empty());
    let Some(fence) = text.get(last.start..).filter(|_| last.is_fenced).and_then(OpenFence::find) else {
        return Some(settled(text)).filter(|length| !text[..*length].trim().is_empty()).map(within(true));
    };
    match fence.finished {
        0 => before.map(within(true)),
        finished => Some(Printable {
            length: last.start + fence.opening.len() + finished,
            opening: fence.opening.to_owned(),
            ends_block: false,
        }),
    }
}

/// The last block of a text.
#[derive(Default)]
struct LastBlock {
    start: usize,
    is_fenced: bool,
    /// It is a list: the start of its last item, if others are before it.
    item: Option<usize>,
}

fn last_block(text: &str) -> LastBlock {
    let (mut depth, mut last) = (0_usize, LastBlock::default());
    // The number that an item must have to be drawn alone as it is in its list.
    let (mut number, mut items) = (None, 0_u64);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            let is_fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
            last = LastBlock { start: range.start, is_fenced, item: None };
        }
        match event {
            Event::Start(Tag::List(first)) if depth == 0 => (number, items) = (first, 0),
            Event::Start(Tag::Item) if depth == 1 => {
                let expected = number.map(|first| first + items);
                let item = &text[range.start..];
                let is_whole = item.split_once(' ').is_some_and(|(_, words)| !words.trim().is_empty());
                let is_numbered = expected.is_none_or(|number| item.starts_with(&number.to_string()));
                last.item = (items > 0 && is_whole && is_numbered).then_some(range.start);
                items += 1;
            }
            _ => {}
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    last
}

/// A code block that is not closed.
struct OpenFence<'a> {
    /// Its first line, with the end of the line.
    opening: &'a str,
    /// The bytes of the finished lines behind it. The last line is left, so that the rest is never empty.
    finished: usize,
}

impl<'a> OpenFence<'a> {
    fn find(text: &'a str) -> Option<Self> {
        let opening = text.split_inclusive('\n').next().filter(|line| line.ends_with('\n'))?;
        let mark = opening.trim_start().chars().next()?;
        let length = opening.trim_start().chars().take_while(|c| *c == mark).count();
        let code = &text[opening.len()..];
        let last = code.trim_end().lines().next_back().unwrap_or_default().trim();
        let is_closed = last.chars().count() >= length && last.chars().all(|c| c == mark);
        let written = code.rfind('\n').map_or(0, |at| at + 1);
        let cut = code[..written].trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        // Blank lines stay with the line behind them: at the end of a block they are not drawn.
        let head = code[..cut].trim_end_matches('\n');
        let finished = if head.is_empty() { 0 } else { head.len() + 1 };
        (!is_closed).then_some(Self { opening, finished })
    }
}

#[cfg(test)]
mod tests {
    use super::super::markdown::tests::shown;
    use super::*;

    #[test]
    fn a_settled_prefix_does_not_change() {
        let text = "First paragraph.\n\n- a\n- b\n\n```\ncode\n```\n\nLast one";
        let at = settled(text);
        assert_eq!(&text[at..], "```\ncode\n```\n\nLast one");
        assert_eq!(settled("only one"), 0);
    }

    /// Printed piece by piece, however it grows, a text gives the rows that it has as a whole.
    #[test]
    fn pieces_of_a_growing_text_are_the_whole() {
        let text = "# Title\n\nA paragraph\nof two lines.\n\n- one\n- two\n  - nested\n- three\n\n1. first\n2. second\n\n\
            ```rust\nfn a() {}\n\n\nfn b() {}\nfn c() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\nThe end.";
        for step in [1, 7, 40] {
            let (mut printed, mut opening, mut rows) = (0, String::new(), Vec::new());
            let ends = (0..=text.len()).step_by(step).chain([text.len()]);
            for end in ends {
                let rest = format!("{opening}{}", &text[printed..end]);
                let Some(piece) = printable(&rest) else { continue };
                rows.extend(shown(&rest[..piece.length], 40));
                rows.extend(piece.ends_block.then(String::new));
                printed += piece.length - opening.len();
                opening = piece.opening;
            }
            rows.extend(shown(&format!("{opening}{}", &text[printed..]), 40));
            assert_eq!(rows, shown(text, 40), "by {step}");
        }
    }

    #[test]
    fn lines_of_an_open_code_block_are_printable() {
        let piece = printable("Text.\n\n```rust\nfn a() {}\nfn b() {}\nfn c").expect("a piece");
        assert_eq!((piece.length, piece.opening.as_str()), (25, "```rust\n"));
        assert_eq!(printable("```\none\n"), None, "the last line is kept");
        assert_eq!(printable("- one\n- two").map(|piece| piece.length), Some(6));
        assert_eq!(printable("1. one\n1. two"), None, "its number would change");
    }
}
