//! Editing of the input with vi's keys: a normal mode beside the usual one, which is its insert mode.
//!
//! Must not know the chat: keys that edit nothing are left to the caller. Invariant: the cursor stays at a boundary of
//! characters, whatever is typed.

use std::ops::Range;

use ratatui::crossterm::event::KeyCode;

use super::input::Input;
use super::vi_motion::{self, Find};

/// The state of the editor; switched off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vi {
    pub is_on: bool,
    pub is_normal: bool,
    pending: Pending,
    /// The last `f`, `t`, `F` or `T`, for `;` and `,`.
    find: Option<Find>,
}

/// What was typed of a command so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    count: Option<usize>,
    /// `d`, `c` or `y` waits for a motion.
    operator: Option<char>,
    /// `f`, `t`, `F`, `T`, `r`, `g`, `i` or `a` waits for its second key.
    second: Option<char>,
}

/// A larger count is a mistake.
const MAX_COUNT: usize = 9999;

impl Vi {
    /// Esc: leaves insert mode, or forgets a half-typed command. Returns false where Esc means something else.
    pub(super) fn escape(&mut self, input: &mut Input) -> bool {
        let was_pending = std::mem::take(&mut self.pending) != Pending::default();
        if !self.is_on || self.is_normal {
            return self.is_on && was_pending;
        }
        self.is_normal = true;
        let at_start = input.text()[..input.cursor()].ends_with('\n') || input.cursor() == 0;
        if !at_start {
            input.left();
        }
        true
    }

    /// A key without Ctrl or Alt in normal mode. Returns false for keys that have their usual meaning.
    pub(super) fn handle_key(&mut self, key: KeyCode, input: &mut Input) -> bool {
        if !self.is_on || !self.is_normal {
            return false;
        }
        let KeyCode::Char(character) = key else { return false };
        let is_fresh = self.pending == Pending::default();
        // A question mark asks for help and a slash begins a command, as in insert mode.
        if is_fresh && input.is_empty() && matches!(character, '/' | '?' | '!' | '#') {
            self.is_normal = false;
            return false;
        }
        if let Some(first) = self.pending.second.take() {
            self.finish(first, character, input);
            return true;
        }
        if let Some(digit) = character.to_digit(10).filter(|digit| *digit > 0 || self.pending.count.is_some())
        {
            let digit = usize::try_from(digit).unwrap_or(0);
            let count = self.pending.count.unwrap_or(0) * 10 + digit;
            self.pending.count = Some(count.min(MAX_COUNT));
            return true;
        }
        match (self.pending.operator, character) {
            (_, 'f' | 't' | 'F' | 'T' | 'g') | (None, 'r') | (Some(_), 'i' | 'a') => {
                self.pending.second = Some(character);
            }
            (Some(operator), again) if again == operator => self.apply_to_lines(operator, input),
            (Some(_), _) => self.move_or_apply(character, input),
            (None, 'd' | 'c' | 'y') => self.pending.operator = Some(character),
            (None, _) => self.command(character, input),
        }
        true
    }

    /// The second key of `f`, `t`, `F`, `T`, `r`, `g`, or of a text object.
    fn finish(&mut self, first: char, second: char, input: &mut Input) {
        match (first, self.pending.operator) {
            ('f' | 't' | 'F' | 'T', _) => {
                let find = Find { kind: first, wanted: second };
                self.find = Some(find);
                self.apply_find(find, input);
            }
            ('r', _) => {
                let count = self.pending.count.take().unwrap_or(1);
                vi_motion::replace_letters(input, second, count);
                self.pending = Pending::default();
            }
            ('g', _) if second == 'g' => self.apply(input, 0, false),
            ('i' | 'a', Some(_)) => {
                let range = vi_motion::text_object(input.text(), input.cursor(), first == 'a', second);
                match range {
                    Some(range) => self.apply_range(range, input),
                    None => self.pending = Pending::default(),
                }
            }
            _ => self.pending = Pending::default(),
        }
    }

