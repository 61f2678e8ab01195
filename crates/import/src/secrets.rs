//! Keys and tokens in the entries of MCP servers of other programs: references take their place, or they are left out.
//!
//! Invariant: a doubtful value counts as a secret.

use domain::key_text::{holds_key, starts_like_key};
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
        if holds_secret(name, text) {
            clean["env"][name] = json!(format!("${{env:{name}}}"));
            notes.push(format!("the value of {name} was not copied; set {name} in your environment"));
        }
    }
    let mut headers = Map::new();
    for (name, value) in entry["headers"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if holds_secret(name, text) {
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
    let words: Vec<&str> = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let others = [&entry["command"], &entry["url"]].into_iter().filter_map(Value::as_str);
    if others.chain(words.iter().copied()).any(line_holds_secret) || names_secret(&words) {
        return Err("its command or address seems to hold a key, which is not copied".to_owned());
    }
    Ok((clean, notes))
}

/// A value under a name of secrets, or one that looks like a secret. A reference to another place is none.
pub(super) fn holds_secret(name: &str, value: &str) -> bool {
    let own = without_references(value);
    let is_empty = matches!(own.trim(), "" | "Bearer" | "Basic" | "Token" | "token");
    is_secret(&own) || is_secret_name(name) && !is_empty
}

/// A command line or an address with a key: as a word of its own, or as `NAME=value` under a name of secrets.
pub(super) fn line_holds_secret(line: &str) -> bool {
    let own = without_references(line);
    let parts = own.split(|c: char| c.is_whitespace() || "?&;\"'`()".contains(c));
    let named = |part: &str| {
        part.split_once('=').is_some_and(|(name, value)| !value.is_empty() && is_secret_name(name))
    };
    is_secret(&own) || parts.into_iter().any(named)
}

/// `--token value`: an option under a name of secrets with its value in the next word. `Authorization: value`: a header.
fn names_secret(words: &[&str]) -> bool {
    let is_header = |word: &str| {
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.contains("://");
        is_name && word.split_once(':').is_some_and(|(name, value)| holds_secret(name, value))
    };
    words.iter().any(|word| is_header(word))
        || words.windows(2).any(|pair| {
            let is_option = pair[0].starts_with('-') && !pair[0].contains('=') && is_secret_name(pair[0]);
            is_option && !pair[1].starts_with('-') && !without_references(pair[1]).trim().is_empty()
        })
}

/// The text without `${env:NAME}` and the like.
fn without_references(text: &str) -> String {
    let mut own = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else { break };
        own.push_str(&rest[..start]);
        rest = &rest[start + end + 1..];
    }
    own + rest
}

/// The text of a chat without the keys in it.
pub(super) fn mask_keys(text: &str) -> String {
    if !holds_key(text) {
        return text.to_owned();
    }
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:=&?/@()[]{}<>\\".contains(c);
    let mask = |word: &str| {
        let (word, end) = word.split_at(word.trim_end_matches(is_end).len());
        let word = if holds_key(word) { "[a key that was not copied]" } else { word };
        format!("{word}{end}")
    };
    text.split_inclusive(is_end).map(mask).collect()
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
            json!({"command": "x", "args": ["--token", "hunter2"]}),
            json!({"command": "x", "args": ["--api-key=hunter2"]}),
            json!({"command": "x", "args": ["--header", "Authorization: Bearer hunter2"]}),
            json!({"url": "https://x.example/mcp?api_key=hunter2"}),
            json!({"command": "x", "args": ["postgres://me:hunter2@host/${env:NAME}"]}),
            json!({"command": "x", "args": ["--api-key", "sk-0123456789abcdef"]}),
            json!({"command": "x", "args": ["--token=a8f5f167f44f4964e6c998dee827110c"]}),
            json!({"url": "https://user:pass@x.example/mcp"}),
            json!({"url": "https://x.example/mcp?key=AIzaSyA1234567890"}),
        ] {
            assert!(remove(&entry).is_err(), "{entry}");
        }
        for entry in [
            json!({"command": "x", "args": ["--token", "${env:TOKEN}", "--header", "Authorization: Bearer ${env:T}"]}),
            json!({"command": "x", "args": ["--auth", "--port=80", "run:all", "C:\\keys"]}),
            json!({"url": "https://x.example/mcp?team=red&key=${env:K}"}),
        ] {
            assert!(remove(&entry).is_ok(), "{entry}");
        }
        let mixed = json!({"command": "x", "env": {"DSN": "postgres://me:hunter2@host/${env:NAME}"}});
        assert_eq!(remove(&mixed).unwrap().0["env"]["DSN"], "${env:DSN}");
        assert!(
            line_holds_secret("Bash(PGPASSWORD=hunter2 psql:*)") && !line_holds_secret("Bash(npm test:*)")
        );
    }

    #[test]
    fn keys_in_chats_are_masked() {
        for (text, expected) in [
            ("no key here, only sk-words", "no key here, only sk-words"),
            ("it is sk-0123456789abcdef01, ok", "it is [a key that was not copied], ok"),
            ("a=ghp_0123456789abcdef01\\n\"x\"", "a=[a key that was not copied]\\n\"x\""),
            ("ü sk-0123456789abcdef01", "ü [a key that was not copied]"),
        ] {
            assert_eq!(mask_keys(text), expected);
        }
    }
}
