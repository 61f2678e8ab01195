//! AWS event streams: binary frames with headers, a JSON payload and two checksums.
//!
//! `[length][length of headers][crc of these][headers][payload][crc of all before]`, numbers in network order.
//! Invariant: a frame whose checksum is wrong is never read.

use super::lines::LIMIT;
use crate::fault::{Fault, FaultKind};
use rpc::sse::{EventTooLarge, SseEvent};

const PRELUDE: usize = 12;
const SMALLEST: usize = PRELUDE + 4;

#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    start: usize,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.len() + bytes.len() > LIMIT {
            return Err(EventTooLarge);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole frame as an event: its name is the event's or exception's type.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, Fault> {
        let rest = &self.buffer[self.start..];
        if rest.len() < PRELUDE {
            return Ok(None);
        }
        let (total, headers) = (number(rest, 0) as usize, number(rest, 4) as usize);
        if number(rest, 8) != crc32fast::hash(&rest[..8]) {
            return Err(broken("a frame's prelude has a wrong checksum"));
        }
        if total < SMALLEST + headers || total > LIMIT {
            return Err(broken("a frame has an impossible length"));
        }
        if rest.len() < total {
            return Ok(None);
        }
        if number(rest, total - 4) != crc32fast::hash(&rest[..total - 4]) {
            return Err(broken("a frame has a wrong checksum"));
        }
        let from = self.start;
        self.start += total;
        let frame = &self.buffer[from..from + total];
        let name = event_name(&frame[PRELUDE..PRELUDE + headers])?;
        let data = std::str::from_utf8(&frame[PRELUDE + headers..total - 4])
            .map_err(|_| broken("a frame's payload is not text"))?;
        Ok(Some(SseEvent { name, data }))
    }
}

/// `:event-type` or `:exception-type` (or `:error-code`) of the headers.
fn event_name(mut headers: &[u8]) -> Result<&str, Fault> {
    let bad = || broken("a frame's headers cannot be read");
    let mut found = "";
    while let Some((&length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at_checked(length as usize).ok_or_else(bad)?;
        let (&kind, rest) = rest.split_first().ok_or_else(bad)?;
        let size = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => 2 + rest.first_chunk().map(|bytes| u16::from_be_bytes(*bytes)).ok_or_else(bad)? as usize,
            9 => 16,
            _ => return Err(bad()),
        };
        let (value, rest) = rest.split_at_checked(size).ok_or_else(bad)?;
        if kind == 7 && matches!(name, b":event-type" | b":exception-type" | b":error-code") {
            found = std::str::from_utf8(&value[2..]).map_err(|_| bad())?;
        }
        headers = rest;
    }
    Ok(found)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn broken(why: &str) -> Fault {
    Fault::new(FaultKind::Network, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend_from_slice(name.as_bytes());
            head.push(7);
            head.extend_from_slice(&(value.len() as u16).to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let total = (SMALLEST + head.len() + payload.len()) as u32;
        let mut out = total.to_be_bytes().to_vec();
        out.extend_from_slice(&(head.len() as u32).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(payload.as_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    fn all(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, Fault> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in pieces {
            frames.push(piece).unwrap();
            while let Some(event) = frames.next_event()? {
                found.push((event.name.to_owned(), event.data.to_owned()));
            }
        }
        Ok(found)
    }

    fn two() -> Vec<u8> {
        let mut bytes =
            frame(&[(":message-type", "event"), (":event-type", "messageStart")], r#"{"role":"assistant"}"#);
        bytes.extend(frame(
            &[(":message-type", "exception"), (":exception-type", "throttlingException")],
            r#"{"message":"ü"}"#,
        ));
        bytes
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let bytes = two();
        let expected = vec![
            ("messageStart".to_owned(), r#"{"role":"assistant"}"#.to_owned()),
            ("throttlingException".to_owned(), r#"{"message":"ü"}"#.to_owned()),
        ];
        for cut in 0..=bytes.len() {
            assert_eq!(all(&[&bytes[..cut], &bytes[cut..]]), Ok(expected.clone()));
        }
        assert_eq!(all(&bytes.chunks(1).collect::<Vec<_>>()), Ok(expected));
    }

    #[test]
    fn a_changed_byte_is_noticed_everywhere() {
        let bytes = two();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            let read = all(&[&bad]);
            assert!(read.as_ref().map_or(true, |events| events.len() < 2), "byte {at}: {read:?}");
        }
    }

    /// The frame of the format's public description: an empty payload with one header of each size.
    #[test]
    fn headers_of_every_type_are_skipped() {
        let mut head = Vec::new();
        for (kind, value) in [
            (0u8, &b""[..]),
            (1, b""),
            (2, b"\x01"),
            (3, b"\x01\x02"),
            (4, b"\0\0\0\x01"),
            (5, b"\0\0\0\0\0\0\0\x01"),
            (6, b"\0\x02ab"),
            (8, b"\0\0\0\0\0\0\0\x01"),
            (9, b"0123456789abcdef"),
            (7, b"\0\x02hi"),
        ] {
            head.extend_from_slice(b"\x01h");
            head.push(kind);
            head.extend_from_slice(value);
        }
        head.extend_from_slice(b"\x0b:event-type\x07\0\x01x");
        assert_eq!(event_name(&head), Ok("x"));
        for cut in 1..head.len() {
            let _ = event_name(&head[..cut]);
        }
        assert!(event_name(b"\x01h\x0b").is_err());
    }
}
