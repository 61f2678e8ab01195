//! Lenient access to JSON values: what is there is taken, what has the wrong type is as if it were absent.
//!
//! Owns the small conversions that every reader needs. Knows no specification format.

use serde_json::{Map, Value};

/// A string, number or boolean as text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

pub(super) fn text(object: &Value, key: &str) -> Option<String> {
    text_of(object.get(key)?).filter(|text| !text.trim().is_empty())
}

pub(super) fn flag(object: &Value, key: &str) -> bool {
    match object.get(key) {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => text == "true",
        _ => false,
    }
}

pub(super) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn entries<'a>(object: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    object.get(key).and_then(Value::as_object)
}

pub(super) fn texts(object: &Value, key: &str) -> Vec<String> {
    list(object, key).iter().filter_map(text_of).collect()
}

/// The length of the value as JSON text, counted without writing it.
pub(super) fn size(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail: the writer never does, and JSON keys are strings.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
