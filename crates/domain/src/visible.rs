//! Foreign text in a form in which a person sees every character: for names, commands and rules that are shown before
//! somebody agrees to them. Pure; knows nothing of terminals.
//!
//! Invariant: the result has no control character except, where asked for, the newline, and no invisible or
//! direction-changing character; text without such characters stays as it is.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;

/// Text of several lines: each newline stays.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    escape(text, |character| character != '\n' && is_hidden(character))
}

/// Source text and diffs: newlines and tabs stay.
pub fn visible_source(text: &str) -> Cow<'_, str> {
    escape(text, |character| !matches!(character, '\n' | '\t') && is_hidden(character))
}

/// Text on one line: a newline becomes `\n`.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// JSON text whose strings hold no hidden character: each becomes a JSON escape.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let hidden = |character: char| character != '\n' && is_hidden(character);
    if !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for character in json.chars() {
        if hidden(character) {
            for unit in character.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// The arguments of a call: each name and each text in them as [`visible_source`] shows it.
pub fn visible_value(value: &Value) -> Cow<'_, Value> {
    if hides_something(value) { Cow::Owned(escape_value(value)) } else { Cow::Borrowed(value) }
}

fn hides_something(value: &Value) -> bool {
    let hides = |text: &str| matches!(visible_source(text), Cow::Owned(_));
    match value {
        Value::String(text) => hides(text),
        Value::Array(values) => values.iter().any(hides_something),
        Value::Object(members) => members.iter().any(|(name, value)| hides(name) || hides_something(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn escape_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_source(text).into_owned()),
        Value::Array(values) => Value::Array(values.iter().map(escape_value).collect()),
        Value::Object(members) => {
            let visible =
                |(name, value): (&String, &Value)| (visible_source(name).into_owned(), escape_value(value));
            Value::Object(members.iter().map(visible).collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other.clone(),
    }
}

fn escape(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            character if !hidden(character) => out.push(character),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal or an editor draws nothing, or something else, for this character.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_written_out_and_others_stay() {
        for (text, line) in [
            ("git push", "git push"),
            ("日本 é 👍\u{fe0f}", "日本 é 👍\u{fe0f}"),
            ("a\rb\nc\td", "a\\rb\\nc\\td"),
            ("\u{1b}]0;x\u{7}", "\\u{1b}]0;x\\u{7}"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("user\u{202e}txt\u{2066}", "user\\u{202e}txt\\u{2066}"),
            ("r\u{200b}m\u{feff}\u{ad}", "r\\u{200b}m\\u{feff}\\u{ad}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(visible_line(text), line);
        }
        assert_eq!(visible_text("a\nb\r\n"), "a\nb\\r\n");
        let json = "{\n\"a\": \"\u{9b}2J\u{e0041}\"}";
        assert_eq!(visible_json(json), "{\n\"a\": \"\\u009b2J\\udb40\\udc41\"}");
        assert!(matches!(visible_line("plain"), Cow::Borrowed("plain")));
        let arguments = serde_json::json!({"a\u{200b}": ["x\ry\t\n", 1], "b": {"c": true}});
        let visible = serde_json::json!({"a\\u{200b}": ["x\\ry\t\n", 1], "b": {"c": true}});
        assert_eq!(*visible_value(&arguments), visible);
        assert!(matches!(visible_value(&visible), Cow::Borrowed(_)));
    }
}
