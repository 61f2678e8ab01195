//! `x-mcp-header`: arguments of a tool that are repeated as headers, so that gateways can read them (2026-07-28).
//!
//! Invariant: a schema whose annotations break the rules has no headers at all; its tool is left out.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::message::header_text;

/// One annotated argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ParamHeader {
    /// The way to the argument.
    path: Vec<String>,
    name: HeaderName,
}

/// The annotated arguments of a schema; the error says which rule an annotation breaks.
pub(crate) fn param_headers(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> Result<(), String> {
    for (argument, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(argument.clone());
        if let Some(annotation) = property.get("x-mcp-header") {
            let header = read_annotation(annotation, property, path)?;
            if found.iter().any(|known| known.name == header.name) {
                return Err("two arguments name the same header".to_owned());
            }
            found.push(header);
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn read_annotation(annotation: &Value, property: &Value, path: &[String]) -> Result<ParamHeader, String> {
    let name = annotation.as_str().filter(|name| !name.is_empty()).ok_or("a header has no name")?;
    if !matches!(property["type"].as_str(), Some("string" | "integer" | "boolean")) {
        return Err("a header is made of an argument that is no string, integer or boolean".to_owned());
    }
    let name = HeaderName::try_from(format!("mcp-param-{name}"))
        .map_err(|_| "a header has a name with forbidden characters".to_owned())?;
    Ok(ParamHeader { path: path.to_vec(), name })
}

/// The headers of a call, from its body. An argument that is null or missing has none.
pub(super) fn values(headers: &[ParamHeader], body: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    for header in headers {
        let start = &message["params"]["arguments"];
        let value = header.path.iter().try_fold(start, |value, name| value.get(name));
        let text = match value {
            Some(Value::String(text)) if text.is_empty() => String::new(),
            Some(Value::String(text)) => header_text(text),
            Some(plain @ (Value::Bool(_) | Value::Number(_))) => plain.to_string(),
            _ => continue,
        };
        if let Ok(value) = HeaderValue::try_from(text) {
            map.insert(header.name.clone(), value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotated_arguments_become_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "inner": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "query": {"type": "string"},
        }});
        let headers = param_headers(&schema).unwrap();
        let body = json!({"params": {"arguments": {
            "region": "größe", "count": 42, "inner": {"flag": false}, "query": "x"}}});
        let map = values(&headers, body.to_string().as_bytes());
        assert_eq!(map["mcp-param-region"], "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(
            (&map["mcp-param-count"], &map["mcp-param-flag"]),
            (&"42".parse().unwrap(), &"false".parse().unwrap())
        );
        assert_eq!(map.len(), 3);
        let body = json!({"params": {"arguments": {"region": null}}});
        assert!(values(&headers, body.to_string().as_bytes()).is_empty());
    }

    #[test]
    fn annotations_that_break_the_rules_are_refused() {
        let refused = |property: Value| param_headers(&json!({"properties": {"a": property}})).is_err();
        assert!(refused(json!({"type": "string", "x-mcp-header": ""})));
        assert!(refused(json!({"type": "string", "x-mcp-header": 7})));
        assert!(refused(json!({"type": "number", "x-mcp-header": "A"})));
        assert!(refused(json!({"type": "object", "x-mcp-header": "A"})));
        for name in ["My Region", "A:B", "Région", "A\t1"] {
            assert!(refused(json!({"type": "string", "x-mcp-header": name})), "{name}");
        }
        let twice = json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "F"}, "b": {"type": "string", "x-mcp-header": "f"}}});
        assert!(param_headers(&twice).is_err());
    }
}
