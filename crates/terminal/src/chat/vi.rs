//! Editing of the input with vi's keys: a normal mode beside the usual one, which is its insert mode.
//!
//! Must not know the chat: keys that edit nothing are left to the caller.

use ratatui::crossterm::event::KeyCode;

use super::input::Input;

/// The state of the editor; switched off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vi {
    pub is_on: bool,
    pub is_normal: bool,
    /// `d`, `c` or `g` waits for its second key.
    pending: Option<char>,
}

impl Vi {
    /// Esc: leaves insert mode. Returns false where Esc means something else.
    pub(super) fn escape(&mut self, input: &mut Input) -> bool {
        self.pending = None;
        if !self.is_on || self.is_normal {
            return false;
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
        if let Some(first) = self.pending.take() {
            self.complete(first, character, input);
            return true;
        }
        match character {
            'h' => input.left(),
            'l' => input.right(),
            'w' => move_to(input, next_word(input)),
            'e' => input.word_right(),
            'b' => input.word_left(),
            '0' | '^' => input.home(),
            '$' => input.end(),
            'j' => drop(input.down()),
            'k' => drop(input.up()),
            'x' => input.delete(),
            'X' => input.backspace(),
            'D' => input.delete_to_end(),
            'd' | 'c' | 'g' => self.pending = Some(character),
            'C' => {
                input.delete_to_end();
                self.is_normal = false;
            }
            'i' => self.is_normal = false,
            'a' => self.insert_after(input, Input::right),
            'I' => self.insert_after(input, Input::home),
            'A' => self.insert_after(input, Input::end),
            'o' => {
                self.insert_after(input, Input::end);
                input.insert("\n");
            }
            // A question mark asks for help and a slash begins a command, as in insert mode.
            '/' | '?' | '!' | '#' if input.is_empty() => {
                self.is_normal = false;
                return false;
            }
            _ => {}
        }
        true
    }

    fn insert_after(&mut self, input: &mut Input, move_cursor: impl Fn(&mut Input)) {
        move_cursor(input);
        self.is_normal = false;
    }

    /// `dd`, `dw`, `d$`, `d0`, the same with `c`, and `gg`.
    fn complete(&mut self, first: char, second: char, input: &mut Input) {
        match (first, second) {
            ('d' | 'c', 'd' | 'c') if first == second => {
                input.home();
                input.delete_to_end();
            }
            ('d' | 'c', 'w') => {
                let range = input.cursor()..next_word(input);
                input.replace(range, "");
            }
            ('d' | 'c', 'b') => input.delete_word(),
            ('d' | 'c', '$') => input.delete_to_end(),
            ('d' | 'c', '0') => input.delete_to_start(),
            ('g', 'g') => {
                while input.cursor() > 0 && input.text()[..input.cursor()].contains('\n') {
                    input.up();
                }
            }
            _ => return,
        }
        self.is_normal = first != 'c';
    }
}

/// The beginning of the next word.
fn next_word(input: &Input) -> usize {
    let rest = &input.text()[input.cursor()..];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let behind = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let next = rest[behind..].find(is_word).map_or(rest.len(), |at| behind + at);
    input.cursor() + next
}

fn move_to(input: &mut Input, at: usize) {
    input.replace(at..at, "");
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
            ("0cwzero ", "zero two three", false),
            ("A!", "one two three!", false),
            ("Ix", "xone two three", false),
            ("0wD", "one ", true),
            ("ofour", "one two three\nfour", false),
            ("qq", "one two three", true),
        ] {
            let (mut input, mut vi) = (Input::default(), Vi { is_on: true, ..Vi::default() });
            input.insert("one two three");
            assert!(vi.escape(&mut input) && !vi.escape(&mut input));
            for character in keys.chars() {
                if !vi.handle_key(KeyCode::Char(character), &mut input) {
                    input.insert(character.encode_utf8(&mut [0; 4]));
                }
            }
            assert_eq!((input.text(), vi.is_normal), (expected, is_normal), "{keys}");
        }
        let (mut input, mut vi) = (Input::default(), Vi::default());
        assert!(!vi.escape(&mut input) && !vi.handle_key(KeyCode::Char('x'), &mut input), "off by default");
    }
}
