//! The prompt that the user types: its text, its cursor and the earlier prompts.
//!
//! Invariant: the cursor stands at a grapheme boundary; the text has no control character except the newline.

#![allow(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use ratatui::crossterm::event::KeyCode;
use unicode_segmentation::UnicodeSegmentation;

use crate::text::{clean, width};

/// The number of earlier prompts in the history.
const REMEMBERED: usize = 500;

/// A larger paste is folded to a mark.
const FOLDED_PASTE_LINES: usize = 10;
const FOLDED_PASTE_BYTES: usize = 2000;

/// The number of changes that can be taken back.
const MAX_UNDOS: usize = 200;

#[derive(Default)]
pub struct Input {
    text: String,
    /// A byte offset.
    cursor: usize,
    earlier: Vec<String>,
    /// The index of the recalled prompt, and the text that it replaced.
    recalled: Option<(usize, String)>,
    /// The text and cursor before each change, for undo.
    undos: Vec<(String, usize)>,
    /// The last change was a letter, which belongs to the same step as the next one.
    is_typing: bool,
    /// What was deleted last, for a yank.
    killed: String,
    /// Large pastes: the mark in the text and the text that it stands for.
    pastes: Vec<(String, String)>,
    /// The byte ranges of the rows at a width; reset when the text changes.
    rows: Option<(usize, Vec<(usize, usize)>)>,
}

