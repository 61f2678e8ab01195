//! Recorded streams: each file of `recorded/` holds a stream and the events it must give, however its bytes are cut.
//!
//! A file begins with the format's name, and `document` where the answer is not streamed; `=== events` separates the stream from the expectation; `\n` ends become CRLF
//! in a second pass. `DRAGOMAN_BLESS=1` writes the expectations anew, to be read before they are committed.

use std::path::Path;

use domain::model::ModelEvent;
use llm::Api;
use llm::format::{Decode, Events};
use llm::framing::Framing;

use crate::support::{line, prompt, with_target};

fn decoder(api: Api) -> Box<dyn Decode> {
    with_target(api, "fake/model", |target| api.decoder(&prompt("x"), target))
}

/// The first line of a file.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) api: Api,
    is_document: bool,
}

impl Kind {
    pub(crate) fn parse(head: &str) -> Self {
        let (api, rest) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
        let api = Api::parse(api).unwrap_or_else(|| panic!("there is no format {api}"));
        Self { api, is_document: rest == "document" }
    }

    pub(crate) fn framing(self) -> Framing {
        if self.is_document { Framing::document() } else { self.api.framing() }
    }
}

/// The events of a stream that comes in these pieces.
fn decode(kind: Kind, pieces: &[&[u8]]) -> Vec<String> {
    let (mut framing, mut decoder, mut out) = (kind.framing(), decoder(kind.api), Events::new());
    let mut fault = None;
    let mut take = |framing: &mut Framing, decoder: &mut dyn Decode, out: &mut Events| {
        while let Some(event) = framing.next_event().unwrap() {
            if let Err(said) = decoder.push(event, out)
                && fault.is_none()
            {
                fault = Some(format!("fault {:?}: {}", said.kind, said.message));
            }
        }
    };
    for piece in pieces {
        framing.push(piece).unwrap();
        take(&mut framing, decoder.as_mut(), &mut out);
    }
    framing.finish();
    take(&mut framing, decoder.as_mut(), &mut out);
    let whole = decoder.finish(&mut out);
    let ended = matches!(out.back(), Some(ModelEvent::Ended { .. }));
    assert_eq!(whole, ended, "an answer is whole exactly when it said so");
    let mut lines: Vec<_> = out.iter().map(line).collect();
    lines.extend(fault);
    if !ended {
        lines.push("unfinished".to_owned());
    }
    lines
}

/// The stream's bytes, with LF and with CRLF. Frames are written in files as `name {json}`, a line each.
pub(crate) fn bytes_of(api: Api, stream: &str) -> (Vec<u8>, Vec<u8>) {
    if api != Api::Bedrock {
        return (stream.as_bytes().to_vec(), stream.replace('\n', "\r\n").into_bytes());
    }
    let mut out = Vec::new();
    for line in stream.lines() {
        let (name, payload) = line.split_once(' ').unwrap();
        testkit::fake_model::aws_frame(name, payload, &mut out);
    }
    (out.clone(), out)
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    let kind = Kind::parse(head);
    let (stream, expected) = rest.split_once("=== events\n").unwrap_or((rest, ""));
    let (stream, ends) = bytes_of(kind.api, stream);
    let whole = decode(kind, &[&stream]);
    if std::env::var_os("DRAGOMAN_BLESS").is_some() {
        let source = rest.split("=== events\n").next().unwrap();
        let blessed = format!("{head}\n{source}=== events\n{}\n", whole.join("\n"));
        std::fs::write(path, blessed).unwrap();
        return;
    }
    let name = path.display();
    assert_eq!(whole.join("\n"), expected.trim_end(), "{name}");
    for bytes in [&stream, &ends] {
        // A decoder sees events alone, so it is enough that these are the same for every cut.
        let events = cut_out(kind, &[bytes]);
        for cut in 0..=bytes.len() {
            assert_eq!(cut_out(kind, &[&bytes[..cut], &bytes[cut..]]), events, "{name} cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(decode(kind, &single), whole, "{name} byte by byte");
    }
}

/// Names and data of the events of a stream.
fn cut_out(kind: Kind, pieces: &[&[u8]]) -> Vec<String> {
    let (mut framing, mut events) = (kind.framing(), Vec::new());
    for piece in pieces {
        framing.push(piece).unwrap();
        while let Some(event) = framing.next_event().unwrap() {
            events.push(format!("{} {}", event.name, event.data));
        }
    }
    framing.finish();
    while let Some(event) = framing.next_event().unwrap() {
        events.push(format!("{} {}", event.name, event.data));
    }
    events
}

#[test]
fn recorded_streams_give_the_same_events_however_they_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let odd = paths.iter().filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("odd-"));
    assert!(odd.count() >= 40 && paths.len() >= 100, "recordings are missing");
    for path in paths {
        check(&path);
    }
}

/// Random numbers that are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }

    /// Some bytes changed, left out or said twice.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.roll(6) {
            let at = self.roll(bytes.len());
            match self.roll(4) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = self.roll(256) as u8,
                2 if at < bytes.len() => {
                    let end = (at + self.roll(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let end = (at + self.roll(40)).min(bytes.len());
                    let piece = bytes[at.min(end)..end].to_vec();
                    let place = self.roll(bytes.len() + 1);
                    bytes.splice(place..place, piece);
                }
            }
        }
    }
}

#[test]
fn no_stream_however_broken_breaks_a_decoder() {
    let scale: usize =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        let api = Kind::parse(head).api;
        let (stream, _) = bytes_of(api, rest.split("=== events\n").next().unwrap());
        for _ in 0..scale * 40 {
            let mut bytes = stream.clone();
            dice.mutate(&mut bytes);
            // As another format too: a url may lead anywhere.
            let api = if dice.roll(4) == 0 { Api::ALL[dice.roll(Api::ALL.len())] } else { api };
            survive(api, &bytes, dice.roll(2) == 0);
        }
    }
}

/// Reads to the end or to the first fault. The start of a block comes before its other events.
fn survive(api: Api, bytes: &[u8], text_tool_calls: bool) {
    let mut decoder = with_target(api, "fake/model", |target| {
        let dialect = llm::format::Dialect { text_tool_calls, ..target.dialect };
        api.decoder(&prompt("x"), &llm::format::Target { dialect, ..target.clone() })
    });
    let (mut framing, mut out) = (api.framing(), Events::new());
    let mut read = || -> Result<(), llm::fault::Fault> {
        framing.push(bytes)?;
        framing.finish();
        while let Some(event) = framing.next_event()? {
            decoder.push(event, &mut out)?;
        }
        decoder.finish(&mut out);
        Ok(())
    };
    let _ = read();
    let mut started = std::collections::HashSet::new();
    for event in &out {
        match event {
            ModelEvent::BlockStarted { block, .. } => {
                assert!(started.insert(*block), "block {block} began twice")
            }
            ModelEvent::BlockDelta { block, .. } => {
                assert!(started.contains(block), "block {block} did not begin")
            }
            ModelEvent::BlockEnded { block, .. } => {
                assert!(started.contains(block), "block {block} did not begin")
            }
            ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused
            | ModelEvent::Usage(_)
            | ModelEvent::Ended { .. } => {}
        }
    }
}
