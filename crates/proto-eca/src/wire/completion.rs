//! Inline completion on the wire.

use serde::{Deserialize, Serialize};

use super::{LinePosition, Range};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CompletionParams {
    pub doc_text: String,
    pub doc_version: i64,
    /// From 1.
    pub position: Option<LinePosition>,
    /// Sent by clients, though not part of the page.
    pub path: Option<String>,
}

/// Of `completion/nextEdit`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NextEditParams {
    #[serde(flatten)]
    pub document: CompletionParams,
    /// What was changed last, as diffs or in words, oldest first.
    pub recent_edits: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum CompletionResult {
    Items {
        items: Vec<CompletionItem>,
    },
    /// Clients look for problems in the result.
    Problem {
        error: CompletionProblem,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompletionItem {
    pub text: String,
    pub doc_version: i64,
    pub range: Range,
}

#[derive(Debug, Serialize)]
pub(crate) struct CompletionProblem {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub message: String,
}
