//! MCP servers as `.mcp.json` has them: `${VAR}` and `${VAR:-default}` are variables there.

use serde_json::{Map, Value};

/// Keys that mean the same here.
const KEPT: [&str; 6] = ["command", "args", "env", "url", "headers", "disabled"];

/// The servers as our settings. `places` are names with the paths that they stand for, such as the folder of a plugin.
pub(crate) fn translate(servers: &Value, places: &[(&str, &str)]) -> Value {
    let entries = servers.as_object().into_iter().flatten();
    let server = |(name, server): (&String, &Value)| {
        let fields = server.as_object().into_iter().flatten();
        let fields = fields.filter(|(key, _)| KEPT.contains(&key.as_str()));
        let fields: Map<String, Value> =
            fields.map(|(key, value)| (key.clone(), with_variables(value, places))).collect();
        (name.clone(), Value::Object(fields))
    };
    Value::Object(entries.map(server).collect())
}

fn with_variables(value: &Value, places: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => Value::String(text_with_variables(text, places)),
        Value::Array(values) => values.iter().map(|value| with_variables(value, places)).collect(),
        Value::Object(values) => {
            let entries = values.iter().map(|(key, value)| (key.clone(), with_variables(value, places)));
            Value::Object(entries.collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other.clone(),
    }
}

/// Claude Code does not know references such as `${cmd:…}`: they stay as text that nothing looks up.
fn text_with_variables(text: &str, places: &[(&str, &str)]) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("${") {
        result.push_str(before);
        let Some((inner, after)) = inside.split_once('}') else {
            result.push_str("$ {");
            rest = inside;
            continue;
        };
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, text)| (name, Some(text)));
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        match (places.iter().find(|(known, _)| *known == name), default) {
            (Some((_, path)), _) => result.push_str(path),
            (None, Some(default)) if is_name(name) => result.push_str(&format!("${{env:{name}:{default}}}")),
            (None, None) if is_name(name) => result.push_str(&format!("${{env:{name}}}")),
            (None, _) => result.push_str(&format!("$ {{{inner}}}")),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}
