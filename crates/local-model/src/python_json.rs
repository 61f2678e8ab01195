//! Owns JSON as chat templates expect it: with a space after commas and colons, and no letter escaped needlessly.
//! Must not know templates or models. Invariant: the text is the same value, in the same order.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;

/// The filter `tojson`, with its optional `indent`.
pub(crate) fn filter(value: Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let json = serde_json::to_value(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let mut text = String::new();
    write(&json, indent.map(|width| (width.min(8), 0)), &mut text);
    Ok(text)
}

/// `indent` is the width of a level and the depth of this value; without it all is one line.
fn write(json: &Json, indent: Option<(usize, usize)>, text: &mut String) {
    let inner = indent.map(|(width, depth)| (width, depth + 1));
    let line = |indent: Option<(usize, usize)>, text: &mut String| {
        if let Some((width, depth)) = indent {
            text.push('\n');
            text.push_str(&" ".repeat(width * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match json {
        Json::Array(items) if !items.is_empty() => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { comma } else { "" });
                line(inner, text);
                write(item, inner, text);
            }
            line(indent, text);
            text.push(']');
        }
        Json::Object(members) if !members.is_empty() => {
            text.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                text.push_str(if at > 0 { comma } else { "" });
                line(inner, text);
                text.push_str(&Json::from(name.as_str()).to_string());
                text.push_str(": ");
                write(member, inner, text);
            }
            line(indent, text);
            text.push('}');
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            text.push_str(&json.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_is_as_python_writes_it() {
        let value = json!({"b": [1, 2.5, null], "a": {"ü": "x\n\"<"}, "c": [], "d": {}});
        let mut text = String::new();
        write(&value, None, &mut text);
        assert_eq!(text, r#"{"b": [1, 2.5, null], "a": {"ü": "x\n\"<"}, "c": [], "d": {}}"#);
        let mut text = String::new();
        write(&json!({"a": [1, {"b": 2}]}), Some((2, 0)), &mut text);
        assert_eq!(text, "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ]\n}");
    }
}
