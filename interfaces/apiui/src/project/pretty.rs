//! Data as TypeScript, laid out as Prettier lays it out: objects always open, lists on one line where they fit.
//!
//! Owns the width of a line and the choice of quotes. Keys are names of the plan, or are quoted where they are not names.

use serde_json::Value;
use std::fmt::Write;

/// The `printWidth` of a project.
pub(super) const WIDTH: usize = 120;

/// Writes a value that begins in this column of a line with this indent (both in characters).
pub(super) fn write_value(out: &mut String, value: &Value, indent: usize, column: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push_str("{\n");
            for (name, inner) in map {
                let key = key(name);
                let _ = write!(out, "{:1$}{key}:", "", indent + 2);
                let column = indent + 4 + width(&key);
                // A long text goes to a line of its own, unless its key is short.
                if width(&key) >= 5
                    && inner.as_str().is_some_and(|inner| column + width(&text(inner)) >= WIDTH)
                {
                    let _ = write!(out, "\n{:1$}", "", indent + 4);
                } else {
                    out.push(' ');
                }
                write_value(out, inner, indent + 2, column);
                out.push_str(",\n");
            }
            let _ = write!(out, "{:indent$}}}", "");
        }
        Value::Array(items) if !items.is_empty() => write_list(out, items, indent, column),
        other => out.push_str(&flat(other)),
    }
}

fn write_list(out: &mut String, items: &[Value], indent: usize, column: usize) {
    let whole = flat_list(items);
    // The comma or semicolon behind it needs a place too.
    if !must_break(items) && column + width(&whole) < WIDTH {
        out.push_str(&whole);
        return;
    }
    out.push_str("[\n");
    if items.len() > 1 && items.iter().all(Value::is_number) {
        fill(out, items, indent + 2);
    } else {
        for item in items {
            let _ = write!(out, "{:1$}", "", indent + 2);
            write_value(out, item, indent + 2, indent + 2);
            out.push_str(",\n");
        }
    }
    let _ = write!(out, "{:indent$}]", "");
}

/// Numbers stand beside each other, as many as a line takes.
fn fill(out: &mut String, items: &[Value], indent: usize) {
    let mut column = 0;
    for item in items {
        let text = format!("{},", flat(item));
        if column > 0 && column + 1 + text.len() <= WIDTH {
            out.push(' ');
            column += 1;
        } else {
            if column > 0 {
                out.push('\n');
            }
            let _ = write!(out, "{:indent$}", "");
            column = indent;
        }
        out.push_str(&text);
        column += text.len();
    }
    out.push('\n');
}

/// Whether a list holds something that is always open, or is a table of lists.
fn must_break(items: &[Value]) -> bool {
    let is_open = |item: &Value| match item {
        Value::Object(map) => !map.is_empty(),
        Value::Array(inner) => must_break(inner),
        _ => false,
    };
    let is_row = |item: &Value| item.as_array().is_some_and(|inner| inner.len() > 1);
    items.iter().any(is_open) || (items.len() > 1 && items.iter().all(is_row))
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => flat_list(items),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

fn flat_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", "))
}

/// A string literal: in double quotes, unless it holds more of them than single ones.
pub(super) fn text(text: &str) -> String {
    let json = Value::from(text).to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let count = |quote| text.chars().filter(|c| *c == quote).count();
    if count('"') <= count('\'') {
        return json;
    }
    let inner = json.get(1..json.len() - 1).unwrap_or_default();
    // A backslash before a double quote is the one that JSON put there: its own backslashes are doubled.
    let mut out = String::with_capacity(json.len());
    let mut rest = inner.chars();
    out.push('\'');
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('"') => out.push('"'),
                other => {
                    out.push('\\');
                    out.extend(other);
                }
            },
            '\'' => out.push_str("\\'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A key of an object or type: quoted where it is not a plain name.
pub(super) fn key(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let is_name = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    let is_index = !name.is_empty()
        && name.len() < 8
        && name.bytes().all(|b| b.is_ascii_digit())
        && (name == "0" || !name.starts_with('0'));
    if is_name || is_index { name.to_owned() } else { text(name) }
}

/// Characters that take two columns are few in names; Prettier counts them so.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0x1F300..=0x1FAFF)
}

#[cfg(test)]
mod tests {
    use super::{text, write_value};
    use serde_json::json;

    #[test]
    fn data_is_laid_out_as_prettier_does() {
        let mut out = String::new();
        let value = json!({"a": [1, 2], "b": [{"c": "d"}], "e-f": [["g", "h"], ["i", "j"]], "k": 2.0});
        write_value(&mut out, &value, 0, 0);
        let shown = "{\n  a: [1, 2],\n  b: [\n    {\n      c: \"d\",\n    },\n  ],\n  \"e-f\": [\n    [\"g\", \"h\"],\n    \
                     [\"i\", \"j\"],\n  ],\n  k: 2,\n}";
        assert_eq!(out, shown);
        assert_eq!(text(r#"say "a" \ b's"#), r#"'say "a" \\ b\'s'"#);
    }
}
