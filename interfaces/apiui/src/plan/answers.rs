//! What operations answer: a status, a sentence and the shape of the data, for people who read before they call.
//!
//! Owns the text of a shape. It is short: the fields of the answer itself, and the names of what they hold.

use super::AnswerNote;
use super::models::Models;
use super::words::{line, shorten_note};
use crate::spec::{Endpoint, Kind, Model, Response};
use std::fmt::Write;

const MAX_ANSWERS: usize = 8;
const MAX_FIELDS: usize = 24;
const MAX_CHOICES: usize = 5;
/// The longest example that is shown, in bytes of JSON.
const MAX_EXAMPLE: usize = 600;

pub(super) fn answers(endpoint: &Endpoint, models: &Models) -> Vec<AnswerNote> {
    endpoint.responses.values().take(MAX_ANSWERS).map(|response| answer(response, models)).collect()
}

fn answer(response: &Response, models: &Models) -> AnswerNote {
    let is_good = response.status_code.starts_with('2') || response.status_code == "default";
    let schema = response.schema.as_ref().filter(|_| is_good);
    let example = schema.and_then(|model| model.example.as_ref().or(models.resolve(model).example.as_ref()));
    let example = example.filter(|value| value.is_object() || value.is_array());
    let example = example.and_then(|value| serde_json::to_string_pretty(value).ok());
    AnswerNote {
        status: line(&response.status_code, 10),
        note: shorten_note(Some(&response.description), 120),
        shape: schema.map(|model| shape(models, model)).unwrap_or_default(),
        example: example.filter(|text| text.len() <= MAX_EXAMPLE).unwrap_or_default(),
    }
}

/// The fields of an answer, one a line; of a list, those of its items.
fn shape<'s>(models: &Models<'s>, model: &'s Model) -> String {
    let target = models.resolve(model);
    if let (Kind::Array, Some(items)) = (target.kind, target.items.as_deref()) {
        return format!("{}[]", shape(models, items));
    }
    if target.properties.is_empty() {
        return word(models, model, 0);
    }
    let mut out = String::from("{\n");
    for (name, property) in target.properties.iter().take(MAX_FIELDS) {
        let mark = if target.required.contains(name) { "" } else { "?" };
        let _ = writeln!(out, "  {}{mark}: {}", line(name, 60), word(models, property, 0));
    }
    if target.properties.len() > MAX_FIELDS {
        out.push_str("  …\n");
    }
    out.push('}');
    out
}

/// A value in a few words: its name, or its kind.
fn word<'s>(models: &Models<'s>, model: &'s Model, depth: usize) -> String {
    let target = models.resolve(model);
    let kind = match target.kind {
        Kind::Array if depth < 4 => {
            let item = target
                .items
                .as_deref()
                .map_or_else(|| "any".to_owned(), |item| word(models, item, depth + 1));
            return format!("{item}[]");
        }
        Kind::Enum => {
            let shown = target.enum_values.iter().take(MAX_CHOICES).map(|value| line(&value.to_string(), 30));
            let mut words: Vec<String> = shown.collect();
            if target.enum_values.len() > MAX_CHOICES {
                words.push("…".to_owned());
            }
            return words.join(" | ");
        }
        Kind::Object | Kind::Union => {
            let name = models.name(model).map(|name| line(name, 60));
            return name.unwrap_or_else(|| {
                if target.kind == Kind::Union { "one of several" } else { "object" }.to_owned()
            });
        }
        Kind::String => "string",
        Kind::Number => "number",
        Kind::Integer => "integer",
        Kind::Boolean => "boolean",
        Kind::File => "file",
        Kind::Null => "null",
        Kind::Array | Kind::Any | Kind::Reference => "any",
    };
    match target.format.as_deref() {
        Some(format) if !format.is_empty() => format!("{kind} ({})", line(format, 30)),
        _ => kind.to_owned(),
    }
}
