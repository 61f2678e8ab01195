//! What the generated JSON Schema of the settings needs besides, for editors.

use serde_json::{Map, Value, json};

/// Every key may be left out or be null; an ignored key says so to editors.
pub(super) fn polish(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(polish),
        Value::Object(object) => {
            if object.contains_key("properties") {
                object.remove("required");
            }
            object.remove("format");
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.values_mut().filter_map(Value::as_object_mut).for_each(polish_property);
            }
            for (key, inner) in object.iter_mut() {
                match (key.as_str(), inner) {
                    ("default" | "examples" | "enum" | "const", _) => {}
                    // A map of names, which is no schema itself.
                    ("properties" | "definitions", Value::Object(named)) => {
                        named.values_mut().for_each(polish)
                    }
                    (_, inner) => polish(inner),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn polish_property(property: &mut Map<String, Value>) {
    if let Some(Value::String(kind)) = property.get("type").cloned()
        && !property.contains_key("enum")
    {
        property.insert("type".into(), json!([kind, "null"]));
    }
    if property.get("x-unsupported") == Some(&Value::Bool(true)) {
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        property.insert("description".into(), format!("Not supported, ignored. {text}").trim_end().into());
        property.insert("deprecated".into(), true.into());
    }
}