impl Input {
    /// Handles a key without a modifier. Returns false if the key edits nothing.
    pub fn edit(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.delete(),
            KeyCode::Left => self.left(),
            KeyCode::Right => self.right(),
            KeyCode::Home => self.home(),
            KeyCode::End => self.end(),
            _ => return false,
        }
        true
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn set(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.keep_for_undo();
        }
        self.is_typing = false;
        self.text = clean(text).into_owned();
        self.cursor = self.text.len();
        self.rows = None;
    }

    /// Takes the text and adds it to the history.
    pub fn take(&mut self) -> String {
        let text = self.expanded();
        self.text.clear();
        self.pastes.clear();
        self.undos.clear();
        self.is_typing = false;
        self.cursor = 0;
        self.rows = None;
        self.remember(&text);
        text
    }

    pub fn clear(&mut self) {
        self.set("");
        self.recalled = None;
    }

    /// Earlier prompts, the oldest first.
    pub(crate) fn earlier(&self) -> &[String] {
        &self.earlier
    }

    pub fn remember(&mut self, text: &str) {
        self.recalled = None;
        if !text.trim().is_empty() && self.earlier.last().is_none_or(|last| last != text) {
            self.earlier.push(text.to_owned());
            let too_many = self.earlier.len().saturating_sub(REMEMBERED);
            self.earlier.drain(..too_many);
        }
    }

    /// The text with its pastes in full.
    pub(crate) fn expanded(&self) -> String {
        self.pastes
            .iter()
            .fold(self.text.clone(), |text, (mark, paste)| text.replacen(mark.as_str(), paste, 1))
    }

    /// Inserts pasted text; a large one becomes a mark.
    pub(crate) fn insert_paste(&mut self, text: &str) {
        let lines = text.lines().count();
        if lines <= FOLDED_PASTE_LINES && text.len() <= FOLDED_PASTE_BYTES {
            return self.insert(text);
        }
        let mark = match lines {
            0 | 1 => format!("[paste {}: {} characters]", self.pastes.len() + 1, text.chars().count()),
            lines => format!("[paste {}: {lines} lines]", self.pastes.len() + 1),
        };
        self.insert(&mark);
        self.pastes.push((mark, clean(text).into_owned()));
    }

    pub fn insert(&mut self, text: &str) {
        let text = clean(text);
        let is_letter = text.chars().count() == 1 && !text.contains(char::is_whitespace);
        if !(is_letter && self.is_typing) {
            self.keep_for_undo();
        }
        self.is_typing = is_letter;
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.rows = None;
    }

    /// Replaces `range` with `text` and moves the cursor behind it.
    pub fn replace(&mut self, range: std::ops::Range<usize>, text: &str) {
        if self.text.get(range.clone()).is_none() {
            return;
        }
        if self.text[range.clone()] != *text {
            self.keep_for_undo();
        }
        self.is_typing = false;
        self.text.replace_range(range.clone(), text);
        self.cursor = range.start + text.len();
        self.rows = None;
    }

    pub fn backspace(&mut self) {
        let from = self.before();
        self.replace(from..self.cursor, "");
    }

    pub fn delete(&mut self) {
        let (at, to) = (self.cursor, self.after());
        self.replace(at..to, "");
    }

    pub fn delete_word(&mut self) {
        self.kill(self.word_before()..self.cursor);
    }

    pub fn delete_next_word(&mut self) {
        self.kill(self.cursor..self.word_end());
    }

    pub fn delete_to_start(&mut self) {
        self.kill(self.line_start()..self.cursor);
    }

    pub fn delete_to_end(&mut self) {
        self.kill(self.cursor..self.line_end().max(self.cursor));
    }

    /// Deletes and keeps it for [`Self::yank`].
    pub(super) fn kill(&mut self, range: std::ops::Range<usize>) {
        if let Some(text) = self.text.get(range.clone()).filter(|text| !text.is_empty()) {
            self.killed = text.to_owned();
            self.replace(range, "");
        }
    }

    /// Keeps text for [`Self::yank`] and deletes nothing.
    pub(super) fn keep(&mut self, range: std::ops::Range<usize>) {
        if let Some(text) = self.text.get(range).filter(|text| !text.is_empty()) {
            self.killed = text.to_owned();
        }
    }

    pub(super) fn killed(&self) -> &str {
        &self.killed
    }

    /// Inserts what was deleted last.
    pub fn yank(&mut self) {
        let text = self.killed.clone();
        self.insert(&text);
        self.is_typing = false;
    }

    /// Takes the last change back. False: there is none.
    pub fn undo(&mut self) -> bool {
        let Some((text, cursor)) = self.undos.pop() else { return false };
        self.text = text;
        self.cursor = cursor;
        self.rows = None;
        self.is_typing = false;
        true
    }

    fn keep_for_undo(&mut self) {
        if self.undos.len() >= MAX_UNDOS {
            self.undos.remove(0);
        }
        self.undos.push((self.text.clone(), self.cursor));
    }

    /// Changes the letters of the word at the cursor and moves behind it.
    pub fn change_word(&mut self, change: impl Fn(&str) -> String) {
        let range = self.cursor..self.word_end();
        let changed = change(&self.text[range.clone()]);
        self.replace(range, &changed);
    }

    pub(super) fn move_to(&mut self, at: usize) {
        if self.text.is_char_boundary(at) {
            self.cursor = at;
            self.is_typing = false;
        }
    }

    pub fn left(&mut self) {
        self.cursor = self.before();
    }

    pub fn right(&mut self) {
        self.cursor = self.after();
    }

    pub fn word_left(&mut self) {
        self.cursor = self.word_before();
    }

    pub fn word_right(&mut self) {
        self.cursor = self.word_end();
    }

    fn word_end(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.find(|c: char| c.is_alphanumeric()).unwrap_or(rest.len());
        let end = rest[word..].find(|c: char| !c.is_alphanumeric()).map_or(rest.len(), |at| word + at);
        self.cursor + end
    }

    pub fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// Moves a line up, or recalls the prompt before. Returns false if there is none.
    pub fn up(&mut self) -> bool {
        let start = self.line_start();
        if start > 0 {
            let column = width(&self.text[start..self.cursor]);
            let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
            self.cursor = above + crate::text::take_columns(&self.text[above..start - 1], column).len();
            return true;
        }
        let at = self.recalled.as_ref().map_or(self.earlier.len(), |(at, _)| *at);
        let Some(before) = at.checked_sub(1) else { return false };
        let typed = self.recalled.take().map_or_else(|| self.text.clone(), |(_, typed)| typed);
        let text = self.earlier[before].clone();
        self.set(&text);
        self.recalled = Some((before, typed));
        true
    }

    /// Moves a line down, or recalls the prompt after.
    pub fn down(&mut self) -> bool {
        let end = self.line_end();
        if end < self.text.len() {
            let column = width(&self.text[self.line_start()..self.cursor]);
            let below = end + 1;
            let to = self.text[below..].find('\n').map_or(self.text.len(), |at| below + at);
            self.cursor = below + crate::text::take_columns(&self.text[below..to], column).len();
            return true;
        }
        let Some((at, typed)) = self.recalled.take() else { return false };
        match self.earlier.get(at + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some((at + 1, typed));
            }
            None => self.set(&typed),
        }
        true
    }

    /// The rows of the text at a width, as byte ranges.
    pub fn rows(&mut self, columns: usize) -> &[(usize, usize)] {
        if self.rows.as_ref().is_none_or(|(at, _)| *at != columns) {
            self.rows = Some((columns, break_rows(&self.text, columns.max(1))));
        }
        self.rows.as_ref().map_or(&[], |(_, rows)| rows)
    }

    /// Row and column of the cursor at a width.
    pub fn place(&mut self, columns: usize) -> (usize, usize) {
        let cursor = self.cursor;
        let rows = self.rows(columns);
        let row = rows.iter().rposition(|(start, _)| *start <= cursor).unwrap_or(0);
        let start = rows.get(row).map_or(0, |(start, _)| *start);
        (row, width(&self.text[start..cursor]))
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |it| self.cursor + it.len())
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end_matches(|c: char| !c.is_alphanumeric());
        text.trim_end_matches(char::is_alphanumeric).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }
}

