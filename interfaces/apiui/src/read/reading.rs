//! What comes of reading: a usable specification, or why it is none; and the limit of its size.

use crate::problem::{Problem, ProblemKind, ProblemLocation};
use crate::spec::Spec;

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

pub(super) fn within_limit(bytes: usize) -> Result<(), Problem> {
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
pub(super) fn no_operations(place: ProblemLocation, message: &str) -> Problem {
    Problem::error(
        ProblemKind::NoOperations,
        place,
        message,
        "Add at least one operation, or send the specification that describes the API itself.",
    )
}
