//! Asks the terminal for its background color (OSC 11), before the keys are read.
//!
//! Invariants: the wait is short and ends by itself; the terminal is in its former mode afterwards; a terminal that does not
//! know the question answers the second one, which all know.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Longer than the way to a terminal far away and back, as a rule.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(250);
/// The color, and the terminal's attributes: every terminal answers the latter, so its answer ends the wait.
const QUESTIONS: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";
const MAX_ANSWER_BYTES: usize = 1024;

/// Whether the background is light; `None` where the terminal does not tell.
pub fn is_background_light() -> Option<bool> {
    if !platform::terminal::ANSWERS_QUESTIONS {
        return None;
    }
    enable_raw_mode().ok()?;
    let answer = ask();
    let _ = disable_raw_mode();
    is_light(&answer.ok()?)
}

fn ask() -> io::Result<Vec<u8>> {
    let mut output = io::stdout().lock();
    output.write_all(QUESTIONS)?;
    output.flush()?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let (mut answer, mut buffer) = (Vec::new(), [0; 256]);
    while !has_attributes(&answer) && answer.len() < MAX_ANSWER_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        // Unbuffered: the buffer of `Stdin` would keep bytes that belong to the keys.
        match platform::terminal::read_within(left, &mut buffer)? {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(answer)
}

/// `ESC [ ? … c` is there.
fn has_attributes(answer: &[u8]) -> bool {
    let start = answer.windows(3).position(|window| window == b"\x1b[?");
    start.is_some_and(|start| answer[start..].contains(&b'c'))
}

/// The brightness of `rgb:RRRR/GGGG/BBBB` in an answer.
fn is_light(answer: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(answer);
    let color = text.split("]11;").nth(1)?.split(['\x1b', '\x07']).next()?;
    let parts = color.strip_prefix("rgb:").or_else(|| color.strip_prefix("rgba:"))?;
    let mut channels = parts.split('/').map(|part| {
        let most = 16_u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        Some(f64::from(u32::from_str_radix(part, 16).ok()?) / f64::from(most.max(1)))
    });
    let mut next = || channels.next().flatten();
    let (red, green, blue) = (next()?, next()?, next()?);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_terminals_are_read() {
        for (answer, expected) in [
            ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c", Some(true)),
            ("\x1b]11;rgb:1e1e/1e1e/1e1e\x07\x1b[?1;2c", Some(false)),
            ("\x1b]11;rgb:fd/f6/e3\x1b\\", Some(true)),
            ("\x1b]11;rgba:0000/0000/8000/ffff\x07", Some(false)),
            ("\x1b[?62;22c", None),
            ("\x1b]11;rgb:zz/0/0\x07", None),
            ("", None),
        ] {
            assert_eq!(is_light(answer.as_bytes()), expected, "{answer:?}");
        }
        assert!(has_attributes(b"x\x1b[?62;22c") && !has_attributes(b"\x1b]11;rgb:c/c/c\x07"));
    }
}
