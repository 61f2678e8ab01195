//! The keys of the schema as a short list, which is quick to load: `known_keys.txt`, made from the schema by a test.
//! It only says whether a file has keys without effect; the schema says which.
//!
//! A line is a path with `*` for a name that the user chooses and `[]` for the entries of a list. `!` behind it marks a
//! key that is not supported, `=` an object that has no other keys than those listed.

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub(super) static KNOWN: LazyLock<KnownKeys> =
    LazyLock::new(|| KnownKeys::parse(include_str!("known_keys.txt")));

/// The paths in order, each with its mark.
pub(super) struct KnownKeys(Vec<(&'static str, Mark)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Unsupported,
    Closed,
}

impl KnownKeys {
    fn parse(text: &'static str) -> Self {
        let line = |line: &'static str| match line.strip_suffix('!') {
            Some(path) => (path, Mark::Unsupported),
            None => match line.strip_suffix('=') {
                Some(path) => (path, Mark::Closed),
                None => (line, Mark::None),
            },
        };
        Self(text.lines().map(line).collect())
    }

    fn find(&self, path: &str) -> Option<Mark> {
        let place = self.0.binary_search_by_key(&path, |(known, _)| known).ok()?;
        Some(self.0[place].1)
    }

    /// Whether every key of a file is known and supported.
    pub(super) fn holds_all(&self, values: &Map<String, Value>) -> bool {
        self.holds_object("", values)
    }

    fn holds_object(&self, path: &str, values: &Map<String, Value>) -> bool {
        values.iter().all(|(name, value)| {
            let own = format!("{path}.{name}");
            // A name with a sign of the list's own in it is not on the list.
            let is_plain = !name.contains(['.', '*', '[']);
            match self.find(&own).filter(|_| is_plain) {
                Some(Mark::Unsupported) => false,
                Some(Mark::None | Mark::Closed) => self.holds_value(&own, value),
                None => {
                    let any = format!("{path}.*");
                    match self.find(&any) {
                        Some(_) => self.holds_value(&any, value),
                        None => self.find(path) != Some(Mark::Closed),
                    }
                }
            }
        })
    }

    fn holds_value(&self, path: &str, value: &Value) -> bool {
        match value {
            Value::Object(values) => self.holds_object(path, values),
            Value::Array(items) => {
                let entry = format!("{path}[]");
                self.find(&entry).is_none() || items.iter().all(|item| self.holds_value(&entry, item))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
}

/// The list as it must be for a schema.
#[cfg(test)]
pub(super) fn list(schema: &Value) -> String {
    let mut lines = Vec::new();
    collect(schema, String::new(), &mut lines);
    lines.sort();
    lines.iter().map(|(path, mark)| format!("{path}{mark}\n")).collect()
}

#[cfg(test)]
fn collect(schema: &Value, path: String, lines: &mut Vec<(String, &'static str)>) {
    let own = schema.as_object().is_some_and(super::keys::is_unsupported);
    let schema = super::keys::resolve(schema);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    lines.push((
        path.clone(),
        if own {
            "!"
        } else if closed {
            "="
        } else {
            ""
        },
    ));
    if own {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        collect(property, format!("{path}.{name}"), lines);
    }
    if let Some(entry @ Value::Object(_)) = schema.get("additionalProperties") {
        collect(entry, format!("{path}.*"), lines);
    }
    if let Some(item) = schema.get("items") {
        collect(item, format!("{path}[]"), lines);
    }
}
