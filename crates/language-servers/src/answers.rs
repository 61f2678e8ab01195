//! What a server answered, as the engine has it: paths, positions from 1, words for severities.
//!
//! Invariant: answers are bounded, whatever a server sends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::host::{Diagnostic, SourceRange};
use serde_json::Value;

use crate::documents;
use crate::position::{Units, path_of};
use crate::wire::{WireDiagnostic, WireLocation, WireRange};

const MOST_PLACES: usize = 1_000;
const MOST_DIAGNOSTICS: usize = 2_000;
const MOST_MESSAGE: usize = 2_000;

/// Lines of files, each read once. It reads files: not for a thread of the runtime.
#[derive(Default)]
struct Lines(BTreeMap<PathBuf, Option<String>>);

impl Lines {
    fn line(&mut self, path: &Path, number: u32) -> Option<&str> {
        let text = self.0.entry(path.to_owned()).or_insert_with(|| documents::read(path).ok());
        text.as_deref()?.lines().nth(number as usize)
    }

    fn range(&mut self, path: PathBuf, range: WireRange, units: Units) -> SourceRange {
        let start = units.decode(range.start, self.line(&path, range.start.line));
        let end = units.decode(range.end, self.line(&path, range.end.line));
        SourceRange { path, start, end }
    }
}

pub(crate) fn places(found: Vec<WireLocation>, units: Units) -> Vec<SourceRange> {
    let mut lines = Lines::default();
    let mut places: Vec<SourceRange> = Vec::new();
    for location in found.into_iter().take(MOST_PLACES) {
        let Some(path) = path_of(&location.uri) else { continue };
        let place = lines.range(path, location.range, units);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

pub(crate) fn diagnostics(found: Vec<(String, Vec<WireDiagnostic>)>, units: Units) -> Vec<Diagnostic> {
    let mut lines = Lines::default();
    let mut all: Vec<Diagnostic> = Vec::new();
    for (uri, diagnostics) in found {
        let Some(path) = path_of(&uri) else { continue };
        for diagnostic in diagnostics {
            if all.len() == MOST_DIAGNOSTICS {
                return all;
            }
            let SourceRange { path, start, end } = lines.range(path.clone(), diagnostic.range, units);
            let diagnostic = Diagnostic {
                path,
                severity: severity(diagnostic.severity).to_owned(),
                source: diagnostic.source.unwrap_or_default(),
                start,
                end,
                code: diagnostic.code.as_ref().and_then(code),
                message: message(&diagnostic.message),
            };
            if !all.contains(&diagnostic) {
                all.push(diagnostic);
            }
        }
    }
    all
}

fn severity(number: Option<u8>) -> &'static str {
    match number {
        Some(2) => "warning",
        Some(3) => "information",
        Some(4) => "hint",
        _ => "error",
    }
}

fn code(code: &Value) -> Option<String> {
    match code {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(object) => code_value(object.get("value")?),
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    }
}

fn code_value(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_number().map(ToString::to_string))
}

fn message(message: &Value) -> String {
    let text = message.as_str().or_else(|| message["value"].as_str()).unwrap_or_default();
    text[..text.floor_char_boundary(MOST_MESSAGE)].to_owned()
}
