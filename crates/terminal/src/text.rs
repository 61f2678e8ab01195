//! Cleans foreign text (of models, tools, files, peers) for a terminal, measures it and cuts it.
//!
//! Invariant: the result of `clean` has no control character except the newline, no escape sequence and no
//! bidirectional control character (text must not look like another text).

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Tabs go to the next multiple of this column.
const TAB: usize = 4;

/// Cleans text of several lines.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(needs_care) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\x1b' => skip_escape(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            // The program overwrites the line, as progress bars do.
            '\r' => out.truncate(out.rfind('\n').map_or(0, |at| at + 1)),
            '\n' => out.push('\n'),
            '\t' => {
                let line = out.rsplit('\n').next().unwrap_or_default();
                let column = width(line);
                out.extend(std::iter::repeat_n(' ', TAB - column % TAB));
            }
            character if character.is_control() => {}
            character if turns_around(character) => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Cleans text and joins its lines to one.
pub fn clean_line(text: &str) -> String {
    clean(text).split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The number of columns that the text takes on the screen.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts the text to at most `columns`; an ellipsis marks the cut.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut out = take_columns(text, room).to_owned();
    out.push('…');
    out
}

/// The longest prefix that fits into `columns`.
pub fn take_columns(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

fn needs_care(character: char) -> bool {
    (character.is_control() && character != '\n') || turns_around(character)
}

/// The bidirectional controls: they make a text look like another one.
fn turns_around(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Skips the sequence after ESC. A sequence without an end drops only the rest of its line.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            while let Some(character) = rest.next_if(|character| *character != '\n') {
                if ('\x40'..='\x7e').contains(&character) {
                    return;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            while let Some(character) = rest.next_if(|character| *character != '\n') {
                if character == '\x07' || (character == '\x1b' && rest.next_if_eq(&'\\').is_some()) {
                    return;
                }
            }
        }
        Some('\x20'..='\x2f') => {
            while rest.next_if(|character| ('\x20'..='\x2f').contains(character)).is_some() {}
            rest.next_if(|character| *character != '\n');
        }
        Some('\x30'..='\x7e') => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (raw, shown) in [
            ("plain\ntext", "plain\ntext"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq data\x1b\\x", "x"),
            ("\x1b(Bx\x1b7y", "xy"),
            ("\x1b[31", ""),
            ("\x1b]0;never ends\nnext", "\nnext"),
            ("a\tb", "a   b"),
            ("ab\r\ncd", "ab\ncd"),
            ("10 %\r100 %", "100 %"),
            ("bell\x07 back\x08 c1\u{9b}31m", "bell back c131m"),
            ("x\u{202e}y", "x\u{fffd}y"),
        ] {
            assert_eq!(clean(raw), shown, "{raw:?}");
        }
    }

    #[test]
    fn text_is_cut_by_columns() {
        assert_eq!(shorten("hello", 5), "hello");
        assert_eq!(shorten("hello", 4), "hel…");
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(shorten("日本語", 4), "日…");
        assert_eq!(shorten("x", 0), "");
    }
}
