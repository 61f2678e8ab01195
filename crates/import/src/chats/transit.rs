//! Transit in its JSON form, as plain JSON: keywords become texts, maps objects, sets and lists arrays.
//!
//! Must not know what is stored. Invariant: a reference to something that was not read before is an error.

use serde_json::{Map, Value};

/// Texts shorter than this are never referred to.
const MIN_CACHED_BYTES: usize = 4;
/// References are numbers of one or two digits on this base.
const BASE: usize = 44;
const FIRST_DIGIT: usize = 48;
const MAX_DEPTH: usize = 200;

pub(super) fn decode(value: &Value) -> Result<Value, String> {
    Decoder::default().read(value, false, 0)
}

/// Texts that later ones may refer to, in the order in which they came.
#[derive(Default)]
struct Decoder {
    cache: Vec<String>,
}

impl Decoder {
    fn read(&mut self, value: &Value, is_key: bool, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        match value {
            Value::String(text) => self.text(text, is_key).map(|text| scalar(&text)),
            Value::Array(values) => self.array(values, depth),
            // The verbose form writes maps as objects.
            Value::Object(members) => {
                let mut object = Map::new();
                for (key, value) in members {
                    let key = self.text(key, true).map(|text| scalar(&text))?;
                    object.insert(key_text(key), self.read(value, false, depth + 1)?);
                }
                Ok(object.into())
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Ok(plain.clone()),
        }
    }

    fn array(&mut self, values: &[Value], depth: usize) -> Result<Value, String> {
        let Some(Value::String(first)) = values.first() else { return self.list(values, depth) };
        if first == "^ " {
            return self.pairs(&values[1..], depth);
        }
        // Looking at the first text may also put it into the cache, so it is read only once.
        let first = self.text(first, false)?;
        let rest = &values[1..];
        match (first.strip_prefix("~#"), rest) {
            (Some("cmap"), [Value::Array(inner)]) => self.pairs(inner, depth),
            (Some(_), [inner]) => self.read(inner, false, depth + 1),
            _ => {
                let mut list = vec![scalar(&first)];
                for value in rest {
                    list.push(self.read(value, false, depth + 1)?);
                }
                Ok(list.into())
            }
        }
    }

    fn list(&mut self, values: &[Value], depth: usize) -> Result<Value, String> {
        values.iter().map(|value| self.read(value, false, depth + 1)).collect()
    }

    /// Keys and values in turn.
    fn pairs(&mut self, values: &[Value], depth: usize) -> Result<Value, String> {
        let mut object = Map::new();
        for pair in values.chunks(2) {
            let [key, value] = pair else { return Err("a map has a key without a value".to_owned()) };
            let key = self.read(key, true, depth + 1)?;
            object.insert(key_text(key), self.read(value, false, depth + 1)?);
        }
        Ok(object.into())
    }

    /// The text itself, or the one that it refers to.
    fn text(&mut self, text: &str, is_key: bool) -> Result<String, String> {
        if let Some(reference) = text.strip_prefix('^').filter(|rest| *rest != " ") {
            let digit = |byte: u8| usize::from(byte).checked_sub(FIRST_DIGIT);
            let number = match reference.as_bytes() {
                [one] => digit(*one),
                [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high * BASE + low),
                _ => None,
            };
            let known = number.and_then(|number| self.cache.get(number));
            return known.cloned().ok_or_else(|| "it refers to something that is not there".to_owned());
        }
        let is_marked = ["~:", "~$", "~#"].iter().any(|mark| text.starts_with(mark));
        if text.len() >= MIN_CACHED_BYTES && (is_key || is_marked) {
            if self.cache.len() == BASE * BASE {
                self.cache.clear();
            }
            self.cache.push(text.to_owned());
        }
        Ok(text.to_owned())
    }
}

/// A text with its mark as a value.
fn scalar(text: &str) -> Value {
    let Some(marked) = text.strip_prefix('~') else { return text.into() };
    let mut characters = marked.chars();
    let (mark, rest) = (characters.next(), characters.as_str());
    match mark {
        Some(':' | '$' | 'u' | 't' | 'r' | 'c' | 'b') => rest.into(),
        Some('~' | '^' | '`') => marked.into(),
        Some('_') => Value::Null,
        Some('?') => (rest == "t").into(),
        Some('i' | 'n' | 'd' | 'f' | 'm') => {
            serde_json::from_str::<Value>(rest).ok().filter(Value::is_number).unwrap_or_else(|| rest.into())
        }
        _ => text.into(),
    }
}

fn key_text(key: Value) -> String {
    match key {
        Value::String(text) => text,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_keywords_and_references_are_read() {
        let rows = [
            (
                json!([
                    "^ ",
                    "~:chats",
                    ["^ ", "id-1", ["^ ", "~:title", "~~x", "~:created-at", 5]],
                    "~:version",
                    6
                ]),
                json!({"chats": {"id-1": {"title": "~x", "created-at": 5}}, "version": 6}),
            ),
            (
                json!([["^ ", "~:role", "user"], ["^ ", "^0", "^1"], ["~#set", [1, 2]], "~:type", "^2"]),
                json!("an error: ^1 was never read"),
            ),
            (
                json!([
                    ["^ ", "~:role", "~:text"],
                    ["^ ", "^0", "^1"],
                    ["~#list", ["~m12", "~i7", "~_", "~?t"]]
                ]),
                json!([{"role": "text"}, {"role": "text"}, [12, 7, null, true]]),
            ),
        ];
        for (stored, expected) in rows {
            match decode(&stored) {
                Ok(decoded) => assert_eq!(decoded, expected, "{stored}"),
                Err(reason) => assert!(expected.is_string(), "{stored}: {reason}"),
            }
        }
    }
}
