//! No character of a stream vanishes: each is shown, or a warning names the content it belongs to.
//!
//! Every recorded stream is changed in ways that real servers are known for: starts and stops that are missing or
//! repeated, unknown events in between, bytes cut anywhere. Its texts are replaced by unique marks, which are looked for
//! in the events that come out.

use std::path::Path;

use domain::model::ModelEvent;
use llm::Api;
use llm::format::{Decode, Dialect, Events, Target};
use serde_json::{Value, json};

use crate::recorded::{Dice, Kind, bytes_of};
use crate::support::{line, prompt, with_target};

/// One event of a stream: its name, its data, and the marks in it.
#[derive(Clone, Debug)]
struct Piece {
    name: String,
    data: String,
    marks: Vec<String>,
}

#[test]
fn no_character_vanishes_without_a_warning() {
    let scale: usize =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded");
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut checked = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        let kind = Kind::parse(head);
        let (stream, _) = bytes_of(kind.api, rest.split("=== events\n").next().unwrap());
        let Some(pieces) = pieces(kind, &stream) else { continue };
        for round in 0..=scale * 10 {
            let mut marks = 0;
            let mut changed: Vec<Piece> =
                pieces.iter().map(|piece| marked(kind.api, piece, &mut marks)).collect();
            if round > 0 && !head.contains("document") {
                changed = vary(kind.api, changed, &mut dice, &mut marks);
            }
            let name = path.file_name().unwrap().to_string_lossy();
            checked += check(&name, kind, &changed, dice.roll(2) == 0, &mut dice);
        }
    }
    assert!(checked > 1_000, "only {checked} marks were looked for");
}

/// The events of a recorded stream; `None` for one whose data is not JSON.
fn pieces(kind: Kind, stream: &[u8]) -> Option<Vec<Piece>> {
    let mut framing = kind.framing();
    framing.push(stream).unwrap();
    framing.finish();
    let mut pieces = Vec::new();
    while let Some(event) = framing.next_event().unwrap() {
        let is_json = serde_json::from_str::<Value>(event.data).is_ok();
        if !is_json && event.data.trim() != "[DONE]" && !event.data.trim().is_empty() {
            return None;
        }
        pieces.push(Piece { name: event.name.to_owned(), data: event.data.to_owned(), marks: Vec::new() });
    }
    Some(pieces)
}

/// Members that hold text of a model, where an event is not a summary of others.
const TEXT_KEYS: [&str; 10] = [
    "text",
    "thinking",
    "partial_json",
    "content",
    "reasoning_content",
    "reasoning_text",
    "arguments",
    "input",
    "response",
    "transcript",
];

fn marked(api: Api, piece: &Piece, count: &mut usize) -> Piece {
    let Ok(mut value) = serde_json::from_str::<Value>(&piece.data) else { return piece.clone() };
    let mut marks = Vec::new();
    if api == Api::OpenAiResponses {
        // Finished items repeat what their deltas brought, and arguments may come only with them.
        let kind = value["type"].as_str().unwrap_or_default();
        let is_text = [
            "response.output_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_text.delta",
        ]
        .contains(&kind);
        if let (true, Some(text)) = (is_text, value.get_mut("delta")) {
            mark(text, count, &mut marks);
        }
    } else if value.get("error").is_none() {
        mark_members(&mut value, false, count, &mut marks);
    }
    Piece { data: value.to_string(), marks, ..piece.clone() }
}

