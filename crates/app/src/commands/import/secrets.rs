//! Keys and tokens in the entries of MCP servers of other programs: references take their place, or they are left out.
//!
//! Invariant: a doubtful value counts as a secret.

use domain::key_text::starts_like_key;
use serde_json::{Map, Value, json};

const NAME_PARTS: [&str; 10] =
    ["KEY", "TOKEN", "SECRET", "PASSW", "AUTH", "CREDENTIAL", "BEARER", "COOKIE", "SESSION", "PRIVATE"];
/// A word of letters and digits with at least this many characters may be a key.
const RANDOM_CHARS: usize = 24;

/// The entry without secrets and notes about them, or why it cannot be used.
pub(super) fn remove(entry: &Value) -> Result<(Value, Vec<String>), String> {
    let mut clean = entry.clone();
    let mut notes = Vec::new();
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if !is_reference(text) && (is_secret_name(name) || is_secret(text)) {
            clean["env"][name] = json!(format!("${{env:{name}}}"));
            notes.push(format!("the value of {name} was not copied; set {name} in your environment"));
        }
    }
    let mut headers = Map::new();
    for (name, value) in entry["headers"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if !is_reference(text) && (is_secret_name(name) || is_secret(text)) {
            notes.push(format!(
                "the header {name} was not copied; add it with a reference such as ${{env:NAME}}"
            ));
        } else {
            headers.insert(name.clone(), value.clone());
        }
    }
    if entry["headers"].is_object() {
        clean["headers"] = headers.into();
    }
    let words = entry["args"].as_array().into_iter().flatten().chain([&entry["command"], &entry["url"]]);
    if words.filter_map(Value::as_str).any(|word| !is_reference(word) && is_secret(word)) {
        return Err("its command or address seems to hold a key, which is not copied".to_owned());
    }
    Ok((clean, notes))
}

fn is_reference(text: &str) -> bool {
    text.contains("${env:") || text.contains("${file:") || text.contains("${cmd:")
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    NAME_PARTS.iter().any(|part| name.contains(part))
}

/// A text with a part that looks like a key.
pub(super) fn is_secret(text: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:=&?/@()[]{}<>".contains(c);
    text.split(is_end).any(|word| {
        let random = word.len() >= RANDOM_CHARS
            && word.chars().any(|c| c.is_ascii_digit())
            && word.chars().any(|c| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c))
            // Names of packages and versions have words in them.
            && word.split(['-', '_', '.']).any(|part| part.len() >= RANDOM_CHARS / 2 && part.chars().any(|c| c.is_ascii_digit()));
        random || starts_like_key(word)
    }) || text.contains("://") && text.split("://").nth(1).is_some_and(|rest| {
        rest.split('/').next().is_some_and(|authority| authority.contains('@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_references_or_are_left_out() {
        let entry = json!({"command": "npx", "args": ["-y", "@scope/some-server-2024@1.0.0", "--port", "8080"],
            "env": {"API_KEY": "abc", "MODE": "fast", "REF": "${env:X}", "OTHER": "ghp_0123456789abcdef"}});
        let (clean, notes) = remove(&entry).unwrap();
        assert_eq!(
            clean["env"],
            json!({"API_KEY": "${env:API_KEY}", "MODE": "fast", "REF": "${env:X}", "OTHER": "${env:OTHER}"})
        );
        assert_eq!(notes.len(), 2);
        let (clean, notes) = remove(
            &json!({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer abc", "X": "1"}}),
        )
        .unwrap();
        assert_eq!((&clean["headers"], notes.len()), (&json!({"X": "1"}), 1));
        for entry in [
            json!({"command": "x", "args": ["--api-key", "sk-0123456789abcdef"]}),
            json!({"command": "x", "args": ["--token=a8f5f167f44f4964e6c998dee827110c"]}),
            json!({"url": "https://user:pass@x.example/mcp"}),
            json!({"url": "https://x.example/mcp?key=AIzaSyA1234567890"}),
        ] {
            assert!(remove(&entry).is_err(), "{entry}");
        }
    }
}
