//! Tells the formats apart, and names those that are not supported.
//!
//! Owns every rule of the form "this looks like X". Reads nothing further than it must.

use super::text::beginning;
use super::value::text_of;
use crate::problem::{Problem, ProblemKind, ProblemLocation, excerpt};
use serde_json::Value;

const SUPPORTED: &str =
    "Supported are OpenAPI 3.0 and 3.1, Swagger 2.0 and GraphQL (SDL or introspection JSON).";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Json,
    Yaml,
    Graphql,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    Normalized,
    Introspection,
    Openapi3,
    Swagger2,
}

/// By the first characters of the text, helped by the ending of its name.
pub fn format_of_text(text: &str, location: Option<&str>) -> Result<TextFormat, Problem> {
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Problem::error(
            ProblemKind::Structure,
            ProblemLocation::Document,
            "The specification is empty.",
            format!("Send the text of an API specification. {SUPPORTED}"),
        ));
    }
    if let Some(name) = foreign_text(start) {
        return Err(unsupported(name));
    }
    if start.starts_with('{') || start.starts_with('[') {
        return Ok(TextFormat::Json);
    }
    let named = |endings: &[&str]| {
        location.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            endings.iter().any(|ending| name.ends_with(ending))
        })
    };
    if named(&[".graphql", ".graphqls", ".gql"]) || looks_like_sdl(start) {
        return Ok(TextFormat::Graphql);
    }
    Ok(TextFormat::Yaml)
}

/// By the keys at the root.
pub fn format_of_value(value: &Value) -> Result<ValueFormat, Problem> {
    let Value::Object(root) = value else { return Err(not_a_specification(value)) };
    if let Some(version) = root.get("openapi") {
        return openapi_version(version);
    }
    if let Some(version) = root.get("swagger").or_else(|| root.get("swaggerVersion")) {
        return swagger_version(version);
    }
    let schema = root.get("data").unwrap_or(value).get("__schema");
    if schema.is_some() {
        return Ok(ValueFormat::Introspection);
    }
    let normalized = ["endpoints", "queries", "mutations", "subscriptions"];
    if normalized.iter().any(|key| root.get(*key).is_some_and(Value::is_array))
        || root.contains_key("metadata") && root.contains_key("format")
    {
        return Ok(ValueFormat::Normalized);
    }
    match foreign_value(value) {
        Some(name) => Err(unsupported(name)),
        None => Err(not_a_specification(value)),
    }
}

fn foreign_text(start: &str) -> Option<&'static str> {
    if start.starts_with("#%RAML") {
        return Some("RAML");
    }
    if start.starts_with("FORMAT: 1A") || start.starts_with("FORMAT:1A") {
        return Some("API Blueprint");
    }
    if start.starts_with("syntax = \"proto") || start.starts_with("syntax=\"proto") {
        return Some("Protocol Buffers");
    }
    if start.starts_with("PK\u{3}\u{4}") {
        return Some("a ZIP archive");
    }
    if !start.starts_with('<') {
        return None;
    }
    let head: String = start.chars().take(4000).collect::<String>().to_ascii_lowercase();
    Some(if head.contains("<!doctype html") || head.contains("<html") || head.contains("<body") {
        "an HTML page"
    } else if head.contains("schemas.xmlsoap.org/wsdl")
        || head.contains("www.w3.org/ns/wsdl")
        || head.contains(":definitions")
    {
        "WSDL"
    } else if head.contains("wadl") {
        "WADL"
    } else if head.contains("edmx") {
        "OData metadata"
    } else {
        "XML"
    })
}

fn foreign_value(value: &Value) -> Option<&'static str> {
    let has = |key: &str| value.get(key).is_some();
    let schema = value.pointer("/info/schema").and_then(Value::as_str).unwrap_or_default();
    if has("asyncapi") {
        Some("AsyncAPI")
    } else if has("arazzo") {
        Some("Arazzo")
    } else if schema.contains("getpostman.com") || value.pointer("/info/_postman_id").is_some() {
        Some("a Postman collection")
    } else if has("_type") && has("resources") {
        Some("an Insomnia export")
    } else if value.get("kind").and_then(Value::as_str) == Some("discovery#restDescription") {
        Some("a Google discovery document")
    } else if value.pointer("/log/entries").is_some() {
        Some("a HAR recording")
    } else if has("$schema") || has("$defs") {
        Some("JSON Schema without an API")
    } else {
        None
    }
}

