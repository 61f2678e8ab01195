//! Pieces of messages and items. Plain data.

use std::sync::Arc;

use serde_json::Value;

/// A piece of a message to a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    Text {
        text: String,
    },
    /// `data` is base64.
    Image {
        mime: String,
        data: Arc<str>,
    },
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a provider gave that must go back to it unchanged (a signature, an encrypted reasoning item, …).
/// Another format ignores it.
#[derive(Clone, PartialEq, Debug)]
pub struct ProviderBlock {
    /// The API format that understands `data`, e.g. `anthropic`.
    pub format: String,
    /// The model (`provider/name`) that made it: a signature is of no use to another.
    pub model: String,
    pub data: Value,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanEntry {
    pub text: String,
    pub status: PlanStatus,
    pub priority: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanStatus {
    Pending,
    InProgress,
    Done,
}

/// A text of an item that grows while it is streamed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Channel {
    Text,
    Reasoning,
    ToolInput,
    ToolOutput,
}