fn mark_members(value: &mut Value, inside: bool, count: &mut usize, marks: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in
                members.iter_mut().filter(|(key, _)| *key != "citation" && *key != "reasoning_details")
            {
                let is_text = TEXT_KEYS.contains(&key.as_str());
                if member.is_string() && (is_text || inside) {
                    mark(member, count, marks);
                } else if !member.is_string() {
                    mark_members(
                        member,
                        inside || ["args", "arguments"].contains(&key.as_str()),
                        count,
                        marks,
                    );
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mark_members(value, inside, count, marks)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces a text by a unique one. Tags stay: they are taken away.
fn mark(text: &mut Value, count: &mut usize, marks: &mut Vec<String>) {
    let old = text.as_str().unwrap_or_default();
    if old.trim().is_empty() || old.contains(['<', '>']) {
        return;
    }
    *count += 1;
    let new = format!("mark{count}.");
    *text = new.clone().into();
    marks.push(new);
}

/// The names of events that begin or end something.
const BOUNDARIES: [&str; 12] = [
    "message_start",
    "content_block_start",
    "content_block_stop",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "messageStart",
    "contentBlockStart",
    "contentBlockStop",
    "message_stop",
];

fn vary(api: Api, pieces: Vec<Piece>, dice: &mut Dice, marks: &mut usize) -> Vec<Piece> {
    let mut varied = Vec::new();
    for piece in pieces {
        let is_boundary =
            BOUNDARIES.iter().any(|name| piece.name == *name || piece.data.contains(&format!("\"{name}\"")));
        match dice.roll(6) {
            0 if is_boundary && piece.marks.is_empty() => {}
            1 if is_boundary && piece.marks.is_empty() => varied.extend([piece.clone(), piece]),
            2 => {
                *marks += 1;
                varied.extend([unknown(api, dice.roll(3), *marks), piece]);
            }
            _ => varied.push(piece),
        }
    }
    varied
}

fn unknown(api: Api, number: usize, mark: usize) -> Piece {
    let mark = format!("mark{mark}.");
    let kind = format!("x_unknown_{number}");
    let data = json!({"type": kind, "index": 7, "something": {"new": [mark]}}).to_string();
    Piece { name: if api == Api::Bedrock { kind } else { String::new() }, data, marks: vec![mark] }
}

/// The bytes of a stream.
fn bytes(kind: Kind, pieces: &[Piece]) -> Vec<u8> {
    if matches!(kind.framing(), llm::framing::Framing::Document { .. }) {
        return pieces.iter().flat_map(|piece| piece.data.bytes()).collect();
    }
    let mut bytes = Vec::new();
    for Piece { name, data, .. } in pieces {
        match kind.api {
            Api::Bedrock => testkit::fake_model::aws_frame(name, data, &mut bytes),
            Api::Ollama => bytes.extend(format!("{data}\n").into_bytes()),
            Api::OpenAiResponses | Api::OpenAiChat | Api::Anthropic | Api::Gemini => {
                let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
                bytes.extend(format!("{name}data: {data}\n\n").into_bytes());
            }
        }
    }
    bytes
}

/// Reads the stream in random pieces and looks for every mark; the number of marks that were looked for.
fn check(name: &str, kind: Kind, pieces: &[Piece], scans_calls: bool, dice: &mut Dice) -> usize {
    let mut decoder = with_target(kind.api, "fake/model", |target| {
        let dialect = Dialect { text_tool_calls: scans_calls, ..target.dialect };
        kind.api.decoder(&prompt("x"), &Target { dialect, ..target.clone() })
    });
    let stream = bytes(kind, pieces);
    let (mut framing, mut out, mut read) = (kind.framing(), Events::new(), 0);
    let mut fault = None;
    let mut rest = stream.as_slice();
    while !rest.is_empty() && fault.is_none() {
        let (chunk, after) = rest.split_at((1 + dice.roll(60)).min(rest.len()));
        rest = after;
        framing.push(chunk).unwrap();
        if rest.is_empty() {
            framing.finish();
        }
        while let Some(event) = framing.next_event().unwrap() {
            if matches!(out.back(), Some(ModelEvent::Ended { .. })) {
                break;
            }
            if let Err(error) = decoder.push(event, &mut out) {
                fault = Some(error.message);
                break;
            }
            read += 1;
        }
    }
    finish(decoder.as_mut(), fault.is_none(), &mut out);
    let shown: String = out.iter().map(shown_text).collect();
    let warnings: Vec<String> = out.iter().map(line).filter(|line| line.starts_with("warning")).collect();
    let mut looked_for = 0;
    let is_list = kind.api == Api::Gemini && pieces.len() == 1;
    for piece in pieces.iter().take(if is_list { 1 } else { read }) {
        for mark in &piece.marks {
            looked_for += 1;
            let is_named = warnings.iter().any(|warning| names(warning, piece, pieces));
            assert!(
                shown.contains(mark.as_str()) || is_named,
                "{name}: {mark} of {} vanished\nwarnings: {warnings:?}\nstream:\n{}\nevents:\n{}",
                piece.data,
                String::from_utf8_lossy(&stream),
                out.iter().map(line).collect::<Vec<_>>().join("\n"),
            );
        }
    }
    looked_for
}

/// Ends the stream. Text that is held back is shown also when the answer is not complete.
fn finish(decoder: &mut dyn Decode, sound: bool, out: &mut Events) {
    if sound && !matches!(out.back(), Some(ModelEvent::Ended { .. })) {
        decoder.finish(out);
    }
}

fn shown_text(event: &ModelEvent) -> String {
    if let ModelEvent::BlockDelta { text, .. } = event { text.clone() } else { line(event) }
}

/// Whether a warning names the content of an event: its type, one of its members, or a call that never began.
fn names(warning: &str, piece: &Piece, all: &[Piece]) -> bool {
    let kind = warning.split('`').nth(1).unwrap_or_default();
    let block_of_unknown_type =
        || all.iter().any(|other| other.data.contains("content_block_start") && other.data.contains(kind));
    kind.contains("without a")
        || piece.name == kind
        || piece.data.contains(&format!("\"{kind}\""))
        || block_of_unknown_type()
}
