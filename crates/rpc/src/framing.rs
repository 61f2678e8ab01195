//! Bytes ↔ frames, both framings, without IO and without looking into a message.
//!
//! Invariants: the decoder holds at most one unfinished message plus one read; a message over the limit is skipped, not
//! held; after anything unreadable it finds the next message; what the encoder writes is exact.

use std::ops::Range;

/// How messages are separated on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length: N`, a blank line, N bytes.
    Header,
    /// One message per line.
    Newline,
}

/// What the decoder found next.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Message(&'a [u8]),
    /// A message that is not read; `head` holds its first bytes where they are known.
    Refused {
        refusal: Refusal,
        head: &'a [u8],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    TooLarge,
    Charset,
    /// The header block has no usable Content-Length.
    Header,
}

/// An incremental decoder: read into [`space`](Decoder::space), say how much with [`filled`](Decoder::filled), then take
/// frames until there are none.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    state: DecoderState,
    /// Initialized throughout; `start..end` is what was read and not yet taken.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line end lies before this index.
    scanned: usize,
}

#[derive(Clone, Copy, Debug)]
enum DecoderState {
    Line,
    SkipLine,
    Header(HeaderBlock),
    Body(usize),
    Refuse(Refusal, u64),
    Skip(u64),
    /// After an unreadable header block: look for the next `Content-Length:`.
    Search,
}

#[derive(Clone, Copy, Debug, Default)]
struct HeaderBlock {
    length: Option<u64>,
    broken: bool,
    foreign_charset: bool,
    size: usize,
}

enum Step {
    NeedBytes,
    Again,
    Message(Range<usize>),
    Refused(Refusal, Range<usize>),
}

/// How much room a read gets at least.
pub const CHUNK: usize = 32 << 10;
/// How much of a refused message is shown.
const HEAD: usize = 1024;
const HEADER_BLOCK_LIMIT: usize = 8 << 10;
const LENGTH_NAME: &[u8] = b"content-length:";
/// More digits than this are a mistake, not a length worth skipping.
const LENGTH_DIGITS: usize = 15;
/// With its white space; a longer one is not believed when looking for the next header.
const LENGTH_VALUE: usize = 64;

impl Decoder {
    pub fn new(framing: Framing, limit: usize) -> Decoder {
        let state = match framing {
            Framing::Header => DecoderState::Header(HeaderBlock::default()),
            Framing::Newline => DecoderState::Line,
        };
        Decoder { limit, state, buffer: Vec::new(), start: 0, end: 0, scanned: 0 }
    }

