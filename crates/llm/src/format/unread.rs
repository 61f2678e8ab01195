//! Finds model text in events that no decoder understands, so that the user is warned of it.
//!
//! Pure, and off the hot path: only an event without any known content is looked at. Invariant: a string counts as
//! text unless its key is known to hold metadata.

use serde_json::Value;

/// Keys whose values are never text of a model.
const METADATA: [&str; 32] = [
    "type",
    "id",
    "object",
    "model",
    "role",
    "event",
    "event_id",
    "item_id",
    "call_id",
    "response_id",
    "message_id",
    "request_id",
    "created_at",
    "timestamp",
    "status",
    "name",
    "provider",
    "system_fingerprint",
    "service_tier",
    "finish_reason",
    "native_finish_reason",
    "stop_reason",
    "done_reason",
    "obfuscation",
    "logprobs",
    "usage",
    "signature",
    "encrypted_content",
    "phase",
    "modelVersion",
    "responseId",
    "finishReason",
];

/// The same for a member of an object.
pub(crate) fn member_holds_text(key: &str, value: &Value) -> bool {
    !METADATA.contains(&key) && holds_text(value)
}

/// Whether a value holds text that a model may have written.
pub(crate) fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(values) => values.iter().any(holds_text),
        Value::Object(members) => members.iter().any(|(key, value)| member_holds_text(key, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_no_text_and_everything_else_is() {
        for value in [
            json!({"type": "ping"}),
            json!({"id": "x", "object": "chunk", "delta": {"role": "assistant", "content": ""}}),
            json!({"usage": {"note": "x"}, "n": 1}),
        ] {
            assert!(!holds_text(&value), "{value}");
        }
        for value in [json!({"type": "x", "text": "a"}), json!([{"deep": [{"code": "print()"}]}])] {
            assert!(holds_text(&value), "{value}");
        }
    }
}