    /// A motion, with or without an operator before it.
    fn move_or_apply(&mut self, character: char, input: &mut Input) {
        let count = self.pending.count.unwrap_or(1);
        if let Some(find) = self.find.filter(|_| matches!(character, ';' | ',')) {
            return self.apply_find(if character == ';' { find } else { find.reversed() }, input);
        }
        // `cw` ends with the word, as `ce` does.
        let character = match (self.pending.operator, character) {
            (Some('c'), 'w') => 'e',
            (Some('c'), 'W') => 'E',
            (_, character) => character,
        };
        match vi_motion::target(input.text(), input.cursor(), character, count, self.pending.count) {
            Some((at, is_inclusive)) => self.apply(input, at, is_inclusive),
            None => self.pending = Pending::default(),
        }
    }

    fn apply_find(&mut self, find: Find, input: &mut Input) {
        let count = self.pending.count.unwrap_or(1);
        match vi_motion::find(input.text(), input.cursor(), find, count) {
            Some(at) => self.apply(input, at, find.is_forward()),
            None => self.pending = Pending::default(),
        }
    }

    /// Moves there, or applies the operator to the text up to there.
    fn apply(&mut self, input: &mut Input, at: usize, is_inclusive: bool) {
        if self.pending.operator.is_none() {
            self.pending = Pending::default();
            return input.move_to(at);
        }
        let cursor = input.cursor();
        let (from, mut to) = if at < cursor { (at, cursor) } else { (cursor, at) };
        if is_inclusive && at >= cursor {
            to += input.text()[to..].chars().next().map_or(0, char::len_utf8);
        }
        self.apply_range(from..to, input);
    }

    fn apply_range(&mut self, range: Range<usize>, input: &mut Input) {
        let operator = std::mem::take(&mut self.pending).operator;
        match operator {
            Some('y') => {
                input.keep(range.clone());
                input.move_to(range.start);
            }
            Some(operator) => {
                input.move_to(range.start);
                input.kill(range);
                self.is_normal = operator != 'c';
            }
            None => {}
        }
    }

    /// `dd`, `cc`, `yy`: whole lines; `cc` leaves an empty one.
    fn apply_to_lines(&mut self, operator: char, input: &mut Input) {
        let count = self.pending.count.unwrap_or(1);
        let lines = vi_motion::lines(input.text(), input.cursor(), count);
        let range = if operator == 'd' { vi_motion::with_line_end(input.text(), lines) } else { lines };
        self.apply_range(range, input);
        if operator == 'c' {
            self.is_normal = false;
        }
    }

    fn command(&mut self, character: char, input: &mut Input) {
        let count = self.pending.count.unwrap_or(1);
        let repeat = |input: &mut Input, edit: fn(&mut Input)| (0..count).for_each(|_| edit(input));
        match character {
            'j' => repeat_while(count, || input.down()),
            'k' => repeat_while(count, || input.up()),
            'x' => {
                let end = vi_motion::letters_after(input.text(), input.cursor(), count);
                input.kill(input.cursor()..end);
            }
            'X' => repeat(input, Input::backspace),
            'D' => input.delete_to_end(),
            'C' => self.insert_after(input, Input::delete_to_end),
            'S' => {
                self.pending.operator = Some('c');
                return self.apply_to_lines('c', input);
            }
            's' => self.insert_after(input, Input::delete),
            'Y' => {
                self.pending.operator = Some('y');
                return self.apply_to_lines('y', input);
            }
            'p' => vi_motion::put(input, true, count),
            'P' => vi_motion::put(input, false, count),
            'u' => repeat_while(count, || input.undo()),
            '~' => vi_motion::swap_case(input, count),
            'J' => vi_motion::join_lines(input),
            'i' => self.is_normal = false,
            'a' => self.insert_after(input, Input::right),
            'I' => self.insert_after(input, Input::home),
            'A' => self.insert_after(input, Input::end),
            'o' => {
                self.insert_after(input, Input::end);
                input.insert("\n");
            }
            'O' => {
                self.insert_after(input, Input::home);
                input.insert("\n");
                input.left();
            }
            motion => return self.move_or_apply(motion, input),
        }
        self.pending = Pending::default();
    }

    fn insert_after(&mut self, input: &mut Input, change: impl Fn(&mut Input)) {
        change(input);
        self.is_normal = false;
    }
}

