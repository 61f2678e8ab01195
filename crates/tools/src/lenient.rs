//! Reads what small models send: numbers and flags as strings, and a value for every optional argument. The schema says the
//! real type.

use std::collections::HashSet;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Kinds of grants that one command may need; more are a copy of the list.
const MOST_KINDS: usize = 5;

#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(f64),
    Text(String),
    Flag(bool),
    Nothing(()),
}

/// A whole number that may be missing.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let number = match Loose::deserialize(deserializer)? {
        Loose::Number(number) => number,
        Loose::Text(text) if text.trim().is_empty() => return Ok(None),
        Loose::Text(text) => {
            text.trim().parse().map_err(|_| D::Error::custom(format!("`{text}` is no number")))?
        }
        Loose::Nothing(()) => return Ok(None),
        Loose::Flag(_) => return Err(D::Error::custom("a number is wanted, not a truth value")),
    };
    if !number.is_finite() || number < 0.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
        return Err(D::Error::custom(format!("`{number}` is no whole number from 0 on")));
    }
    // In range by the check above.
    Ok(Some(number as usize))
}

/// A number that may be missing; models that fill every argument write 0 for it.
pub(crate) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    Ok(number(deserializer)?.filter(|number| *number > 0))
}

/// A folder that may be missing or empty: that of the workspace.
pub(crate) fn folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let named = Option::<String>::deserialize(deserializer)?.filter(|text| !text.trim().is_empty());
    Ok(named.unwrap_or_else(|| ".".to_owned()))
}

/// Grants that a call asks for. A model that has nothing to ask for may write an empty text, or all grants that there are:
/// neither is a request.
pub(crate) fn grants<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = match Value::deserialize(deserializer)? {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::String(text) => text.split(',').map(str::to_owned).collect(),
        list @ Value::Array(_) => Vec::<String>::deserialize(list).map_err(D::Error::custom)?,
        other @ (Value::Bool(true) | Value::Number(_) | Value::Object(_)) => {
            return Err(D::Error::custom(format!("`{other}` is no list of grants")));
        }
    };
    let is_named = |text: &String| !matches!(text.as_str(), "" | "none" | "null" | "[]");
    let texts: Vec<String> = texts.iter().map(|text| text.trim().to_owned()).filter(is_named).collect();
    let kinds: HashSet<&str> = texts.iter().filter_map(|text| text.split(':').next()).collect();
    Ok(if kinds.len() > MOST_KINDS { Vec::new() } else { texts })
}

/// A flag that may be missing.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Loose::deserialize(deserializer)? {
        Loose::Flag(flag) => Ok(flag),
        Loose::Nothing(()) => Ok(false),
        Loose::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            _ => Err(D::Error::custom(format!("`{text}` is neither true nor false"))),
        },
        Loose::Number(number) => Ok(number != 0.0),
    }
}

/// A list that may be missing, be a single entry, or be written as a text of JSON.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let value = match Value::deserialize(deserializer)? {
        Value::String(text) if text.trim().is_empty() => Value::Null,
        Value::String(text) => serde_json::from_str(&text).map_err(D::Error::custom)?,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other
        }
    };
    let entries = match value {
        Value::Null => Vec::new(),
        Value::Array(entries) => entries,
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => vec![other],
    };
    entries.into_iter().map(|entry| serde_json::from_value(entry).map_err(D::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a call may have in the place of an argument that it does not need.
    #[test]
    fn arguments_that_are_filled_without_need_ask_for_nothing() {
        for empty in [json!(null), json!(""), json!([]), json!([""]), json!("none"), json!(false)] {
            assert_eq!(grants(&empty).ok(), Some(Vec::new()), "{empty}");
        }
        let all = json!([
            "network:HOST",
            "port:80",
            "write:/PATH",
            "secret:PATH",
            "registries",
            "registry-credentials",
            "run-later",
            "git-config",
            "ssh",
            "signing",
            "cloud"
        ]);
        assert_eq!(grants(&all).ok(), Some(Vec::new()));
        let two = json!(["network:a.example", "network:b.example", "registries"]);
        assert_eq!(grants(&two).map(|grants| grants.len()).ok(), Some(3));
        assert_eq!(grants(&json!("ssh, registries")).ok(), Some(vec!["ssh".into(), "registries".into()]));
        assert!(grants(&json!(7)).is_err());
        assert_eq!((positive(&json!(0)).ok(), positive(&json!("12")).ok()), (Some(None), Some(Some(12))));
        let folders = [json!(""), json!(null), json!("src")].map(|text| folder(&text).unwrap_or_default());
        assert_eq!(folders, [".", ".", "src"]);
    }
}