/// A full row starts another one, so that the cursor has a place behind it.
fn break_rows(text: &str, columns: usize) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, grapheme) in text.grapheme_indices(true) {
        if grapheme == "\n" {
            rows.push((start, at));
            (start, used) = (at + 1, 0);
            continue;
        }
        let wide = width(grapheme);
        if used + wide > columns && used > 0 {
            rows.push((start, at));
            (start, used) = (at, 0);
        }
        used += wide;
    }
    rows.push((start, text.len()));
    if used >= columns {
        rows.push((text.len(), text.len()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_and_moving() {
        let mut input = Input::default();
        input.insert("hello wörld");
        input.word_left();
        input.insert("big ");
        assert_eq!(input.text(), "hello big wörld");
        input.end();
        input.backspace();
        input.delete_word();
        assert_eq!(input.text(), "hello big ");
        input.insert("\x1b[31mred\x07");
        assert_eq!(input.text(), "hello big red");
        input.delete_to_start();
        assert!(input.is_empty());
    }

    #[test]
    fn changes_are_taken_back_and_deleted_text_comes_again() {
        let mut input = Input::default();
        for letter in ["o", "n", "e", " ", "t", "w", "o"] {
            input.insert(letter);
        }
        input.delete_word();
        assert_eq!((input.text(), input.killed()), ("one ", "two"));
        input.yank();
        input.yank();
        assert_eq!(input.text(), "one twotwo");
        for expected in ["one two", "one ", "one two"] {
            assert!(input.undo());
            assert_eq!(input.text(), expected);
        }
        while input.undo() {}
        assert!(input.is_empty(), "{}", input.text());
        input.insert("größe und mehr");
        input.home();
        input.change_word(|word| word.to_uppercase());
        input.delete_next_word();
        assert_eq!(input.text(), "GRÖSSE mehr");
    }

    #[test]
    fn a_large_paste_is_folded_and_sent_in_full() {
        let mut input = Input::default();
        input.insert("look: ");
        let paste = (0..30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        input.insert_paste(&paste);
        assert_eq!(input.text(), "look: [paste 1: 30 lines]");
        assert_eq!(input.take(), format!("look: {paste}"));
        input.insert_paste("short");
        assert_eq!(input.take(), "short");
    }

    #[test]
    fn lines_and_earlier_prompts() {
        let mut input = Input::default();
        input.insert("first");
        assert_eq!(input.take(), "first");
        input.insert("two\nlines");
        assert!(input.up());
        assert_eq!(input.cursor(), 3);
        assert!(input.up());
        assert_eq!(input.text(), "first");
        assert!(input.down());
        assert_eq!(input.text(), "two\nlines");
        assert!(!input.down());
    }

    #[test]
    fn the_cursor_has_a_place() {
        let mut input = Input::default();
        input.insert("abcdef");
        assert_eq!(input.place(6), (1, 0));
        assert_eq!(input.place(4), (1, 2));
        input.insert("\nx");
        assert_eq!(input.place(4), (2, 1));
    }
}
