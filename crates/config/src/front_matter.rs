//! The lines between `---` at the top of a Markdown file: the part of YAML that people write there. Pure.
//!
//! Maps, lists, texts, numbers and flags; texts in quotes, and texts over several lines by `>` or `|`. Invariant: text
//! that is not of this form is kept as a text, never guessed at, and nothing here runs or refers to anything.

use serde_json::{Map, Value};

/// Deeper levels are read as text.
const MAX_DEPTH: usize = 8;

/// The values at the top of a file, and the text below them.
pub fn split(text: &str) -> (Map<String, Value>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let none = || (Map::new(), text);
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n'))
    else {
        return none();
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let lines: Vec<&str> = rest[..at].lines().collect();
            let body = &rest[at + line.len()..];
            return match read(&lines, 0) {
                Value::Object(values) => (values, body),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    (Map::new(), body)
                }
            };
        }
        at += line.len();
    }
    none()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// A block of lines of at least one indentation: a list or a map.
fn read(lines: &[&str], depth: usize) -> Value {
    let Some(first) = lines.iter().find(|line| !is_blank(line)) else { return Value::Null };
    let level = indent(first);
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        if !is_blank(line) && indent(line) == level {
            entries.push((line.trim(), Vec::new()));
        } else if let Some((_, below)) = entries.last_mut() {
            below.push(line);
        }
    }
    if first.trim_start().starts_with("- ") || first.trim() == "-" {
        let item = |(line, below): &(&str, Vec<&str>)| {
            value(line.strip_prefix('-').unwrap_or(line).trim(), below, depth)
        };
        return Value::Array(entries.iter().map(item).collect());
    }
    let mut values = Map::new();
    for (line, below) in &entries {
        if let Some((key, rest)) = line.split_once(':') {
            values.insert(unquoted(key.trim()).to_owned(), value(rest.trim(), below, depth));
        }
    }
    Value::Object(values)
}

fn value(text: &str, below: &[&str], depth: usize) -> Value {
    let has_block = below.iter().any(|line| !is_blank(line));
    match text {
        ">" | ">-" | "|" | "|-" => {
            let separator = if text.starts_with('>') { " " } else { "\n" };
            let level = below.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min();
            let cut = |line: &&str| line.get(level.unwrap_or(0)..).unwrap_or_default().trim_end().to_owned();
            Value::String(below.iter().map(cut).collect::<Vec<_>>().join(separator).trim().to_owned())
        }
        "" if has_block && depth < MAX_DEPTH => read(below, depth + 1),
        "" => Value::Null,
        list if list.starts_with('[') && list.ends_with(']') => {
            let inner = list[1..list.len() - 1].trim();
            let entries = inner.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            Value::Array(entries.map(scalar).collect())
        }
        // A plain text may go on below.
        plain if has_block => {
            let more = below.iter().map(|line| line.trim());
            Value::String([plain].into_iter().chain(more).collect::<Vec<_>>().join(" ").trim().to_owned())
        }
        plain => scalar(plain),
    }
}

fn scalar(text: &str) -> Value {
    let is_quoted = unquoted(text).len() != text.len();
    // A comment behind a value.
    let text = if is_quoted { text } else { text.split(" #").next().unwrap_or(text).trim_end() };
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" | "~" | "" => Value::Null,
        _ if is_quoted => Value::String(unquoted(text).to_owned()),
        _ => text.parse::<u64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
    }
}

fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_lists_and_texts_are_read() {
        let text = "---\nname: lint-fix\ndescription: \"Lint: and fix\" \nmode: [primary, subagent]\nsteps: 25 # few\n\
                    # a comment\ntools:\n  byDefault: ask\n  deny:\n    - my_mcp__my_tool\n    - 'x'\n\
                    long: >\n  one\n  two\nkept: |\n  a\n    b\non: true\nplain: one\n  two\nempty:\n---\nThe body.\n---\n";
        let (values, body) = split(text);
        assert_eq!(
            Value::Object(values),
            json!({
                "name": "lint-fix", "description": "Lint: and fix", "mode": ["primary", "subagent"], "steps": 25,
                "tools": {"byDefault": "ask", "deny": ["my_mcp__my_tool", "x"]},
                "long": "one two", "kept": "a\n  b", "on": true, "plain": "one two", "empty": null,
            })
        );
        assert_eq!(body, "The body.\n---\n");
    }

    #[test]
    fn other_texts_stay_whole() {
        for text in ["no lines", "---\nnever closed", "--- x\na: b\n---\n", "", "----\na: b\n----\n"] {
            assert_eq!(split(text), (Map::new(), text), "{text:?}");
        }
        let deep = format!(
            "---\n{}\n---\n",
            (0..40).map(|at| format!("{}a:", " ".repeat(at))).collect::<Vec<_>>().join("\n")
        );
        assert!(split(&deep).0.contains_key("a"), "a bottom is found");
    }
}