/// A GraphQL document begins with a definition keyword that no colon follows, or with a description.
fn looks_like_sdl(start: &str) -> bool {
    let mut rest = start;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        match rest.strip_prefix('#') {
            Some(comment) => rest = comment.split_once('\n').map_or("", |(_, after)| after),
            None => break,
        }
    }
    if rest.starts_with("\"\"\"") {
        return true;
    }
    if let Some(after) = rest.strip_prefix('"') {
        // A one-line description, then a definition; a quoted YAML key has a colon there.
        let after = after.split_once('"').map_or("", |(_, after)| after);
        return !after.trim_start().starts_with(':') && definition_keyword(after.trim_start());
    }
    definition_keyword(rest)
}

fn definition_keyword(text: &str) -> bool {
    const KEYWORDS: [&str; 9] =
        ["type", "schema", "scalar", "enum", "input", "interface", "union", "directive", "extend"];
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    let after_blank = after.trim_start();
    KEYWORDS.contains(&word)
        && !after.starts_with(':')
        && after_blank.starts_with(|c: char| c.is_ascii_alphabetic() || "_@{".contains(c))
}

fn openapi_version(version: &Value) -> Result<ValueFormat, Problem> {
    let version = text_of(version).unwrap_or_default();
    match version.as_bytes() {
        [b'3'] | [b'3', b'.', b'0'..=b'2', ..] => Ok(ValueFormat::Openapi3),
        _ => Err(unsupported_version("/openapi", "OpenAPI", &version)),
    }
}

fn swagger_version(version: &Value) -> Result<ValueFormat, Problem> {
    let version = text_of(version).unwrap_or_default();
    match version.as_str() {
        "2" | "2.0" | "2.0.0" => Ok(ValueFormat::Swagger2),
        _ => Err(unsupported_version("/swagger", "Swagger", &version)),
    }
}

fn unsupported_version(pointer: &str, name: &str, version: &str) -> Problem {
    let message = if version.is_empty() {
        format!("The version of {name} is not given as text.")
    } else {
        format!("There is no support for {name} version {}.", excerpt(version))
    };
    Problem::error(
        ProblemKind::UnsupportedVersion,
        ProblemLocation::pointer(pointer),
        message,
        format!("Correct the version or convert the document. {SUPPORTED}"),
    )
}

fn unsupported(name: &str) -> Problem {
    let advice = match name {
        "an HTML page" => {
            format!(
                "Perhaps the address asks for a sign-in or shows documentation: find the address of the specification itself. {SUPPORTED}"
            )
        }
        "a ZIP archive" => format!("Unpack it first. {SUPPORTED}"),
        "XML" | "JSON Schema without an API" => SUPPORTED.to_owned(),
        _ => format!("Convert it to OpenAPI (converters exist). {SUPPORTED}"),
    };
    Problem::error(
        ProblemKind::UnsupportedFormat,
        ProblemLocation::Document,
        format!("This is {name}, which is not supported."),
        advice,
    )
}

fn not_a_specification(value: &Value) -> Problem {
    if let Some(text) = value.as_str().filter(|text| is_a_place(text)) {
        return Problem::error(
            ProblemKind::UnsupportedFormat,
            ProblemLocation::pointer(""),
            format!("This is where a specification is (“{}”), not the specification.", beginning(text)),
            "Send what is there.",
        );
    }
    let found = match value {
        Value::Object(root) if root.is_empty() => "an empty object".to_owned(),
        Value::Object(root) => {
            let keys: Vec<String> = root.keys().take(5).map(|key| format!("`{}`", excerpt(key))).collect();
            format!("an object with {}", keys.join(", "))
        }
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("plain text (“{}”)", beginning(text)),
        Value::Null => "nothing".to_owned(),
        _ => "a single value".to_owned(),
    };
    Problem::error(
        ProblemKind::UnsupportedFormat,
        ProblemLocation::pointer(""),
        format!(
            "This is not an API specification: found {found}, without an `openapi` or `swagger` version."
        ),
        SUPPORTED,
    )
}

/// An address, or the path of a file as specifications have.
fn is_a_place(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let is_address = ["http://", "https://", "file://"].iter().any(|start| lower.starts_with(start));
    let is_file = [".json", ".yaml", ".yml", ".graphql", ".graphqls"].iter().any(|end| lower.ends_with(end));
    !text.contains(char::is_whitespace) && (is_address || is_file)
}
