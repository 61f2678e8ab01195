//! Stages 1 and 2: any accepted document in, one normalized specification out.
//!
//! Owns format detection and the way from bytes to `Spec`. Knows nothing of the interface that is planned
//! from it, and reaches other files only through the caller's `Load`.
//! Invariant: every input gets a `Reading` or at least one `Problem`; nothing panics, hangs or grows without
//! bound.

mod compact;
pub mod detect;
mod facets;
mod graphql;
mod graphtypes;
pub mod host;
mod introspection;
mod lint;
mod openapi;
mod operation;
mod refs;
mod schema;
mod security;
mod swagger2;
mod text;
mod value;

pub(crate) use refs::nearest;

use crate::problem::{Problem, ProblemKind, ProblemLocation};
use crate::spec::Spec;
use serde_json::Value;
use std::borrow::Cow;

/// The largest raw document that is read.
pub const LIMIT_BYTES: usize = 50 * 1024 * 1024;

/// Fetches another file of a specification. The argument is the location as resolved against the
/// document's own; the answer is its bytes, or a sentence that says why not.
pub type Load<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// A usable specification, and what is wrong with it nevertheless.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub spec: Spec,
    pub warnings: Vec<Problem>,
}

/// Why a specification cannot be used. There is always at least one problem; the first is the gravest.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    pub problems: Vec<Problem>,
}

impl Unusable {
    /// The problem to show where there is room for one.
    pub fn first(&self) -> Option<&Problem> {
        self.problems.first()
    }

    /// True when the input was refused for its size alone.
    pub fn is_too_large(&self) -> bool {
        self.first().is_some_and(|problem| problem.kind == ProblemKind::TooLarge)
    }
}

impl From<Problem> for Unusable {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.problems.split_first() {
            None => out.write_str("The specification cannot be used."),
            Some((first, [])) => first.fmt(out),
            Some((first, rest)) => write!(out, "{first} ({} more)", rest.len()),
        }
    }
}

impl std::error::Error for Unusable {}

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
        detect::ValueFormat::Openapi3 => openapi::read(value, openapi::Dialect::Openapi3, location, load),
        detect::ValueFormat::Swagger2 => openapi::read(value, openapi::Dialect::Swagger2, location, load),
    }
}

fn within_limit(bytes: usize) -> Result<(), Problem> {
    if bytes <= LIMIT_BYTES {
        return Ok(());
    }
    let found = bytes / (1024 * 1024);
    Err(Problem::error(
        ProblemKind::TooLarge,
        ProblemLocation::Document,
        format!("The specification is {found} MB; at most {} MB are read.", LIMIT_BYTES / (1024 * 1024)),
        "Split it, or send the part that describes the operations you need.",
    ))
}

/// The problem of a specification without a single operation.
fn no_operations(place: ProblemLocation, message: &str) -> Problem {
    Problem::error(
        ProblemKind::NoOperations,
        place,
        message,
        "Add at least one operation, or send the specification that describes the API itself.",
    )
}
