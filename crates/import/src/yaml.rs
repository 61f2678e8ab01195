//! The part of YAML that goose writes into its file: nested maps and lists of plain values, by indentation.
//!
//! Invariant: a line that is something else is an error, so that nothing is read wrongly.

use serde_json::{Map, Value, json};

struct Line<'t> {
    number: usize,
    indent: usize,
    text: &'t str,
}

pub(super) fn parse(text: &str) -> Result<Value, String> {
    let lines: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .map(|(number, line)| Line {
            number: number + 1,
            indent: line.len() - line.trim_start_matches(' ').len(),
            text: line.trim(),
        })
        .filter(|line| !line.text.is_empty() && !line.text.starts_with('#') && line.text != "---")
        .collect();
    let mut at = 0;
    let value = block(&lines, &mut at, 0)?;
    match lines.get(at) {
        Some(line) => Err(refused(line)),
        None => Ok(value),
    }
}

fn refused(line: &Line<'_>) -> String {
    format!("line {} is not understood", line.number)
}

fn block(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Result<Value, String> {
    match lines.get(*at) {
        Some(line) if line.text == "-" || line.text.starts_with("- ") => list(lines, at, line.indent),
        Some(line) if line.indent >= indent => map(lines, at, line.indent),
        Some(_) | None => Ok(Value::Null),
    }
}

fn list(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Result<Value, String> {
    let mut values = Vec::new();
    while let Some(line) = lines.get(*at).filter(|line| line.indent == indent) {
        let Some(value) = line.text.strip_prefix("- ") else { break };
        values.push(scalar(value).ok_or_else(|| refused(line))?);
        *at += 1;
    }
    Ok(values.into())
}

fn map(lines: &[Line<'_>], at: &mut usize, indent: usize) -> Result<Value, String> {
    let mut members = Map::new();
    while let Some(line) = lines.get(*at).filter(|line| line.indent == indent) {
        let (key, rest) = line.text.split_once(':').ok_or_else(|| refused(line))?;
        let key = key.trim().trim_matches(['"', '\'']).to_owned();
        *at += 1;
        let value = match rest.trim() {
            "" => match lines.get(*at) {
                Some(next) if next.indent > indent => block(lines, at, indent + 1)?,
                // A list may be at the indentation of its key.
                Some(next) if next.indent == indent && next.text.starts_with("- ") => {
                    list(lines, at, indent)?
                }
                Some(_) | None => Value::Null,
            },
            text if rest.starts_with(' ') => scalar(text).ok_or_else(|| refused(line))?,
            _ => return Err(refused(line)),
        };
        members.insert(key, value);
    }
    match lines.get(*at) {
        Some(line) if line.indent > indent => Err(refused(line)),
        Some(_) | None => Ok(members.into()),
    }
}

/// A value on one line. Anchors, tags and texts over several lines are refused.
fn scalar(text: &str) -> Option<Value> {
    match text.chars().next()? {
        '\'' => Some(json!(text.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'"))),
        '[' => serde_json::from_str(text).ok().or_else(|| flow_list(text)),
        '"' | '{' => serde_json::from_str(text).ok(),
        '|' | '>' | '&' | '*' | '!' | '%' | '@' | '`' => None,
        _ => {
            let plain = text.split(" #").next()?.trim_end();
            if plain.starts_with("- ") || plain.contains(": ") || plain.ends_with(':') {
                return None;
            }
            Some(match plain {
                "null" | "~" => Value::Null,
                "true" => json!(true),
                "false" => json!(false),
                _ => plain.parse::<i64>().map_or_else(|_| json!(plain), |number| json!(number)),
            })
        }
    }
}

/// `[a, b]`: plain values in one line.
fn flow_list(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let is_flat = !inner.contains(['[', ']', '{', '}', '#']);
    inner
        .split(',')
        .map(|value| scalar(value.trim()).filter(|_| is_flat))
        .collect::<Option<Vec<_>>>()
        .map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goose_writes_is_read_and_the_rest_refused() {
        let text = "GOOSE_MODEL: gpt-4o # mine\nextensions:\n  files:\n    enabled: true\n    cmd: npx\n    args:\n    - -y\n    - 'it''s'\n    envs: {}\n    timeout: 300\n  web:\n    uri: \"https://x:1/mcp\"\n    description: null\n";
        let expected = json!({"GOOSE_MODEL": "gpt-4o", "extensions": {
            "files": {"enabled": true, "cmd": "npx", "args": ["-y", "it's"], "envs": {}, "timeout": 300},
            "web": {"uri": "https://x:1/mcp", "description": null}}});
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse("args: [-y, 'a b', 3]\n"), Ok(json!({"args": ["-y", "a b", 3]})));
        for wrong in [
            "a: |\n  text\n",
            "a\n",
            "a: &x 1\n",
            "a: [b, 'c, d']\n",
            "a: [b, [c]]\n",
            "a: [b\n",
            "a:\n    b: 1\n  c: 2\n",
            "- a: 1\n  b: 2\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
