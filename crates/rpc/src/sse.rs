//! Parses server-sent events from bytes that arrive in any pieces.
//!
//! Owns the line and event rules of the format (CR, LF or CRLF, comments, a value without a space, several data
//! lines, the last event id and the retry time). Knows nothing of the contents of an event and does no IO. Invariants:
//! the events do not depend on how the bytes were cut; an event is borrowed from the buffer and copied only when it has
//! several data lines or is not UTF-8.

use std::borrow::Cow;
use std::ops::Range;

/// One event: `name` is empty where the stream gave none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SseEvent<'a> {
    pub name: &'a str,
    pub data: &'a str,
}

/// The stream sent one event that is larger than the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventTooLarge;

/// An incremental parser: [`SseParser::push`] bytes, then take events with [`SseParser::next_event`] until it has none.
#[derive(Debug)]
pub struct SseParser {
    buffer: Vec<u8>,
    /// Where the unfinished event begins; everything before it is spent.
    event: usize,
    /// Where the unfinished line begins, and how far it was already searched for its end.
    line: usize,
    searched: usize,
    /// The last line ended with CR: a LF right after it belongs to it.
    after_cr: bool,
    /// Ranges of the unfinished event, relative to `event`.
    name: Range<usize>,
    data: Range<usize>,
    data_lines: usize,
    /// Joined data of an event with several data lines, and text that was not UTF-8.
    joined: String,
    repaired: String,
    begun: bool,
    /// The id of the unfinished event, relative to `event`, and the id of the last finished one.
    pending_id: Option<Range<usize>>,
    last_id: Option<String>,
    retry: Option<u64>,
    limit: usize,
}

