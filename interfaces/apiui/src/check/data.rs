//! The data at the end of a module, `const NAME = { … };` in JSON. Owns its recognition; must not know what it describes.
//!
//! A large interface is nearly all data, and a syntax tree of it takes twenty times its text. So large data is checked as
//! JSON, and a call whose value nobody knows stands in its place while the rules are applied.
//! Invariant: data is strings, numbers, truth values, lists and objects without a key that changes what the object is,
//! which is all that the rules ask of a literal; and what stands before it is looked at as written.

use std::fmt;

use oxc::ast::ast::{Program, Statement, VariableDeclarationKind};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::names;

/// Smaller data is left in place.
const LARGE: usize = 16 << 10;

#[derive(Clone, Copy)]
pub(super) struct Data<'c> {
    /// Where its statement begins.
    start: usize,
    name: &'c str,
    json: &'c str,
}

/// The data of a module that ends with some.
pub(super) fn at_end(code: &str) -> Option<Data<'_>> {
    let code = code.trim_end().strip_suffix(';')?;
    // JSON has no line that begins so: line breaks within its texts are escaped.
    let start = code.rfind("\nconst ")? + 1;
    let (name, json) = code.get(start..)?.strip_prefix("const ")?.split_once(" = ")?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_data = is_name
        && json.len() >= LARGE
        && json.starts_with('{')
        && serde_json::from_str::<Harmless>(json).is_ok();
    is_data.then_some(Data { start, name, json })
}

impl Data<'_> {
    /// The module with a call in place of the data.
    pub(super) fn stand_in(&self, code: &str) -> String {
        format!("{}{}JSON.parse(\"\");\n", &code[..self.start], self.opening())
    }

    /// Whether the data is the last statement of this tree, so that nothing before it can have swallowed it.
    pub(super) fn is_last(&self, program: &Program<'_>) -> bool {
        matches!(program.body.last(), Some(Statement::VariableDeclaration(list))
            if list.span.start as usize == self.start
                && list.kind == VariableDeclarationKind::Const
                && list.declarations.len() == 1)
    }

    /// The statement as it was.
    pub(super) fn statement(&self) -> String {
        format!("{}{};\n", self.opening(), self.json)
    }

    pub(super) fn opening(&self) -> String {
        format!("const {} = ", self.name)
    }
}

/// JSON that may stand in a module.
struct Harmless;

/// A key that the rule on object literals allows.
struct HarmlessKey;

impl<'de> Deserialize<'de> for Harmless {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Deserialize<'de> for HarmlessKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Self)
    }
}

impl Visitor<'_> for HarmlessKey {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self, E> {
        if names::is_hidden_hook(key) {
            Err(E::custom("a key that changes what the object is"))
        } else {
            Ok(self)
        }
    }
}

impl<'de> Visitor<'de> for Harmless {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("data")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self, A::Error> {
        while access.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self, A::Error> {
        while access.next_entry::<HarmlessKey, Self>()?.is_some() {}
        Ok(self)
    }
}
