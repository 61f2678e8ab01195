//! The keys that say how far an approval for the rest of a session goes.
//!
//! Must not know rules. Invariants: what must be asked each time is never remembered and never allowed by what is; a key
//! holds every argument that decides what a call reaches, so that a question can show exactly what it covers.

use domain::tool::{Review, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use domain::visible_line;
use serde_json::Value;
use session::Remembered;

/// Whether what a person allowed covers this call.
pub(super) fn allows(remembered: &Remembered, spec: &ToolSpec, input: &Value, review: &Review) -> bool {
    let keys = rememberable(spec, input, review);
    !keys.is_empty() && keys.iter().all(|key| remembered.contains(key))
}

/// The keys that "allow for this session" would remember; empty where it would ask again.
pub fn rememberable(spec: &ToolSpec, input: &Value, review: &Review) -> Vec<String> {
    if review.must_ask.is_some() || !review.unrecoverable.is_empty() {
        return Vec::new();
    }
    let outside = review.outside.iter().map(|path| path.display().to_string());
    let mut keys = review.keys.clone();
    if spec.effect == ToolEffect::RunsCommands && !review.outside.is_empty() {
        // Together: neither the command with other paths nor another command with these.
        let commands = if keys.is_empty() { "reading".to_owned() } else { keys.join(" and ") };
        keys = vec![format!("{commands} with {}", outside.collect::<Vec<_>>().join(" and "))];
    } else if keys.is_empty() && spec.effect != ToolEffect::RunsCommands {
        let name = if spec.origin == Origin::Native { spec.name.clone() } else { spec.offered_name() };
        keys = match spec.effect {
            _ if spec.origin == Origin::Mcp => server_call_key(&name, input).into_iter().collect(),
            _ if !review.outside.is_empty() => outside.map(|path| format!("{name} {path}")).collect(),
            ToolEffect::WritesFiles => vec![format!("{name} in this workspace")],
            ToolEffect::Reads
            | ToolEffect::Previews
            | ToolEffect::UsesNetwork
            | ToolEffect::RunsCommands
            | ToolEffect::Other => vec![name],
        };
    }
    keys.iter().map(|key| visible_line(key).into_owned()).collect()
}

/// Words in the names of arguments that decide what a call reaches or does. The others are contents.
const DECIDING: &[&str] = &[
    "account",
    "action",
    "address",
    "arg",
    "args",
    "argument",
    "arguments",
    "argv",
    "bcc",
    "branch",
    "bucket",
    "cc",
    "channel",
    "cluster",
    "cmd",
    "code",
    "collection",
    "command",
    "commands",
    "cwd",
    "database",
    "db",
    "destination",
    "dir",
    "directory",
    "domain",
    "email",
    "endpoint",
    "env",
    "environment",
    "executable",
    "expression",
    "file",
    "filename",
    "files",
    "folder",
    "from",
    "function",
    "host",
    "hostname",
    "id",
    "ids",
    "issue",
    "key",
    "kind",
    "method",
    "mode",
    "name",
    "names",
    "namespace",
    "node",
    "operation",
    "owner",
    "package",
    "path",
    "paths",
    "pid",
    "pod",
    "port",
    "process",
    "program",
    "project",
    "query",
    "recipient",
    "recipients",
    "region",
    "remote",
    "repo",
    "repository",
    "resource",
    "root",
    "schema",
    "script",
    "server",
    "service",
    "sha",
    "source",
    "sql",
    "statement",
    "table",
    "tag",
    "target",
    "team",
    "to",
    "type",
    "uri",
    "url",
    "urls",
    "user",
    "username",
    "workspace",
];

/// A longer argument cannot be shown in a question, so it is not remembered.
const LONGEST_VALUE: usize = 200;

/// A call of a server's tool with the arguments that decide what it reaches: `files__write path=/w/a.txt …`. `None`: one
/// of them is too long to be shown.
fn server_call_key(name: &str, input: &Value) -> Option<String> {
    let mut deciding = Vec::new();
    add_deciding("", input, &mut deciding)?;
    deciding.sort();
    let more = input.as_object().is_some_and(|members| !members.is_empty());
    let words = std::iter::once(name.to_owned()).chain(deciding).chain(more.then(|| "…".to_owned()));
    Some(words.collect::<Vec<_>>().join(" "))
}

fn add_deciding(name: &str, value: &Value, found: &mut Vec<String>) -> Option<()> {
    let text = match value {
        Value::Object(members) => {
            return members.iter().try_for_each(|(name, value)| add_deciding(name, value, found));
        }
        Value::Array(values) => return values.iter().try_for_each(|value| add_deciding(name, value, found)),
        Value::Null => return Some(()),
        // A switch may change what a call means, whatever its name is.
        Value::Bool(value) => value.to_string(),
        Value::Number(_) if !is_deciding(name) => return Some(()),
        Value::Number(value) => value.to_string(),
        Value::String(text) if !is_deciding(name) && !names_a_place(text) => return Some(()),
        // As for `fetch_url`: the host and the port, not the page.
        Value::String(text) => origin_of(text).map_or_else(|| value.to_string(), str::to_owned),
    };
    found.push(format!("{name}={text}"));
    (text.len() <= LONGEST_VALUE).then_some(())
}

fn is_deciding(name: &str) -> bool {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if !character.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let begins = character.is_uppercase()
            && words.last().is_some_and(|word| word.chars().last().is_some_and(char::is_lowercase));
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.iter().any(|word| DECIDING.contains(&word.to_lowercase().as_str()))
}

/// Whether a text by itself names another machine, a file or a person.
fn names_a_place(text: &str) -> bool {
    let is_one_word = !text.is_empty() && !text.contains(char::is_whitespace);
    is_one_word && (text.starts_with(['/', '~', '.', '\\']) || text.contains("://") || text.contains('@'))
}

fn origin_of(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://").filter(|_| !text.contains(char::is_whitespace))?;
    // A file has no origin, and neither has what could be read in two ways.
    if !matches!(scheme, "http" | "https") || rest.contains(['\\', '@']) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    (end > 0).then(|| &text[..scheme.len() + 3 + end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_of_a_server_holds_what_decides() {
        for (input, key) in [
            (json!({}), Some("s__t")),
            (json!({"text": "hello", "limit": 3}), Some("s__t …")),
            (json!({"path": "a.txt", "content": "x"}), Some("s__t path=\"a.txt\" …")),
            (json!({"thing": "/etc/passwd"}), Some("s__t thing=\"/etc/passwd\" …")),
            (json!({"filePath": "a", "body": "b c"}), Some("s__t filePath=\"a\" …")),
            (json!({"url": "https://a.example/x?y=1"}), Some("s__t url=https://a.example …")),
            (json!({"url": "https:///x"}), Some("s__t url=\"https:///x\" …")),
            (json!({"link": "https://u@a.example/x"}), Some("s__t link=\"https://u@a.example/x\" …")),
            (json!({"to": ["a@x.example", "b"], "body": "c"}), Some("s__t to=\"a@x.example\" to=\"b\" …")),
            (json!({"issue_number": 7, "page": 2}), Some("s__t issue_number=7 …")),
            (json!({"force": true, "note": "n"}), Some("s__t force=true …")),
            (json!({"nested": {"sql": "drop table a"}}), Some("s__t sql=\"drop table a\" …")),
            (json!({"code": "x".repeat(500)}), None),
        ] {
            assert_eq!(server_call_key("s__t", &input).as_deref(), key, "{input}");
        }
    }
}
