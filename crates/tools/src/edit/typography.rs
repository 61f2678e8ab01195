//! Typographic quotes, dashes and spaces beside the plain characters that stand for them.
//!
//! Models write `"` for `“`, and some channels the other way round. Invariant: what a change keeps has the characters of
//! the file; where it is in doubt which form a new character should have, there is no change.

use std::borrow::Cow;
use std::collections::HashMap;

use similar::DiffTag;

use super::line_diff::diff_lines;

/// The plain character for a typographic one.
fn plain(char: char) -> char {
    match char {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The text with plain characters, one for one.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|char| plain(char) == char) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain).collect())
}

/// A text with plain characters, and the way back to the places of its original.
pub(super) struct Folded<'a> {
    pub(super) text: Cow<'a, str>,
    /// For each character that became shorter: where it ends in the folded text, and by how much all up to it did.
    shorter: Vec<(usize, usize)>,
}

impl<'a> Folded<'a> {
    pub(super) fn new(original: &'a str) -> Self {
        let text = fold(original);
        let mut shorter = Vec::new();
        if matches!(text, Cow::Owned(_)) {
            let (mut at, mut lost) = (0, 0);
            for char in original.chars() {
                let folded = plain(char);
                at += folded.len_utf8();
                if folded != char {
                    lost += char.len_utf8() - folded.len_utf8();
                    shorter.push((at, lost));
                }
            }
        }
        Self { text, shorter }
    }

    /// Where a place of the folded text is in the original.
    pub(super) fn back(&self, offset: usize) -> usize {
        let before = self.shorter.partition_point(|(end, _)| *end <= offset);
        offset + before.checked_sub(1).map_or(0, |last| self.shorter[last].1)
    }
}

/// Which characters new text is written with.
#[derive(Clone, Debug)]
pub(super) enum Style {
    /// As the model wrote it.
    Same,
    /// The model wrote typographic characters for plain ones.
    Plain,
    /// The file has typographic characters for these plain ones of the model.
    Typographic(Vec<char>),
}

impl Style {
    pub(super) fn learn<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut is_plain, mut marks) = (false, Vec::new());
        for (old, file) in pairs {
            let (old, file) = (old.trim(), file.trim());
            if old.is_ascii() && file.is_ascii() {
                continue;
            }
            let blank = |char: &char| !char.is_whitespace();
            for (old, file) in old.chars().filter(blank).zip(file.chars().filter(blank)) {
                if old != file {
                    is_plain |= plain(old) == file;
                    if plain(file) == old && !marks.contains(&old) {
                        marks.push(old);
                    }
                }
            }
        }
        match (is_plain, marks.is_empty()) {
            (false, true) => Self::Same,
            (true, true) => Self::Plain,
            _ => Self::Typographic(marks),
        }
    }

    /// New text as the file would have it; `None` where that is in doubt.
    pub(super) fn written<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        match self {
            Self::Same => Some(Cow::Borrowed(text)),
            Self::Plain => Some(fold(text)),
            Self::Typographic(marks) => (!text.contains(marks.as_slice())).then_some(Cow::Borrowed(text)),
        }
    }
}

/// `new` for what the file has where a model wrote `old`: pieces that stay have the characters and blanks of the file. The
/// texts of file and model are alike but for typography and inner blanks. `None` where a piece is in doubt.
pub(super) fn transfer(file: &str, old: &str, new: &str) -> Option<String> {
    if file == old {
        return Some(new.to_owned());
    }
    let (file, old, new) = (pieces(file), pieces(old), pieces(new));
    if file.len() != old.len() {
        return None;
    }
    let mut forms: HashMap<&str, Vec<&str>> = HashMap::new();
    for (old, file) in old.iter().zip(&file) {
        let known = forms.entry(old).or_default();
        if !known.contains(file) {
            known.push(file);
        }
    }
    // A piece that the file writes in one way only can be put anywhere; others must stay where they are.
    let is_certain = |piece: &&str| forms.get(*piece).is_none_or(|forms| forms[..] == [*piece]);
    let style = Style::learn(old.iter().copied().zip(file.iter().copied()));
    let mut text = String::new();
    for op in diff_lines(&old, &new, None) {
        if op.tag() == DiffTag::Equal {
            file[op.old_range()].iter().for_each(|piece| text.push_str(piece));
            continue;
        }
        let (gone, come) = (&old[op.old_range()], &new[op.new_range()]);
        let is_plain = matches!(style, Style::Plain);
        let are_certain = gone.iter().all(is_certain) && come.iter().all(is_certain);
        if !is_plain && !are_certain {
            return None;
        }
        for piece in come {
            text.push_str(&style.written(piece)?);
        }
    }
    Some(text)
}

/// A text cut into words, runs of blanks and single other characters.
fn pieces(text: &str) -> Vec<&str> {
    let kind = |char: char| match char {
        char if char.is_alphanumeric() || char == '_' => 0,
        char if char.is_whitespace() => 1,
        _ => 2,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, char) in text.char_indices() {
        if last.is_some_and(|last| last != kind(char) || last == 2) {
            pieces.push(&text[start..at]);
            start = at;
        }
        last = Some(kind(char));
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_folded_text_lead_back() {
        let folded = Folded::new("a\u{201c}b\u{201d}\u{2014}c");
        assert_eq!(folded.text, "a\"b\"-c");
        let back: Vec<usize> = (0..=folded.text.len()).map(|at| folded.back(at)).collect();
        assert_eq!(back, [0, 1, 4, 5, 8, 11, 12]);
    }

    #[test]
    fn what_stays_is_the_file_s_and_doubt_changes_nothing() {
        let check = |file: &str, old: &str, new: &str, expected: Option<&str>| {
            assert_eq!(transfer(file, old, new).as_deref(), expected, "{file} | {old} | {new}");
        };
        check("say \u{201c}a\u{201d}", "say \"a\"", "say \"b\"", Some("say \u{201c}b\u{201d}"));
        check("say \u{201c}a\u{201d}", "say \"a\"", "say \"a\" and \"b\"", None);
        check(
            "say \"a\"",
            "say \u{201c}a\u{201d}",
            "say \u{201c}a\u{201d} or \u{201c}b\u{201d}",
            Some("say \"a\" or \"b\""),
        );
        check("a  =  1", "a = 1", "a = 2", Some("a  =  2"));
        check("a  =  1", "a = 1", "a = b + 1", None);
    }
}
