//! A prompt's entries as turns that every API accepts: answers, the results of their calls, what the user said.
//!
//! Invariant: every call is answered exactly once, right after the answer that made it, whatever the history lost; a
//! turn is grouped the same way in every later prompt.

use std::borrow::Cow;
use std::collections::HashSet;

use domain::Part;
use domain::item::ProviderBlock;
use domain::model::PromptEntry;
use serde_json::{Map, Value};

/// A run of entries that belong to one message.
#[derive(Debug)]
pub enum Turn<'a> {
    User(&'a [Part]),
    /// Reasoning, text and calls of one answer, in order.
    Answer(Vec<Piece<'a>>),
    /// The results of the answer before, in the order of its calls.
    Results(Vec<Outcome<'a>>),
}

#[derive(Debug)]
pub enum Piece<'a> {
    Reasoning { text: &'a str, provider: Option<&'a ProviderBlock> },
    Text { text: &'a str, provider: Option<&'a ProviderBlock> },
    Call { id: &'a str, name: &'a str, input: &'a Value, provider: Option<&'a ProviderBlock> },
}

#[derive(Debug)]
pub struct Outcome<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub parts: Cow<'a, [Part]>,
    pub error: bool,
}

/// Groups entries into turns.
pub fn turns(entries: &[PromptEntry]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    let mut rest = entries;
    while let Some(entry) = rest.first() {
        match entry {
            PromptEntry::User { parts } => {
                turns.push(Turn::User(parts));
                rest = &rest[1..];
            }
            PromptEntry::Result { .. } => rest = &rest[1..], // its call is gone: there is nothing it answers
            PromptEntry::Reasoning { .. } | PromptEntry::Agent { .. } | PromptEntry::Call { .. } => {
                rest = answer(rest, &mut turns)
            }
        }
    }
    turns
}

/// Takes one answer and the results that follow it; calls without a result get one that says so.
fn answer<'a>(entries: &'a [PromptEntry], turns: &mut Vec<Turn<'a>>) -> &'a [PromptEntry] {
    let end = entries
        .iter()
        .position(|entry| matches!(entry, PromptEntry::User { .. } | PromptEntry::Result { .. }))
        .unwrap_or(entries.len());
    let (answer, mut rest) = entries.split_at(end);
    let mut seen = HashSet::new();
    let pieces: Vec<_> = answer.iter().filter_map(|entry| piece(entry, &mut seen)).collect();
    let results = rest.iter().take_while(|entry| matches!(entry, PromptEntry::Result { .. })).count();
    let outcomes: Vec<_> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Call { id, name, .. } => Some(outcome(id, name, &rest[..results])),
            Piece::Reasoning { .. } | Piece::Text { .. } => None,
        })
        .collect();
    rest = &rest[results..];
    if !pieces.is_empty() {
        turns.push(Turn::Answer(pieces));
    }
    if !outcomes.is_empty() {
        turns.push(Turn::Results(outcomes));
    }
    rest
}

fn piece<'a>(entry: &'a PromptEntry, seen: &mut HashSet<&'a str>) -> Option<Piece<'a>> {
    Some(match entry {
        PromptEntry::Reasoning { text, provider } => Piece::Reasoning { text, provider: provider.as_ref() },
        PromptEntry::Agent { text, provider } => Piece::Text { text, provider: provider.as_ref() },
        PromptEntry::Call { call_id, name, input, provider } => {
            if !seen.insert(call_id.as_str()) {
                return None;
            }
            Piece::Call { id: call_id, name, input, provider: provider.as_ref() }
        }
        PromptEntry::User { .. } | PromptEntry::Result { .. } => return None,
    })
}

