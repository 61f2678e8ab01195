//! The memory across chats on the wire.

use std::path::PathBuf;

use serde::Serialize;

use super::ChatKey;
use super::notifications::Notification;

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum MemoryListResult {
    Listed { memories: Vec<Memory>, skipped: Vec<SkippedMemory> },
    Off { error: MemoryError },
}

#[derive(Debug, Serialize)]
pub(crate) struct MemoryError {
    pub code: &'static str,
    pub message: &'static str,
}

impl MemoryError {
    pub(crate) fn off() -> Self {
        Self { code: "memory-disabled", message: "The memory is switched off: `memory.enabled` is false." }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub path: PathBuf,
    pub tier: &'static str,
    pub name: String,
    pub description: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub tags: Vec<String>,
    pub label: &'static str,
    pub mtime_ms: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SkippedMemory {
    pub path: PathBuf,
    pub tier: &'static str,
    pub label: &'static str,
    pub reason: String,
}

/// The entries that a chat is told of.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IndexLoaded {
    pub chat_id: ChatKey,
    pub count: usize,
    pub total_count: usize,
    pub items: Vec<Memory>,
}

impl Notification for IndexLoaded {
    const NAME: &'static str = "memory/indexLoaded";
}
