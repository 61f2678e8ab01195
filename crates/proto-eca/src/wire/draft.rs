//! Contents of the draft protocol (2025).

use std::borrow::Cow;

use serde::Serialize;

use super::ChatId;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DraftContent<'a> {
    pub chat_id: ChatId<'a>,
    pub content: DraftBody<'a>,
    pub is_complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub tokens_used: u64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum DraftBody<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        code_blocks: Vec<CodeBlock<'a>>,
    },
    FileChange {
        description: Cow<'a, str>,
        manual_approval: bool,
        file: String,
        changes: Vec<FileEdit>,
    },
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CodeBlock<'a> {
    pub code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum FileEdit {
    Create { content: String },
    Change { content: String, range: ChangedLines },
    Delete { range: ChangedLines },
}

/// 1-based, inclusive.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedLines {
    pub start_line: usize,
    pub end_line: usize,
}
