//! What a program shows in a pseudo-terminal, as lines of text: without colors, cursor movements and titles.
//!
//! Invariant: a sequence may come in any number of pieces.

/// Takes terminal sequences out of a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct TerminalText {
    state: State,
    /// Bytes of the sequence so far.
    length: usize,
    is_after_return: bool,
}

/// No sequence is longer: what follows is text again, so that a stray one hides little.
const LONGEST: usize = 4_096;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// A control sequence: up to a letter or one of a few signs.
    Control,
    /// A title or another text for the terminal: up to BEL, or ESC and one sign.
    String,
    StringEscape,
    /// One more byte belongs to it.
    Charset,
}

impl TerminalText {
    pub(super) fn clean(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.length = if self.state == State::Text { 0 } else { self.length + 1 };
            self.state = match (self.state, *byte) {
                // CAN and SUB end a sequence, and so does a line end where none belongs.
                (state, 0x18 | 0x1a) if state != State::Text => State::Text,
                (State::Control, b'\n') => {
                    self.add(b'\n', &mut text);
                    State::Text
                }
                (State::String, _) if self.length > LONGEST => State::Text,
                (State::Text, 0x1b) => State::Escape,
                (State::Text, byte) => {
                    self.add(byte, &mut text);
                    State::Text
                }
                (State::Escape, b'[') => State::Control,
                (State::Escape, b']' | b'P' | b'_' | b'^' | b'X') => State::String,
                (State::Escape, b'(' | b')' | b'*' | b'+' | b'#' | b'%') => State::Charset,
                (State::Escape, 0x1b) => State::Escape,
                (State::Control, 0x40..=0x7e) | (State::String, 0x07) => State::Text,
                (State::String, 0x1b) => State::StringEscape,
                (State::Control, _) => State::Control,
                (State::String, _) => State::String,
                (State::Escape | State::StringEscape | State::Charset, _) => State::Text,
            };
        }
        text
    }

    /// A return without a new line begins the line anew; what was there before stays as a line of its own.
    fn add(&mut self, byte: u8, text: &mut Vec<u8>) {
        let was_return = std::mem::replace(&mut self.is_after_return, byte == b'\r');
        match byte {
            b'\r' => {}
            b'\n' => text.push(b'\n'),
            // A bell or a step back shows nothing.
            0x07 | 0x08 | 0x7f => self.is_after_return = was_return,
            byte => {
                if was_return {
                    text.push(b'\n');
                }
                text.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_sequence_does_not_hide_what_follows() {
        let shown = format!("a\x1b]{}end", "x".repeat(LONGEST));
        assert!(TerminalText::default().clean(shown.as_bytes()).ends_with(b"end"));
    }

    #[test]
    fn text_stays_and_sequences_go_in_pieces_too() {
        for (shown, text) in [
            ("plain\r\nlines\r\n", "plain\nlines\n"),
            ("\x1b[1;32mgreen\x1b[0m", "green"),
            ("\x1b]0;a title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(B\x1b=\x1b>x\x1b7\x1b8", "x"),
            ("10 %\r20 %\r\n", "10 %\n20 %\n"),
            ("\x1b[?2004hProceed? [y/n] ", "Proceed? [y/n] "),
            ("ä\x1b[Kö\x07", "äö"),
            // A sequence that was cut hides no line.
            ("a\x1b[12\nb", "a\nb"),
            ("a\x1b]0;title\x18b", "ab"),
        ] {
            assert_eq!(TerminalText::default().clean(shown.as_bytes()), text.as_bytes(), "{shown:?}");
            let mut cleaner = TerminalText::default();
            let pieces: Vec<u8> =
                shown.as_bytes().iter().flat_map(|byte| cleaner.clean(std::slice::from_ref(byte))).collect();
            assert_eq!(pieces, text.as_bytes(), "{shown:?}");
        }
    }
}