    /// Room for the next read, at least [`CHUNK`] bytes. Call it only after `next_frame` returned `None`.
    pub fn space(&mut self) -> &mut [u8] {
        let held = self.end - self.start;
        if held == 0 || self.buffer.len() - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            self.scanned = self.scanned.saturating_sub(self.start);
            (self.start, self.end) = (0, held);
        }
        let expected = match self.state {
            DecoderState::Body(length) => length,
            DecoderState::Line => self.limit,
            DecoderState::SkipLine
            | DecoderState::Header(_)
            | DecoderState::Refuse(..)
            | DecoderState::Skip(_)
            | DecoderState::Search => 0,
        };
        // Doubles while a message grows, but never reaches further than its known or allowed size.
        let wanted = (held + held.max(CHUNK)).min(expected.saturating_add(CHUNK)).max(held + CHUNK);
        let length = self.buffer.len();
        if length - self.end < CHUNK {
            self.buffer.reserve_exact(wanted.saturating_sub(length));
            self.buffer.resize(wanted, 0);
        } else if self.start == 0 && length > wanted.saturating_mul(4).max(1 << 20) {
            self.buffer.truncate(wanted);
            self.buffer.shrink_to_fit();
        }
        &mut self.buffer[self.end..]
    }

    /// Says that `count` bytes of the last `space` were filled.
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// The next frame, or `None` until more bytes are there.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            match self.step() {
                Step::NeedBytes => return None,
                Step::Again => {}
                Step::Message(range) => return Some(Frame::Message(&self.buffer[range])),
                Step::Refused(refusal, range) => {
                    return Some(Frame::Refused { refusal, head: &self.buffer[range] });
                }
            }
        }
    }

    /// At the end of the input: a last line that lacks its newline.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let rest = self.start..self.end;
        self.start = self.end;
        let line =
            matches!(self.state, DecoderState::Line) && !self.buffer[rest.clone()].trim_ascii().is_empty();
        line.then(|| Frame::Message(&self.buffer[rest]))
    }

    /// The memory it holds.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    fn step(&mut self) -> Step {
        let held = self.end - self.start;
        match self.state {
            DecoderState::Line => self.step_line(),
            DecoderState::SkipLine => match self.take_line() {
                Some(_) => self.enter(DecoderState::Line),
                None => self.discard(held),
            },
            DecoderState::Header(header) => self.step_header(header),
            DecoderState::Body(length) if held < length => Step::NeedBytes,
            DecoderState::Body(length) => {
                let body = self.take(length);
                self.state = DecoderState::Header(HeaderBlock::default());
                Step::Message(body)
            }
            DecoderState::Refuse(refusal, length) => {
                let head = length.min(HEAD as u64) as usize;
                if held < head {
                    return Step::NeedBytes;
                }
                self.state = DecoderState::Skip(length - head as u64);
                Step::Refused(refusal, self.take(head))
            }
            DecoderState::Skip(0) => self.enter(DecoderState::Header(HeaderBlock::default())),
            DecoderState::Skip(left) => {
                let skipped = left.min(held as u64);
                self.state = DecoderState::Skip(left - skipped);
                if skipped == 0 { Step::NeedBytes } else { self.skip(skipped as usize) }
            }
            DecoderState::Search => self.step_search(),
        }
    }

    fn step_line(&mut self) -> Step {
        // The line end may still turn out to be two bytes.
        let half_end = usize::from(self.buffer[self.start..self.end].ends_with(b"\r"));
        let line = match self.take_line() {
            Some(line) => line,
            None if self.end - self.start - half_end <= self.limit => return Step::NeedBytes,
            None => {
                self.state = DecoderState::SkipLine;
                self.take(self.end - self.start)
            }
        };
        if line.len() > self.limit {
            return Step::Refused(Refusal::TooLarge, line.start..line.start + HEAD.min(line.len()));
        }
        if self.buffer[line.clone()].trim_ascii().is_empty() { Step::Again } else { Step::Message(line) }
    }

    fn step_header(&mut self, mut header: HeaderBlock) -> Step {
        let Some(line) = self.take_line() else {
            return if header.size + self.end - self.start > HEADER_BLOCK_LIMIT {
                self.lose_track()
            } else {
                Step::NeedBytes
            };
        };
        let first = header.size == 0;
        let line_start = line.start;
        header.size += line.len() + 1;
        let text = &self.buffer[line];
        if text.is_empty() {
            // A blank line before any header is left over from the message before.
            return if first { Step::Again } else { self.enter_body(header) };
        }
        header.read_line(text);
        if header.size > HEADER_BLOCK_LIMIT || (header.broken && header.length.is_none()) {
            // The rest of a body may precede a good header on the same line.
            self.start = line_start;
            return self.lose_track();
        }
        self.enter(DecoderState::Header(header))
    }

    fn enter_body(&mut self, header: HeaderBlock) -> Step {
        match header.length {
            Some(length) if !header.broken => self.enter(if length > self.limit as u64 {
                DecoderState::Refuse(Refusal::TooLarge, length)
            } else if header.foreign_charset {
                DecoderState::Refuse(Refusal::Charset, length)
            } else {
                DecoderState::Body(length as usize)
            }),
            _ => self.lose_track(),
        }
    }

    fn lose_track(&mut self) -> Step {
        self.state = DecoderState::Search;
        Step::Refused(Refusal::Header, 0..0)
    }

    fn step_search(&mut self) -> Step {
        let held = &self.buffer[self.start..self.end];
        let Some(at) =
            held.windows(LENGTH_NAME.len()).position(|name| name.eq_ignore_ascii_case(LENGTH_NAME))
        else {
            return self.discard(held.len().saturating_sub(LENGTH_NAME.len() - 1));
        };
        let value = &held[at + LENGTH_NAME.len()..];
        match value.iter().position(|byte| *byte == b'\n') {
            Some(end) if end <= LENGTH_VALUE && parse_length(&value[..end]).is_some() => {
                self.state = DecoderState::Header(HeaderBlock::default());
                self.skip(at)
            }
            None if value.len() <= LENGTH_VALUE => self.discard(at),
            _ => self.skip(at + LENGTH_NAME.len()),
        }
    }

    /// The next line without its end, if all of it is there.
    fn take_line(&mut self) -> Option<Range<usize>> {
        let from = self.scanned.max(self.start);
        match self.buffer[from..self.end].iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let mut line = self.take(from + at + 1 - self.start);
                line.end -= 1;
                if self.buffer[line.clone()].ends_with(b"\r") {
                    line.end -= 1;
                }
                Some(line)
            }
            None => {
                self.scanned = self.end;
                None
            }
        }
    }

    fn take(&mut self, count: usize) -> Range<usize> {
        let start = self.start;
        self.start += count;
        start..self.start
    }

    fn skip(&mut self, count: usize) -> Step {
        self.start += count;
        Step::Again
    }

    fn discard(&mut self, count: usize) -> Step {
        self.start += count;
        Step::NeedBytes
    }

    fn enter(&mut self, state: DecoderState) -> Step {
        self.state = state;
        Step::Again
    }
}

