//! From bytes to text, and from text to a JSON value, for JSON and YAML.
//!
//! Owns encodings, syntax errors with their line and column, and the budgets that stop alias bombs.
//! Invariant: the value that comes out is at most 128 levels deep, so that walking it cannot exhaust the stack.

use super::compact::Compact;
use crate::problem::{Problem, ProblemKind, ProblemLocation, excerpt};
use serde_json::Value;
use std::borrow::Cow;

/// Events that aliases may add to a document: ample for shared parameters, and about 30 MB at the most.
const MAX_REPLAYED_EVENTS: usize = 300_000;

pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Problem> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        bytes => utf8(bytes),
    }
}

pub(super) fn json(text: &str) -> Result<Value, Problem> {
    serde_json::from_str::<Compact>(text).map(|compact| compact.0).map_err(|error| {
        let place = ProblemLocation::Position { line: error.line().max(1), column: error.column().max(1) };
        let whole = error.to_string();
        if whole.contains("recursion limit") {
            return too_deep(place);
        }
        let reason = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
        let advice = if error.is_eof() {
            "The document ends too early: send all of it."
        } else {
            "Correct the JSON at that place and try again."
        };
        Problem::error(ProblemKind::Syntax, place, format!("This is not well-formed JSON: {reason}."), advice)
    })
}

pub(super) fn yaml(text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 20_000_000,
            max_total_scalar_bytes: 2 * super::LIMIT_BYTES,
            max_depth: 120,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED_EVENTS,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        with_snippet: false,
    };
    let compact = serde_saphyr::from_str_with_options::<Compact>(text, options);
    compact.map(|compact| compact.0).map_err(|error| yaml_problem(&error))
}

fn yaml_problem(error: &serde_saphyr::Error) -> Problem {
    let place = match error.location() {
        Some(location) if location.line() > 0 => {
            ProblemLocation::Position { line: location.line() as usize, column: location.column() as usize }
        }
        _ => ProblemLocation::Document,
    };
    let whole = error.to_string();
    let reason = excerpt_of_error(&whole);
    if whole.contains("alias") || whole.contains("budget") {
        return Problem::error(
            ProblemKind::Expansion,
            place,
            "Reading this YAML would expand it beyond all measure: its aliases become hundreds of thousands of values.",
            "Replace nested aliases by plain values or by `$ref`.",
        );
    }
    if whole.contains("recursion limit") {
        return too_deep(place);
    }
    Problem::error(
        ProblemKind::Syntax,
        place,
        format!("This is not well-formed YAML: {reason}."),
        "Correct the YAML at that place and try again; indentation and quotes are the usual causes.",
    )
}

fn too_deep(place: ProblemLocation) -> Problem {
    Problem::error(
        ProblemKind::Syntax,
        place,
        "The document is nested more than 120 levels deep here.",
        "Move the inner parts to `components` and refer to them with `$ref`.",
    )
}

/// The first line of a parser's message without its own mention of the place.
fn excerpt_of_error(whole: &str) -> String {
    let line = whole.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    let mut short: String = line.chars().take(160).filter(|c| !c.is_control()).collect();
    while short.ends_with(['.', ' ', ':']) {
        short.pop();
    }
    short
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, Problem> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Problem::error(
            ProblemKind::Encoding,
            ProblemLocation::Position { line, column },
            "This is not text: there are bytes that are not UTF-8.",
            "Send the specification as UTF-8 JSON, YAML or GraphQL, not as an archive or a picture.",
        )
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, Problem> {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16(&units).map(Cow::Owned).map_err(|_| {
        Problem::error(
            ProblemKind::Encoding,
            ProblemLocation::Document,
            "This begins as UTF-16 text but does not go on as such.",
            "Save the specification as UTF-8 and try again.",
        )
    })
}

/// For messages: the start of a text.
pub(super) fn beginning(text: &str) -> String {
    excerpt(text.trim_start().lines().next().unwrap_or_default())
}
