//! The arguments of a call as a value. Must not know tools.

use serde_json::Value;

/// Arguments are a JSON object; an empty text means an empty object.
pub fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(empty());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("The arguments must be a JSON object.".into()),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}.")),
    }
}

pub(super) fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object() {
        assert_eq!(parse(" \n"), Ok(json!({})));
        assert_eq!(parse(r#"{"a": 1}"#), Ok(json!({"a": 1})));
        assert!(parse("[1]").is_err());
        assert!(parse("null").is_err());
        assert!(parse("{").is_err());
    }
}
