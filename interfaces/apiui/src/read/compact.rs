//! JSON values whose objects and lists have just the room that their entries need.
//!
//! Most objects of a specification have one to three entries. `Value` by itself makes room for more, which nearly doubles
//! the memory of a large document.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

pub(super) struct Compact(pub Value);

/// The name of an entry: any scalar of YAML, as text.
struct Name(String);

struct NameVisitor;
struct ValueVisitor;

impl<'de> Deserialize<'de> for Compact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a string key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Name, E> {
        Ok(Name(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Name, E> {
        Ok(Name(text))
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, mut value: String) -> Result<Value, E> {
        value.shrink_to_fit();
        Ok(Value::String(value))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Compact(item)) = access.next_element()? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(String, Value)> = Vec::new();
        while let Some((Name(name), Compact(value))) = access.next_entry()? {
            entries.push((name, value));
        }
        let mut map = Map::with_capacity(entries.len());
        map.extend(entries);
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_value_equals_an_ordinary_one() {
        let text = r#"{"a": [1, -2, 3.5, 18446744073709551615, null, true, "x\u00e9"], "b": {"a": {}}, "a": {"c": []}}"#;
        let compact: Compact = serde_json::from_str(text).unwrap();
        assert_eq!(compact.0, serde_json::from_str::<Value>(text).unwrap());
        assert!(serde_json::from_str::<Compact>(&"[".repeat(200)).is_err());
    }
}