/// So often, or until it returns false.
fn repeat_while(count: usize, mut step: impl FnMut() -> bool) {
    for _ in 0..count {
        if !step() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_keys_edit() {
        for (keys, expected, is_normal) in [
            ("0dw", "two three", true),
            ("bx", "one two hree", true),
            ("dd", "", true),
            ("0cwzero", "zero two three", false),
            ("A!", "one two three!", false),
            ("Ix", "xone two three", false),
            ("0wD", "one ", true),
            ("ofour", "one two three\nfour", false),
            ("qq", "one two three", true),
            ("02dw", "three", true),
            ("0d2w", "three", true),
            ("0fwx", "one to three", true),
            ("0dtw", "wo three", true),
            ("0ft;x", "one two hree", true),
            ("0yiwA \u{1}p", "one two three one", true),
            ("0wrW", "one Wwo three", true),
            ("03~", "ONE two three", true),
            ("0wciwsix", "one six three", false),
            ("0wdaw", "one three", true),
            ("0dwu", "one two three", true),
            ("0xxuu", "one two three", true),
            ("yyp", "one two three\none two three", true),
            ("0wyw$p", "one two threetwo ", true),
            ("0de", " two three", true),
            ("$F db", "one  three", true),
            ("Ozero", "zero\none two three", false),
            ("0d$", "", true),
            ("ggx", "ne two three", true),
        ] {
            let (mut input, mut vi) = (Input::default(), Vi { is_on: true, ..Vi::default() });
            input.insert("one two three");
            assert!(vi.escape(&mut input) && !vi.escape(&mut input));
            for character in keys.chars() {
                if character == '\u{1}' {
                    vi.escape(&mut input);
                } else if !vi.handle_key(KeyCode::Char(character), &mut input) {
                    input.insert(character.encode_utf8(&mut [0; 4]));
                }
            }
            assert_eq!((input.text(), vi.is_normal), (expected, is_normal), "{keys}");
        }
        let (mut input, mut vi) = (Input::default(), Vi::default());
        assert!(!vi.escape(&mut input) && !vi.handle_key(KeyCode::Char('x'), &mut input), "off by default");
    }

    #[test]
    fn text_objects_find_quotes_and_brackets() {
        for (text, at, keys, expected) in [
            ("say(\"hello there\", x)", 6, "di\"", "say(\"\", x)"),
            ("say(\"hello there\", x)", 6, "da\"", "say(, x)"),
            ("f(a, (b, c), d)", 7, "di(", "f(a, (), d)"),
            ("f(a, (b, c), d)", 7, "da)", "f(a, , d)"),
            ("f(a, (b, c), d)", 3, "ci(x", "f(x)"),
            ("{ größe }", 3, "di{", "{}"),
            ("no brackets", 3, "di(", "no brackets"),
        ] {
            let (mut input, mut vi) = (Input::default(), Vi { is_on: true, ..Vi::default() });
            input.insert(text);
            vi.escape(&mut input);
            input.move_to(at);
            for character in keys.chars() {
                if !vi.handle_key(KeyCode::Char(character), &mut input) {
                    input.insert(character.encode_utf8(&mut [0; 4]));
                }
            }
            assert_eq!(input.text(), expected, "{text}: {keys}");
        }
    }

    /// Random keys on random text never panic and keep the cursor at a boundary.
    #[test]
    fn any_keys_are_survived() {
        let keys: Vec<char> =
            "hjklwbeWBE0^$ggGfatitF;,dcyxXDCSsYpPu~JiaIAoOr123\"(){}äß漢\u{1}".chars().collect();
        let mut seed: u32 = 7;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            usize::try_from(seed >> 8).unwrap_or(0) % most
        };
        for _ in 0..200 {
            let (mut input, mut vi) = (Input::default(), Vi { is_on: true, ..Vi::default() });
            input.insert("größe (\"漢字\") {a}\n\n  zweite zeile e\u{301}");
            for _ in 0..60 {
                match keys[next(keys.len())] {
                    '\u{1}' => drop(vi.escape(&mut input)),
                    key => {
                        if !vi.handle_key(KeyCode::Char(key), &mut input) {
                            input.insert(key.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                assert!(input.text().is_char_boundary(input.cursor()));
            }
        }
    }
}
