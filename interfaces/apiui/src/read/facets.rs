//! What single keywords of a schema say: its type, its limits, its values, and whether it says anything at all.
//!
//! Owns the reading of one JSON object without following anything out of it.

use super::value::{flag, list, size, text};
use crate::spec::{Kind, Limits, Model};
use serde_json::Value;

/// What may stand beside any schema: words, flags, a default and an example.
pub(super) fn annotate(mut model: Model, value: &Value) -> Model {
    if let Some(description) = text(value, "description").or_else(|| text(value, "title")) {
        model.description = Some(description);
    }
    model.nullable |= flag(value, "nullable") || flag(value, "x-nullable");
    model.read_only |= flag(value, "readOnly");
    model.write_only |= flag(value, "writeOnly");
    model.deprecated |= flag(value, "deprecated");
    let small = |value: &&Value| size(value) <= 2_000;
    model.default = value.get("default").filter(small).cloned().or(model.default);
    let example = value.get("example").or_else(|| list(value, "examples").first());
    model.example = example.filter(small).cloned().or(model.example);
    model
}

pub(super) fn types_of(value: &Value) -> (Vec<Kind>, bool) {
    let named: Vec<&str> = match value.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let nullable = named.len() > 1 && named.contains(&"null");
    let mut kinds: Vec<Kind> = named.iter().filter_map(|name| kind_named(name)).collect();
    if nullable {
        kinds.retain(|kind| *kind != Kind::Null);
    }
    (kinds, nullable)
}

pub(super) fn kind_named(name: &str) -> Option<Kind> {
    Some(match name {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "number" | "float" | "double" => Kind::Number,
        "integer" | "int" | "long" => Kind::Integer,
        "boolean" | "bool" => Kind::Boolean,
        "null" => Kind::Null,
        "file" => Kind::File,
        _ => return None,
    })
}

pub(super) fn inferred(value: &Value) -> Kind {
    let has = |keys: &[&str]| keys.iter().any(|key| value.get(*key).is_some());
    if has(&["properties", "additionalProperties", "patternProperties"]) {
        Kind::Object
    } else if has(&["items", "prefixItems"]) {
        Kind::Array
    } else if has(&["enum", "const"]) {
        Kind::Enum
    } else if has(&["pattern", "minLength", "maxLength", "contentMediaType"]) {
        Kind::String
    } else if has(&["minimum", "maximum", "multipleOf"]) {
        Kind::Number
    } else {
        Kind::Any
    }
}

/// The values of `enum` or `const` without null, and whether null was among them.
pub(super) fn enumeration(value: &Value) -> Option<(Vec<Value>, bool)> {
    let all: Vec<&Value> = match (value.get("enum"), value.get("const")) {
        (Some(Value::Array(values)), _) if !values.is_empty() => values.iter().collect(),
        (_, Some(constant)) => vec![constant],
        _ => return None,
    };
    let plain = |value: &&&Value| !value.is_null();
    let values: Vec<Value> = all.iter().filter(plain).take(2_000).map(|value| (*value).clone()).collect();
    Some((values, all.iter().any(|value| value.is_null())))
}

/// The words for the values of an enumeration, by the extensions that generators of code know; none if one is missing.
pub(super) fn enumeration_labels(value: &Value) -> Vec<String> {
    let values = list(value, "enum");
    for key in ["x-enumNames", "x-enum-varnames", "x-enum-names", "x-enum-labels"] {
        let labels: Vec<String> =
            list(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if !labels.is_empty() && labels.len() == values.len() {
            let shown = values.iter().zip(labels).filter(|(value, _)| !value.is_null());
            return shown.map(|(_, label)| label).collect();
        }
    }
    Vec::new()
}

pub(super) fn is_file(value: &Value) -> bool {
    let format = text(value, "format").unwrap_or_default();
    let media = text(value, "contentMediaType").unwrap_or_default();
    format == "binary" || (media == "application/octet-stream" && value.get("contentEncoding").is_none())
}

pub(super) fn limits(value: &Value) -> Option<Box<Limits>> {
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    let count = |key: &str| value.get(key).and_then(Value::as_u64);
    // OpenAPI 3.0 has flags beside the bounds, 3.1 has bounds of their own.
    let (above, below) = (number("exclusiveMinimum"), number("exclusiveMaximum"));
    let limits = Limits {
        minimum: above.or(number("minimum")),
        maximum: below.or(number("maximum")),
        exclusive_minimum: above.is_some() || flag(value, "exclusiveMinimum"),
        exclusive_maximum: below.is_some() || flag(value, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text(value, "pattern"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(value, "uniqueItems"),
    };
    (limits != Limits::default()).then(|| Box::new(limits))
}

pub(super) const SHAPING: [&str; 13] = [
    "$ref",
    "type",
    "properties",
    "items",
    "enum",
    "const",
    "allOf",
    "oneOf",
    "anyOf",
    "format",
    "additionalProperties",
    "patternProperties",
    "prefixItems",
];

/// Whether a variant says what the value is, and not only which properties are required.
pub(super) fn has_substance(value: &Value) -> bool {
    SHAPING.iter().any(|key| value.get(*key).is_some())
        && !(value.get("type").is_some_and(|kind| kind == "object")
            && value.as_object().is_some_and(|map| {
                map.len() <= 2 && map.contains_key("required") && !map.contains_key("properties")
            }))
}

pub(super) fn has_substance_beside_reference(value: &Value) -> bool {
    const KEYS: [&str; 6] = ["properties", "allOf", "oneOf", "anyOf", "enum", "required"];
    value.get("$ref").is_some() && KEYS.iter().any(|key| value.get(*key).is_some())
}

pub(super) fn has_substance_beside_all_of(value: &Value) -> bool {
    const KEYS: [&str; 6] = ["properties", "oneOf", "anyOf", "enum", "required", "additionalProperties"];
    KEYS.iter().any(|key| value.get(*key).is_some())
}
