//! Lists of chats, and the parts of one that clients open.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ChatKey;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListParams {
    /// Absent or not positive: all chats.
    pub limit: Option<i64>,
    /// `createdAt`, or else `updatedAt`.
    pub sort_by: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ListResult {
    pub chats: Vec<ChatSummary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatSummary {
    pub id: String,
    pub title: Option<String>,
    pub status: &'static str,
    pub message_count: u64,
    pub model: Option<String>,
    pub created_at: u64,
    pub updated_at: u64,
    /// `inline`: a chat inside a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ForkParams {
    pub chat_id: Option<ChatKey>,
    pub content_id: Option<String>,
}

/// A chat and the part of its history that is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HistoryParams {
    pub chat_id: Option<ChatKey>,
    /// Absent or not positive: no limit.
    pub limit: Option<i64>,
    /// A cursor, or `lastCompaction`.
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum HistoryResult {
    Page {
        chat_id: ChatKey,
        contents: Vec<Value>,
        meta: HistoryMeta,
    },
    /// Clients look for problems in the result.
    Problem {
        chat_id: ChatKey,
        error: HistoryProblem,
    },
}

/// The place of a page in the whole history. Clients read a null cursor as the end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryMeta {
    pub total: usize,
    pub returned: usize,
    pub before_cursor: Option<String>,
    pub after_cursor: Option<String>,
    pub compaction_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct HistoryProblem {
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenResult {
    pub found: bool,
    /// Absent where a fork has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<ChatSelection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<HistoryMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<HistoryProblem>,
}

impl OpenResult {
    pub(crate) fn unknown(chat_id: Option<ChatKey>) -> Self {
        Self { found: false, chat_id, title: None, selection: None, meta: None, error: None }
    }
}

/// The settings of an opened chat. Clients read a null variant as "none", so it is written.
#[derive(Debug, Serialize)]
pub(crate) struct ChatSelection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub agent: String,
    pub variant: Option<String>,
    pub variants: Vec<String>,
    pub trust: bool,
}
