//! How events are cut out of the bytes of a response: server-sent events, JSON lines, AWS frames or one document.
//!
//! Invariant: the events do not depend on how the network cut the bytes; no event may grow without bound.

pub mod event_stream;
pub mod lines;

use crate::fault::{Fault, FaultKind};
use event_stream::Frames;
use lines::{LIMIT, Lines};
use rpc::sse::{EventTooLarge, SseEvent, SseParser};

#[derive(Debug)]
pub enum Framing {
    Sse(SseParser),
    Lines(Lines),
    Frames(Frames),
    /// One JSON document: the server does not stream, or answers with an error.
    Document {
        text: Vec<u8>,
        ended: bool,
        given: bool,
    },
}

impl Framing {
    pub fn sse() -> Self {
        Self::Sse(SseParser::default())
    }

    pub fn document() -> Self {
        Self::Document { text: Vec::new(), ended: false, given: false }
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Sse(sse) => sse.push(bytes).map_err(too_large),
            Self::Lines(lines) => lines.push(bytes).map_err(too_large),
            Self::Frames(frames) => frames.push(bytes).map_err(too_large),
            Self::Document { text, .. } => {
                if text.len() + bytes.len() > LIMIT {
                    return Err(too_large(EventTooLarge));
                }
                text.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// No more bytes come.
    pub fn finish(&mut self) {
        match self {
            Self::Sse(sse) => sse.finish(),
            Self::Lines(lines) => lines.finish(),
            Self::Frames(_) => {}
            Self::Document { ended, .. } => *ended = true,
        }
    }

    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, Fault> {
        match self {
            Self::Sse(sse) => Ok(sse.next_event()),
            Self::Lines(lines) => Ok(lines.next_event()),
            Self::Frames(frames) => frames.next_event(),
            Self::Document { text, ended, given } => {
                if !*ended || std::mem::replace(given, true) {
                    return Ok(None);
                }
                let data = std::str::from_utf8(text)
                    .map_err(|_| Fault::new(FaultKind::Malformed, "the answer is not text"))?;
                Ok(Some(SseEvent { name: "", data }))
            }
        }
    }
}

fn too_large(_: EventTooLarge) -> Fault {
    Fault::new(FaultKind::Malformed, "one event of the stream is larger than 64 MiB")
}