/// The byte order mark that some servers send first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl SseParser {
    /// A parser that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            event: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            name: 0..0,
            data: 0..0,
            data_lines: 0,
            joined: String::new(),
            repaired: String::new(),
            begun: false,
            pending_id: None,
            last_id: None,
            retry: None,
            limit,
        }
    }

    /// Adds bytes as they came from the network.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.event > 0 {
            self.buffer.drain(..self.event);
            self.line -= self.event;
            self.searched -= self.event;
            self.event = 0;
        }
        if self.buffer.len() + bytes.len() > self.limit {
            return Err(EventTooLarge);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream ended: an event that its server did not finish with an empty line counts all the same.
    pub fn finish(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
    }

    /// The next whole event, if its last byte has come.
    pub fn next_event(&mut self) -> Option<SseEvent<'_>> {
        loop {
            let mut line = self.next_line()?;
            if !std::mem::replace(&mut self.begun, true)
                && self.buffer[line.clone()].starts_with(BYTE_ORDER_MARK)
            {
                line.start += BYTE_ORDER_MARK.len();
            }
            if !line.is_empty() {
                self.field(line);
                continue;
            }
            let start = std::mem::replace(&mut self.event, self.line);
            self.keep_id(start);
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            if std::mem::take(&mut self.data_lines) == 0 {
                continue;
            }
            return Some(self.event_at(start, name, data));
        }
    }

    /// The id of the last finished event that had one: where a stream is resumed.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The milliseconds that the server asks clients to wait before they reconnect.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn keep_id(&mut self, start: usize) {
        if let Some(id) = self.pending_id.take() {
            let id = String::from_utf8_lossy(&self.buffer[start..][id]);
            let last = self.last_id.get_or_insert_default();
            last.clear();
            last.push_str(&id);
        }
    }

    fn event_at(&mut self, start: usize, name: Range<usize>, data: Range<usize>) -> SseEvent<'_> {
        let buffer = &self.buffer[start..];
        let name = std::str::from_utf8(&buffer[name]).unwrap_or("");
        if !self.joined.is_empty() {
            self.repaired = std::mem::take(&mut self.joined);
            return SseEvent { name, data: &self.repaired };
        }
        let data = match String::from_utf8_lossy(&buffer[data]) {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                self.repaired = text;
                &self.repaired
            }
        };
        SseEvent { name, data }
    }

    /// The range of the next whole line without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr && self.line < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.line] == b'\n' {
                let fresh = self.event == self.line;
                self.line += 1;
                self.searched = self.searched.max(self.line);
                if fresh {
                    self.event = self.line;
                }
            }
        }
        match memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) {
            Some(offset) => {
                let end = self.searched + offset;
                self.after_cr = self.buffer[end] == b'\r';
                let line = self.line..end;
                self.line = end + 1;
                self.searched = self.line;
                Some(line)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn field(&mut self, line: Range<usize>) {
        let bytes = &self.buffer[line.clone()];
        let (field, mut value) = match memchr::memchr(b':', bytes) {
            Some(0) => return,
            Some(colon) => (&bytes[..colon], line.start + colon + 1..line.end),
            None => (bytes, line.end..line.end),
        };
        if self.buffer.get(value.start) == Some(&b' ') && !value.is_empty() {
            value.start += 1;
        }
        let relative = value.start - self.event..value.end - self.event;
        match field {
            b"data" => {
                self.data_lines += 1;
                if self.data_lines == 1 {
                    self.data = relative;
                } else {
                    self.join(relative);
                }
            }
            b"event" => self.name = relative,
            b"id" => self.pending_id = Some(relative),
            b"retry" => self.retry = text(&self.buffer[value]).and_then(|text| text.parse().ok()),
            _ => {}
        }
    }

    fn join(&mut self, next: Range<usize>) {
        let event = &self.buffer[self.event..];
        if self.data_lines == 2 {
            self.joined.push_str(&String::from_utf8_lossy(&event[self.data.clone()]));
        }
        self.joined.push('\n');
        self.joined.push_str(&String::from_utf8_lossy(&event[next]));
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut found = Vec::new();
        let mut take = |parser: &mut SseParser| {
            while let Some(event) = parser.next_event() {
                found.push((event.name.to_owned(), event.data.to_owned()));
            }
        };
        for piece in pieces {
            parser.push(piece).unwrap();
            take(&mut parser);
        }
        parser.finish();
        take(&mut parser);
        found
    }

    /// The events are the same for every place where the bytes are cut, in two pieces and byte by byte.
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(n, d)| (n.to_string(), d.to_string())).collect();
        for ends in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ends);
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                assert_eq!(all(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut} of {text:?}");
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(all(&single), expected, "byte by byte {text:?}");
        }
    }

    #[test]
    fn events_do_not_depend_on_chunking() {
        check("data: one\n\ndata: two\n\n", &[("", "one"), ("", "two")]);
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check("data:no space\n\ndata:  two spaces\n\n", &[("", "no space"), ("", " two spaces")]);
        check(": keep-alive\n\n: again\ndata: x\n\n", &[("", "x")]);
        check("data: a\ndata: b\ndata: c\n\n", &[("", "a\nb\nc")]);
        check("data: a\ndata\n\n", &[("", "a\n")]);
        check("id: 7\nretry: 10\nunknown: y\ndata: grüße 🦀\n\n", &[("", "grüße 🦀")]);
        check("event: lost\n\ndata: x\n\n", &[("", "x")]);
        check("\u{feff}data: bom\n\n", &[("", "bom")]);
        check("data: unfinished", &[("", "unfinished")]);
        check("data:\n\n", &[("", "")]);
        check("\n\n\n", &[]);
    }

    #[test]
    fn the_last_id_and_the_retry_time_are_kept_however_the_bytes_are_cut() {
        let text = "id: 7\nretry: 10\ndata:\n\nid: 8\n\ndata: x\n\nid: unfinished\ndata: y";
        for ends in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ends);
            for cut in 0..=text.len() {
                let mut parser = SseParser::default();
                let mut seen = Vec::new();
                for piece in [&text[..cut], &text[cut..]] {
                    parser.push(piece.as_bytes()).unwrap();
                    while let Some(event) = parser.next_event() {
                        let data = event.data.to_owned();
                        seen.push((data, parser.last_event_id().map(str::to_owned), parser.retry()));
                    }
                }
                let expected = [("", "7"), ("x", "8")]
                    .map(|(data, id)| (data.to_owned(), Some(id.to_owned()), Some(10)));
                assert_eq!(seen, expected, "cut at {cut} of {text:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_not_fatal() {
        assert_eq!(all(&[b"data: a\xffb\n\n"]), [(String::new(), "a\u{fffd}b".to_owned())]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut parser = SseParser::with_limit(100);
        assert_eq!(parser.push(&[b'x'; 60]), Ok(()));
        assert_eq!(parser.next_event(), None);
        assert_eq!(parser.push(&[b'x'; 60]), Err(EventTooLarge));
    }
}
