//! Stages 1 and 2: any accepted document in, one normalized specification out.
//!
//! Owns format detection and the way from bytes to `Spec`. Knows nothing of the interface that is planned
//! from it, and reaches other files only through the caller's `Load`.
//! Invariant: every input gets a `Reading` or at least one `Problem`; nothing panics, hangs or grows without
//! bound.

mod compact;
pub mod detect;
mod dialect;
mod facets;
mod graphql;
mod graphtypes;
pub mod host;
mod introspection;
mod lint;
mod openapi;
mod operation;
mod reading;
mod refs;
mod schema;
mod security;
mod swagger2;
mod text;
mod value;

pub use reading::{LIMIT_BYTES, Load, Reading, Unusable};
pub(crate) use refs::nearest;

use dialect::Dialect;
use reading::within_limit;
use serde_json::Value;
use std::borrow::Cow;

/// Reads a raw document. `location` is its file name or address, if it has one: relative references start
/// from there and its ending helps to tell formats apart.
pub fn read_bytes(
    bytes: &[u8],
    location: Option<&str>,
    load: Option<&mut Load>,
) -> Result<Reading, Unusable> {
    within_limit(bytes.len())?;
    let text = text::decode(bytes)?;
    match detect::format_of_text(&text, location)? {
        detect::TextFormat::Graphql => graphql::read(&text),
        detect::TextFormat::Json => document(Cow::Owned(text::json(&text)?), location, load),
        detect::TextFormat::Yaml => document(Cow::Owned(text::yaml(&text)?), location, load),
    }
}

/// Reads what a host sent: its NormalizedSpec, a raw document as an object, or a raw document as a string.
pub fn read_value(value: &Value, load: Option<&mut Load>) -> Result<Reading, Unusable> {
    match value {
        Value::String(text) => read_bytes(text.as_bytes(), None, load),
        value => {
            within_limit(value::size(value))?;
            document(Cow::Borrowed(value), None, load)
        }
    }
}

fn document(
    value: Cow<'_, Value>,
    location: Option<&str>,
    load: Option<&mut Load>,
) -> Result<Reading, Unusable> {
    match detect::format_of_value(&value)? {
        detect::ValueFormat::Normalized => host::read(&value),
        detect::ValueFormat::Introspection => introspection::read(&value),
        detect::ValueFormat::Openapi3 => openapi::read(value, Dialect::Openapi3, location, load),
        detect::ValueFormat::Swagger2 => openapi::read(value, Dialect::Swagger2, location, load),
    }
}
