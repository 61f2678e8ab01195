//! Reads what small models send: numbers and flags as strings. The schema says the real type.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
