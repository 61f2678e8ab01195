//! Parameters as texts: the styles of paths and queries, and form bodies.

use crate::plan::Input;
use serde_json::Value;
use std::fmt::Write;

/// Percent-encodes all but unreserved characters.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A path parameter in the styles simple, label and matrix.
pub(super) fn path_text(input: &Input, value: &Value) -> String {
    let parts: Vec<String> = match value {
        Value::Array(all) => all.iter().map(|one| encoded(&text(one))).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, one)| {
                let between = if input.explode == Some(true) { "=" } else { "," };
                format!("{}{between}{}", encoded(name), encoded(&text(one)))
            })
            .collect(),
        one => vec![encoded(&text(one))],
    };
    let explodes = input.explode == Some(true);
    match input.format.as_str() {
        "label" => format!(".{}", parts.join(if explodes { "." } else { "," })),
        "matrix" if explodes && value.is_array() => {
            parts.iter().map(|part| format!(";{}={part}", encoded(&input.name))).collect()
        }
        "matrix" if explodes && value.is_object() => parts.iter().map(|part| format!(";{part}")).collect(),
        "matrix" => format!(";{}={}", encoded(&input.name), parts.join(",")),
        _ => parts.join(","),
    }
}

/// A query parameter as pairs that are not encoded yet.
pub(super) fn query_pairs(input: &Input, value: &Value) -> Vec<(String, String)> {
    let name = &input.name;
    let separator = match input.format.as_str() {
        "json" => return vec![(name.clone(), value.to_string())],
        "deepObject" if value.is_array() => return brackets(&format!("{name}[]"), value, false),
        "deepObject" => return brackets(name, value, false),
        "spaceDelimited" => " ",
        "pipeDelimited" => "|",
        "tabDelimited" => "\t",
        _ => ",",
    };
    let explodes = input.explode.unwrap_or(matches!(input.format.as_str(), "" | "form"));
    match value {
        Value::Array(all) if explodes => all.iter().map(|one| (name.clone(), text(one))).collect(),
        Value::Array(all) => {
            vec![(name.clone(), all.iter().map(text).collect::<Vec<_>>().join(separator))]
        }
        Value::Object(members) if explodes => {
            members.iter().map(|(name, one)| (name.clone(), text(one))).collect()
        }
        Value::Object(members) => {
            let parts: Vec<String> =
                members.iter().map(|(name, one)| format!("{name}{separator}{}", text(one))).collect();
            vec![(name.clone(), parts.join(separator))]
        }
        one => vec![(name.clone(), text(one))],
    }
}

/// Pairs of a nested value, the path in brackets.
pub(super) fn brackets(name: &str, value: &Value, is_indexed: bool) -> Vec<(String, String)> {
    match value {
        Value::Array(all) => (0..)
            .zip(all)
            .flat_map(|(at, one): (usize, &Value)| {
                let is_open = one.is_array() || one.is_object();
                let name = if is_indexed || is_open { format!("{name}[{at}]") } else { name.to_owned() };
                brackets(&name, one, is_indexed)
            })
            .collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, one)| brackets(&format!("{name}[{key}]"), one, is_indexed))
            .collect(),
        one => vec![(name.to_owned(), text(one))],
    }
}

/// Pairs as a query or a form body.
pub(super) fn joined(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}
