//! Removes members from a request that a server said it does not accept.
//!
//! Pure: a body and the server's sentence in, the changed body out. Never touches what the conversation says, but for
//! images that are refused.

use serde_json::{Value, json};

/// How often one call may be sent again this way.
pub(crate) const MOST: u32 = 4;

/// What people call the images of a request.
pub(crate) const IMAGES: &str = "images";

/// Members that a request can do without: the path, and what people call it.
const OPTIONAL: [(&[&str], &str); 12] = [
    (&["reasoning", "summary"], "reasoning summaries"),
    (&["thinking", "display"], "thinking summaries"),
    (&["temperature"], "a temperature"),
    (&["stream_options"], "usage in the stream"),
    (&["prompt_cache_key"], "a cache key"),
    (&["parallel_tool_calls"], "parallel tool calls"),
    (&["reasoning_effort"], "a reasoning effort"),
    (&["enable_thinking"], "a thinking switch"),
    (&["response_format"], "an output schema"),
    (&["output_config", "format"], "an output schema"),
    (&["output_config", "effort"], "an effort"),
    (&["include"], "encrypted reasoning"),
];

/// Members that tell a model to think; an error speaks of thinking, seldom of the member.
const THINKING: [&[&str]; 6] = [
    &["generationConfig", "thinkingConfig"],
    &["think"],
    &["thinking"],
    &["reasoning_effort"],
    &["reasoning"],
    &["additionalModelRequestFields"],
];

/// Takes out the first thing that `message` complains about and says what it was.
pub(crate) fn without(body: &mut Value, message: &str) -> Option<&'static str> {
    let said = message.to_ascii_lowercase();
    if said.contains("image") && remove_images(body) {
        return Some(IMAGES);
    }
    if said.contains("max_tokens") && said.contains("max_completion_tokens") {
        return rename(body, "max_tokens", "max_completion_tokens");
    }
    for (path, what) in OPTIONAL {
        if mentions(&said, path.last().copied().unwrap_or_default()) && remove(body, path) {
            return Some(what);
        }
    }
    let refuses =
        ["not support", "unsupported", "not enabled", "not available"].iter().any(|word| said.contains(word));
    if refuses && (said.contains("thinking") || said.contains("reasoning")) {
        return THINKING.iter().any(|path| remove(body, path)).then_some("a thinking setting");
    }
    if refuses
        && (said.contains("support tools") || said.contains("tool use") || said.contains("function calling"))
    {
        return remove(body, &["tools"]).then_some("tools");
    }
    None
}

/// Removes a member, and its parent if it is left empty.
fn remove(body: &mut Value, path: &[&str]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(&mut *body, |value, key| value.get_mut(key));
    let Some(map) = parent.and_then(Value::as_object_mut) else { return false };
    let removed = map.shift_remove(*last).is_some();
    if removed && map.is_empty() && !parents.is_empty() {
        remove(body, parents);
    }
    removed
}

/// The name as a word of its own: "include" is also an English word, so it must be quoted or dotted.
fn mentions(said: &str, name: &str) -> bool {
    said.match_indices(name).any(|(at, _)| {
        let before = said[..at].chars().next_back();
        let after = said[at + name.len()..].chars().next();
        let marked =
            before.is_some_and(|c| "'\"`._".contains(c)) || name.contains('_') || name == "temperature";
        marked && !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn rename(body: &mut Value, from: &str, to: &'static str) -> Option<&'static str> {
    let map = body.as_object_mut()?;
    let value = map.shift_remove(from)?;
    map.insert(to.to_owned(), value);
    Some("max_tokens")
}

/// Replaces every image by a text that says so.
fn remove_images(value: &mut Value) -> bool {
    match value {
        Value::Array(list) => list.iter_mut().fold(false, |found, item| {
            let kind = item.get("type").and_then(Value::as_str);
            let text = match kind {
                Some("input_image") => "input_text",
                Some("image" | "image_url") => "text",
                _ => return remove_images(item) || found,
            };
            *item = json!({ "type": text, "text": "(An image was here; the provider refused it.)" });
            true
        }),
        Value::Object(map) => {
            map.values_mut().filter_map(|item| remove_images(item).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut body: Value, message: &str, expected: Value, what: Option<&str>) {
        assert_eq!(without(&mut body, message), what, "{message}");
        assert_eq!(body, expected, "{message}");
    }

    #[test]
    fn only_what_the_server_names_is_taken_out() {
        check(
            json!({"temperature": 1, "a": 2}),
            "Unsupported parameter: 'temperature' is not supported with this model.",
            json!({"a": 2}),
            Some("a temperature"),
        );
        check(
            json!({"reasoning": {"effort": "low", "summary": "auto"}}),
            "Your organization must be verified to generate reasoning summaries. (param: 'reasoning.summary')",
            json!({"reasoning": {"effort": "low"}}),
            Some("reasoning summaries"),
        );
        check(
            json!({"reasoning": {"summary": "auto"}}),
            "Unknown parameter 'reasoning.summary'",
            json!({}),
            Some("reasoning summaries"),
        );
        check(json!({"include": []}), "Please include a model.", json!({"include": []}), None);
        check(json!({"temperature": 1}), "The model `x` does not exist", json!({"temperature": 1}), None);
        check(
            json!({"max_tokens": 5}),
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            json!({"max_completion_tokens": 5}),
            Some("max_tokens"),
        );
        check(
            json!({"messages": [{"content": [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "x"}]}]}),
            "Invalid content: image input is not supported",
            json!({"messages": [{"content": [
                {"type": "text", "text": "(An image was here; the provider refused it.)"}, {"type": "text", "text": "x"}]}]}),
            Some("images"),
        );
        check(json!({"messages": []}), "no image allowed", json!({"messages": []}), None);
        check(
            json!({"think": true, "tools": [1]}),
            "\"gemma3\" does not support thinking",
            json!({"tools": [1]}),
            Some("a thinking setting"),
        );
        check(json!({"tools": [1]}), "gemma3 does not support tools", json!({}), Some("tools"));
        check(
            json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}}),
            "Thinking is not enabled for models/gemma",
            json!({}),
            Some("a thinking setting"),
        );
        check(
            json!({"thinking": {}}),
            "`thinking` blocks in the latest message cannot be modified",
            json!({"thinking": {}}),
            None,
        );
    }
}
