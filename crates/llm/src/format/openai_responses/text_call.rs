//! Calls whose one argument is plain text (`custom` tools of the Responses API), as the JSON arguments that the engine reads.
//!
//! Invariant: the pieces together are one JSON object, however the text is cut.

use serde_json::Value;

/// What is before the text of the argument.
pub(super) fn opening(argument: &str) -> String {
    format!("{{{}:\"", Value::from(argument))
}

/// A piece of the text.
pub(super) fn piece(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

pub(super) const CLOSING: &str = "\"}";

/// The text of a call in the history, whichever API made it.
pub(super) fn text_of(argument: &str, input: &Value) -> String {
    let known = [argument, "patch", "diff"].iter().find_map(|name| input.get(name)?.as_str());
    known.map_or_else(|| input.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_make_one_object() {
        let text = "a \"b\"\\\n\u{1}\u{1f980}";
        let cut: String = text.chars().map(|char| piece(&char.to_string())).collect();
        let read: Value = serde_json::from_str(&format!("{}{cut}{CLOSING}", opening("input"))).unwrap();
        assert_eq!(read, json!({ "input": text }));
    }
}
