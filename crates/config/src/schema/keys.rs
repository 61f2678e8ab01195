//! The keys of the schema: a flat list of them, and the keys of a file that the schema does not know or marks as
//! ignored, each unknown one with the nearest known key.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{json_schema, known_keys};
use crate::tree::dotted;

static SCHEMA: LazyLock<Value> = LazyLock::new(json_schema);

/// One key of the schema.
pub(super) struct Key {
    /// With `*` for a name that the user chooses and `[]` for the entries of a list.
    pub(super) path: String,
    pub(super) schema: Map<String, Value>,
}

/// A key of a file that has no effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyFinding {
    Unknown { path: Vec<String> },
    Unsupported { path: Vec<String> },
}

/// Every key, in the order of the types.
pub(super) fn all() -> Vec<Key> {
    let mut keys = Vec::new();
    collect(&SCHEMA, "", &mut keys);
    keys
}

/// The keys of a file that have no effect.
pub(crate) fn find_in_object(values: &Map<String, Value>) -> Vec<KeyFinding> {
    // Building the schema costs more than the rest of the start, so only a file with such keys pays for it.
    if known_keys::KNOWN.holds_all(values) { Vec::new() } else { find_by_schema(values) }
}

pub(super) fn find_by_schema(values: &Map<String, Value>) -> Vec<KeyFinding> {
    let mut findings = Vec::new();
    search(&SCHEMA, values, &mut Vec::new(), &mut findings);
    findings
}

pub(super) fn is_unsupported(schema: &Map<String, Value>) -> bool {
    schema.get("x-unsupported") == Some(&Value::Bool(true))
}

fn collect(schema: &Value, prefix: &str, keys: &mut Vec<Key>) {
    let schema = resolve(schema);
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let Some(property_schema) = property.as_object() else { continue };
            let ignored = is_unsupported(property_schema);
            keys.push(Key { path: path.clone(), schema: property_schema.clone() });
            if !ignored {
                collect(property, &path, keys);
            }
        }
    }
    if let Some(entry @ Value::Object(_)) = schema.get("additionalProperties") {
        collect(entry, &format!("{prefix}.*"), keys);
    }
    if let Some(item) = schema.get("items") {
        collect(item, &format!("{prefix}[]"), keys);
    }
}

fn search(
    schema: &Value,
    values: &Map<String, Value>,
    path: &mut Vec<String>,
    findings: &mut Vec<KeyFinding>,
) {
    let schema = resolve(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let entry = schema.get("additionalProperties");
    for (name, value) in values {
        path.push(name.clone());
        match (properties.and_then(|properties| properties.get(name)), entry) {
            (Some(Value::Object(property)), _) if is_unsupported(property) => {
                findings.push(KeyFinding::Unsupported { path: path.clone() });
            }
            (Some(property), _) => search_value(property, value, path, findings),
            (None, Some(Value::Bool(false))) => {
                findings.push(KeyFinding::Unknown { path: path.clone() });
            }
            (None, Some(entry @ Value::Object(_))) => search_value(entry, value, path, findings),
            (None, _) => {}
        }
        path.pop();
    }
}

fn search_value(schema: &Value, value: &Value, path: &mut Vec<String>, findings: &mut Vec<KeyFinding>) {
    match value {
        Value::Object(values) => search(schema, values, path, findings),
        Value::Array(items) => {
            let Some(item_schema) = resolve(schema).get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                path.push(format!("[{index}]"));
                search_value(item_schema, item, path, findings);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The known key that an unknown one most likely means, as a full path.
pub(crate) fn suggest(path: &[String]) -> Option<String> {
    let (name, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(&*SCHEMA, |schema, key| {
        let schema = resolve(schema);
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        property.or_else(|| schema.get("additionalProperties")).or_else(|| schema.get("items"))
    });
    let siblings = parent.map(resolve).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let siblings = siblings.into_iter().flat_map(Map::keys).map(String::as_str);
    if let Some(sibling) = nearest(name, siblings) {
        return Some(dotted(parents.iter().map(String::as_str).chain([sibling])));
    }
    // The right key in the wrong place.
    all().into_iter().map(|key| key.path).find(|path| path.rsplit('.').next() == Some(name))
}

/// The name of the list that is closest to a misspelled one, where one is close.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &lower);
    let (distance, known) = known.into_iter().map(|known| (distance(known), known)).min()?;
    (distance <= (name.chars().count() / 3).max(1)).then_some(known)
}

/// The schema that a reference leads to.
pub(super) fn resolve(schema: &Value) -> &Value {
    let mut schema = schema;
    for _ in 0..8 {
        let inner = schema.get("allOf").and_then(|all| all.get(0)).unwrap_or(schema);
        let Some(name) = inner.get("$ref").and_then(Value::as_str) else { return schema };
        let Some(target) = name.strip_prefix('#').and_then(|pointer| SCHEMA.pointer(pointer)) else {
            return schema;
        };
        schema = target;
    }
    schema
}
