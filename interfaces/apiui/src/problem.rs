//! What is wrong with a specification: the place, the fault, and what to do about it.
//!
//! Owns the one error type of the reading stages. Knows no protocol codes: a front-end maps `kind`.
//! Invariant: every problem is a pair of sentences a person can act on, and never quotes more than a
//! short piece of the input.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is: an error stops generation, a warning is an assumption that was made instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    Error,
    Warning,
}

/// The families of faults, for a front-end to map to its codes and for `--json` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProblemKind {
    /// Larger than the reader accepts.
    TooLarge,
    /// Not text at all.
    Encoding,
    /// Not well-formed JSON, YAML or GraphQL.
    Syntax,
    /// Well-formed, but of a format that cannot be read (RAML, WSDL, HTML …).
    UnsupportedFormat,
    /// The right format in a version that does not exist or is not supported.
    UnsupportedVersion,
    /// A required part is missing or has the wrong type.
    Structure,
    /// A reference leads nowhere.
    DanglingReference,
    /// References that only lead to each other.
    CyclicReference,
    /// Aliases or references that expand beyond all measure.
    Expansion,
    /// Allowed, or harmless, but probably not what was meant.
    Doubtful,
    /// No operation is described.
    NoOperations,
}

/// Where in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "in")]
pub enum ProblemLocation {
    /// The document as a whole.
    Document,
    /// A line and column of the text, both from 1.
    #[serde(rename_all = "camelCase")]
    Position { line: usize, column: usize },
    /// A JSON pointer, with the file when it is not the first one.
    #[serde(rename_all = "camelCase")]
    Pointer {
        pointer: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub severity: Severity,
    pub kind: ProblemKind,
    pub place: ProblemLocation,
    /// What is wrong, as a sentence.
    pub message: String,
    /// What to do, as a sentence.
    pub advice: String,
}

impl Problem {
    pub fn error(
        kind: ProblemKind,
        place: ProblemLocation,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Error, kind, place, message: message.into(), advice: advice.into() }
    }

    pub fn warning(
        kind: ProblemKind,
        place: ProblemLocation,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, kind, place, message: message.into(), advice: advice.into() }
    }
}

impl ProblemLocation {
    pub fn pointer(pointer: impl Into<String>) -> Self {
        ProblemLocation::Pointer { pointer: pointer.into(), file: None }
    }
}

impl fmt::Display for ProblemLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemLocation::Document => out.write_str("the document"),
            ProblemLocation::Position { line, column } => write!(out, "line {line}, column {column}"),
            ProblemLocation::Pointer { pointer, file } => {
                let pointer = if pointer.is_empty() { "/" } else { pointer };
                match file {
                    Some(file) => write!(out, "{file}#{pointer}"),
                    None => out.write_str(pointer),
                }
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            ProblemLocation::Document => write!(out, "{} {}", self.message, self.advice),
            place => write!(out, "{place}: {} {}", self.message, self.advice),
        }
    }
}

impl std::error::Error for Problem {}

/// A short, single-line piece of foreign text, fit to stand in a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}