impl HeaderBlock {
    fn read_line(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            self.broken |= self.length.is_none();
            return;
        };
        let (name, value) = (line[..colon].trim_ascii(), &line[colon + 1..]);
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = parse_length(value);
            self.broken |= length.is_none() || self.length.is_some_and(|earlier| Some(earlier) != length);
            self.length = length;
        } else if name.eq_ignore_ascii_case(b"content-type") {
            self.foreign_charset |= !is_utf8(value);
        } else if name.is_empty()
            || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        {
            // Not a header at all; with a length already known it does no harm.
            self.broken |= self.length.is_none();
        }
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let plausible = (1..=LENGTH_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    plausible.then(|| digits.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0')))
}

fn is_utf8(content_type: &[u8]) -> bool {
    content_type.split(|byte| *byte == b';').all(|part| {
        let mut halves = part.splitn(2, |byte| *byte == b'=');
        let name = halves.next().unwrap_or_default().trim_ascii();
        let value = halves.next().unwrap_or_default().trim_ascii();
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        !name.eq_ignore_ascii_case(b"charset")
            || value.eq_ignore_ascii_case(b"utf-8")
            || value.eq_ignore_ascii_case(b"utf8")
    })
}

/// Room kept before a body for the header that its length decides.
const HEADER_ROOM: usize = 40;

impl Framing {
    /// Prepares an empty buffer for a body to be written at its end.
    pub(crate) fn open(self, buffer: &mut Vec<u8>) {
        buffer.clear();
        if self == Framing::Header {
            buffer.resize(HEADER_ROOM, 0);
        }
    }

    /// Completes the frame around the body; it then lies in the buffer from the returned index on.
    pub(crate) fn close(self, buffer: &mut Vec<u8>) -> usize {
        match self {
            Framing::Newline => {
                // Raw parameters may hold line ends; outside strings JSON has them as white space only.
                buffer.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
                buffer.push(b'\n');
                0
            }
            Framing::Header => {
                let mut length = buffer.len() - HEADER_ROOM;
                let mut start = HEADER_ROOM;
                let mut put = |bytes: &[u8]| {
                    start -= bytes.len();
                    buffer[start..start + bytes.len()].copy_from_slice(bytes);
                };
                put(b"\r\n\r\n");
                while length > 9 {
                    put(&[b'0' + (length % 10) as u8]);
                    length /= 10;
                }
                put(&[b'0' + length as u8]);
                put(b"Content-Length: ");
                start
            }
        }
    }
}