fn outcome<'a>(id: &'a str, name: &'a str, results: &'a [PromptEntry]) -> Outcome<'a> {
    let found = results.iter().find_map(|entry| match entry {
        PromptEntry::Result { call_id, parts, error, .. } if call_id == id => Some((parts, *error)),
        PromptEntry::User { .. }
        | PromptEntry::Reasoning { .. }
        | PromptEntry::Agent { .. }
        | PromptEntry::Call { .. }
        | PromptEntry::Result { .. } => None,
    });
    match found {
        Some((parts, error)) => Outcome { id, name, parts: Cow::Borrowed(parts.as_slice()), error },
        None => Outcome {
            id,
            name,
            parts: Cow::Owned(vec![Part::text("The call was interrupted and has no result.")]),
            error: true,
        },
    }
}

impl<'a> Outcome<'a> {
    /// The text of the result.
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.parts)
    }

    pub fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        images_of(&self.parts)
    }
}

/// The text parts as one text.
pub fn text_of(parts: &[Part]) -> Cow<'_, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    let Some(second) = texts.next() else { return Cow::Borrowed(first) };
    let mut all = format!("{first}\n\n{second}");
    for text in texts {
        all.push_str("\n\n");
        all.push_str(text);
    }
    Cow::Owned(all)
}

/// `(mime, base64)` of the images.
pub fn images_of(parts: &[Part]) -> impl Iterator<Item = (&str, &str)> {
    parts.iter().filter_map(|part| match part {
        Part::Image { mime, data } => Some((mime.as_str(), data.as_ref())),
        Part::Text { .. } => None,
    })
}

/// The names of all tools that were called, each once. Some APIs refuse a call whose tool is not declared.
pub fn called(entries: &[PromptEntry]) -> Vec<&str> {
    let mut names = Vec::new();
    for entry in entries {
        if let PromptEntry::Call { name, .. } = entry
            && !names.contains(&name.as_str())
        {
            names.push(name.as_str());
        }
    }
    names
}

/// A block that this model made for this format, or nothing: another's is of no use.
pub fn own_data<'a>(provider: Option<&'a ProviderBlock>, format: &str, model: &str) -> Option<&'a Value> {
    provider.filter(|block| block.format == format && block.model == model).map(|block| &block.data)
}

/// A call's input as the object that APIs demand.
pub fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Cow::Owned(serde_json::json!({ "input": other }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> PromptEntry {
        PromptEntry::Call { call_id: id.into(), name: "eca__x".into(), input: json!({}), provider: None }
    }

    fn result(id: &str) -> PromptEntry {
        PromptEntry::Result {
            call_id: id.into(),
            name: "eca__x".into(),
            parts: vec![Part::text(id)],
            error: false,
        }
    }

    fn user() -> PromptEntry {
        PromptEntry::User { parts: vec![Part::text("u")] }
    }

    fn agent() -> PromptEntry {
        PromptEntry::Agent { text: "a".into(), provider: None }
    }

    /// One letter per turn; the ids of results, `!` for one that was made up.
    fn check(entries: &[PromptEntry], expected: &str) {
        let shape: Vec<String> = turns(entries)
            .iter()
            .map(|turn| match turn {
                Turn::User(_) => "U".to_owned(),
                Turn::Answer(pieces) => format!("A{}", pieces.len()),
                Turn::Results(outcomes) => {
                    let ids: Vec<_> = outcomes
                        .iter()
                        .map(|o| format!("{}{}", o.id, if o.error { "!" } else { "" }))
                        .collect();
                    format!("R({})", ids.join(" "))
                }
            })
            .collect();
        assert_eq!(shape.join(" "), expected);
    }

    #[test]
    fn calls_and_results_are_always_paired() {
        check(&[user(), agent(), call("1"), call("2"), result("2"), result("1"), agent()], "U A3 R(1 2) A1");
        check(&[user(), call("1"), user()], "U A1 R(1!) U");
        check(&[user(), call("1"), call("2"), result("2")], "U A2 R(1! 2)");
        check(&[user(), result("9"), agent(), result("9"), user()], "U A1 U");
        check(&[call("1"), call("1"), result("1"), result("1")], "A1 R(1)");
        check(&[], "");
    }
}
