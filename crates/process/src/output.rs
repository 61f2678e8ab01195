//! Output kept within a limit: the first bytes, the last bytes, and how many were between them.
//! Memory never exceeds the limit, however much a child writes.

use std::collections::VecDeque;

/// How many bytes of one stream are kept: from its beginning and from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    pub head: usize,
    pub tail: usize,
}

impl Default for OutputLimit {
    fn default() -> Self {
        Self { head: 64 * 1024, tail: 64 * 1024 }
    }
}

/// What was kept of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// Bytes between `head` and `tail` that were not kept.
    pub dropped: u64,
}

impl Captured {
    /// How many bytes the child wrote.
    pub fn total(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.dropped
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// The bytes as text: what is not UTF-8 is replaced, what was left out is named.
    pub fn text(&self) -> String {
        if self.dropped == 0 {
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head = &self.head[..whole_characters(&self.head)];
        let cut = self.tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        let tail = &self.tail[cut..];
        let dropped = self.total() - (head.len() + tail.len()) as u64;
        format!(
            "{}\n[… {dropped} bytes left out …]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(tail)
        )
    }
}

/// Fills a `Captured` piece by piece.
#[derive(Debug)]
pub(crate) struct Capture {
    limit: OutputLimit,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Capture {
    pub(crate) fn new(limit: OutputLimit) -> Self {
        Self { limit, head: Vec::new(), tail: VecDeque::new(), dropped: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.head - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        // Of a piece longer than the whole tail only its end can stay.
        let skipped = rest.len().saturating_sub(self.limit.tail);
        let rest = &rest[skipped..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.limit.tail);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
        self.dropped += (skipped + overflow) as u64;
    }

    pub(crate) fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), dropped: self.dropped }
    }
}

/// The length of `bytes` without a UTF-8 character that the end cuts in two.
fn whole_characters(bytes: &[u8]) -> usize {
    let continuation = bytes.iter().rev().take(3).take_while(|byte| is_continuation(**byte)).count();
    let Some(start) = bytes.len().checked_sub(continuation + 1) else { return bytes.len() };
    let expected = match bytes[start] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    };
    if continuation + 1 < expected { start } else { bytes.len() }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(head: usize, tail: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(OutputLimit { head, tail });
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn keeps_both_ends_and_counts_the_rest() {
        type Row<'a> = (usize, usize, &'a [&'a [u8]], &'a [u8], &'a [u8], u64);
        let rows: &[Row] = &[
            (4, 4, &[b"ab"], b"ab", b"", 0),
            (4, 4, &[b"abcd", b"efgh"], b"abcd", b"efgh", 0),
            (4, 4, &[b"abcdefghi"], b"abcd", b"fghi", 1),
            (4, 4, &[b"ab", b"cdefgh", b"ijk", b"l"], b"abcd", b"ijkl", 4),
            (0, 2, &[b"abc"], b"", b"bc", 1),
            (2, 0, &[b"abc", b"d"], b"ab", b"", 2),
        ];
        for (head, tail, pieces, want_head, want_tail, dropped) in rows {
            let got = capture(*head, *tail, pieces);
            assert_eq!((&got.head[..], &got.tail[..], got.dropped), (*want_head, *want_tail, *dropped));
            assert_eq!(got.total(), pieces.iter().map(|piece| piece.len() as u64).sum::<u64>());
        }
    }

    #[test]
    fn text_never_shows_half_a_character_of_ours() {
        let got = capture(4, 4, &["aäöüßxyéz".as_bytes()]);
        assert_eq!(got.text(), "aä\n[… 7 bytes left out …]\nyéz");
        assert_eq!(capture(9, 9, &[b"a\xffb"]).text(), "a\u{fffd}b");
        assert_eq!(capture(3, 3, &["aé".as_bytes(), "é".as_bytes()]).text(), "aéé");
    }
}
