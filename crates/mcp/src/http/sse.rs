//! Server-sent events from bytes in any pieces: data, id and retry of each event.
//!
//! Invariant: the events do not depend on how the bytes were cut; no more than one event is held.

/// One event. `data` is empty where an event only sets the id.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct Event {
    pub name: String,
    pub data: Vec<u8>,
    pub id: Option<String>,
    pub retry: Option<u64>,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) struct TooLarge;

pub(super) struct Sse {
    limit: usize,
    line: Vec<u8>,
    event: Event,
    data_lines: usize,
    /// The last line ended with CR: a LF right after it belongs to it.
    after_cr: bool,
}

impl Sse {
    /// A parser that refuses events of more than `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, line: Vec::new(), event: Event::default(), data_lines: 0, after_cr: false }
    }

    /// Takes bytes as they came and appends the events that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        if std::mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.grow(&bytes[..at])?;
            let cr = bytes[at] == b'\r';
            bytes = &bytes[at + 1..];
            if cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            self.end_line(events);
        }
        self.grow(bytes)
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + self.event.data.len() + bytes.len() > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        if line.is_empty() {
            self.data_lines = 0;
            let event = std::mem::take(&mut self.event);
            if event != Event::default() {
                events.push(event);
            }
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                if self.data_lines > 0 {
                    self.event.data.push(b'\n');
                }
                self.data_lines += 1;
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.name = text(),
            b"id" => self.event.id = Some(text()),
            b"retry" => self.event.retry = text().parse().ok(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let mut sse = Sse::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            sse.push(piece, &mut events).unwrap();
        }
        events
    }

    #[test]
    fn events_do_not_depend_on_chunking() {
        let text = ": hi\nid: 7\nretry: 10\ndata:\n\nevent: message\ndata: {\"a\":\ndata: 1}\n\ndata: lost";
        let event = |name: &str, data: &str, id: Option<&str>, retry| Event {
            name: name.into(),
            data: data.into(),
            id: id.map(str::to_owned),
            retry,
        };
        let expected = [event("", "", Some("7"), Some(10)), event("message", "{\"a\":\n1}", None, None)];
        for ends in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ends);
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                assert_eq!(events(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut} of {text:?}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(&single), expected, "byte by byte {text:?}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut sse = Sse::new(100);
        let mut events = Vec::new();
        assert_eq!(sse.push(&[b'x'; 60], &mut events), Ok(()));
        assert_eq!(sse.push(&[b'x'; 60], &mut events), Err(TooLarge));
        let mut sse = Sse::new(100);
        assert_eq!(sse.push(b"data: ", &mut events), Ok(()));
        assert!((0..20).any(|_| sse.push(b"123456789\ndata: ", &mut events).is_err()));
    }
}
