//! JSON lines: one event per line, empty lines between them mean nothing.
//!
//! Some servers write them as server-sent events, so `data:` before a line is cut off and other fields are skipped.

use std::borrow::Cow;

use rpc::sse::{EventTooLarge, SseEvent};

/// The largest event of an answer.
pub const LIMIT: usize = 64 * 1024 * 1024;

/// The other fields of server-sent events, and their comments.
const SKIPPED_FIELDS: [&[u8]; 4] = [b"event:", b"id:", b"retry:", b":"];

#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the unfinished line begins, and how far it was searched for its end.
    start: usize,
    searched: usize,
    repaired: String,
}

impl Lines {
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.len() + bytes.len() > LIMIT {
            return Err(EventTooLarge);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream ended: a last line without its end counts all the same.
    pub fn finish(&mut self) {
        self.buffer.push(b'\n');
    }

    pub fn next_event(&mut self) -> Option<SseEvent<'_>> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return None;
            };
            let (mut start, end) = (self.start, self.searched + offset);
            self.start = end + 1;
            self.searched = self.start;
            let line = &self.buffer[start..end];
            if line.starts_with(b"data:") {
                start += b"data:".len();
            } else if SKIPPED_FIELDS.iter().any(|field| line.starts_with(field)) {
                continue;
            }
            if self.buffer[start..end].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let data = match String::from_utf8_lossy(&self.buffer[start..end]) {
                Cow::Borrowed(text) => text,
                Cow::Owned(text) => {
                    self.repaired = text;
                    &self.repaired
                }
            };
            return Some(SseEvent { name: "", data: data.trim() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_chunking() {
        let bytes = "{\"a\":\"ü\"}\r\n\n  \n{\"b\":1}".as_bytes();
        for cut in 0..=bytes.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in [&bytes[..cut], &bytes[cut..]] {
                lines.push(piece).unwrap();
                while let Some(event) = lines.next_event() {
                    found.push(event.data.to_owned());
                }
            }
            assert_eq!(found, [r#"{"a":"ü"}"#], "cut at {cut}");
            lines.finish();
            assert_eq!(lines.next_event().map(|event| event.data), Some(r#"{"b":1}"#));
        }
    }
}
