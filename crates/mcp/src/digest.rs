//! Hashes of definitions.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) type Digest = [u8; 32];

/// Hashes texts and values so that no two different lists of them look alike.
pub(crate) struct DefinitionHash(Sha256);

impl DefinitionHash {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        self.put(text);
        self
    }

    /// Members in any order count as the same: some servers list them as their hash table gives them.
    pub(crate) fn value(mut self, value: &Value) -> Self {
        self.put_value(value);
        self
    }

    pub(crate) fn done(self) -> Digest {
        self.0.finalize().into()
    }

    fn put(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn put_value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.as_str());
                self.put(&format!("object {}", members.len()));
                for (name, value) in members {
                    self.put(name);
                    self.put_value(value);
                }
            }
            Value::Array(values) => {
                self.put(&format!("array {}", values.len()));
                values.iter().for_each(|value| self.put_value(value));
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                self.put(&plain.to_string())
            }
        }
    }
}
