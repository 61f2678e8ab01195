//! Recorded streams: each file of `recorded/` holds a stream and the events it must give, however its bytes are cut.
//!
//! A file begins with the format's name; `=== events` separates the stream from the expectation; `\n` ends become CRLF
//! in a second pass. `DRAGOMAN_BLESS=1` writes the expectations anew, to be read before they are committed.

use std::path::Path;

use domain::model::ModelEvent;
use llm::Api;
use llm::format::{Decode, Events};
use llm::sse::Sse;

use crate::support::{line, prompt, with_target};

fn decoder(api: Api) -> Box<dyn Decode> {
    with_target(api, "fake/model", |target| api.decoder(&prompt("x"), target))
}

/// The events of a stream that comes in these pieces.
fn decode(api: Api, pieces: &[&[u8]]) -> Vec<String> {
    let (mut sse, mut decoder, mut out) = (Sse::default(), decoder(api), Events::new());
    let mut fault = None;
    let mut take = |sse: &mut Sse, decoder: &mut dyn Decode, out: &mut Events| {
        while let Some(event) = sse.next_event() {
            if let Err(said) = decoder.push(event, out)
                && fault.is_none()
            {
                fault = Some(format!("fault {:?}: {}", said.kind, said.message));
            }
        }
    };
    for piece in pieces {
        sse.push(piece).unwrap();
        take(&mut sse, decoder.as_mut(), &mut out);
    }
    sse.finish();
    take(&mut sse, decoder.as_mut(), &mut out);
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

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    let api = Api::parse(head.trim()).unwrap_or_else(|| panic!("{}: no format {head}", path.display()));
    let (stream, expected) = rest.split_once("=== events\n").unwrap_or((rest, ""));
    let whole = decode(api, &[stream.as_bytes()]);
    if std::env::var_os("DRAGOMAN_BLESS").is_some() {
        let blessed = format!("{head}\n{stream}=== events\n{}\n", whole.join("\n"));
        std::fs::write(path, blessed).unwrap();
        return;
    }
    let name = path.display();
    assert_eq!(whole.join("\n"), expected.trim_end(), "{name}");
    for stream in [stream.to_owned(), stream.replace('\n', "\r\n")] {
        let bytes = stream.as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(decode(api, &[&bytes[..cut], &bytes[cut..]]), whole, "{name} cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(decode(api, &single), whole, "{name} byte by byte");
    }
}

#[test]
fn recorded_streams_give_the_same_events_however_they_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 20, "the recordings are missing");
    for path in paths {
        check(&path);
    }
}
