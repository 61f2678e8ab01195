//! A history is a list of items. An item is whole in itself: shown, stored and sent to a model from the same data.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ItemId, SessionId, TurnId};
use crate::tool_call::ToolCall;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Item {
    pub id: ItemId,
    pub turn: TurnId,
    /// Which model answer of the turn made it, from 0; calls of one answer share it.
    #[serde(default)]
    pub step: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    pub kind: ItemKind,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ItemKind {
    /// `text` is what the user typed and sees again; `parts` is what the model is sent, contexts included.
    UserMessage {
        text: String,
        parts: Vec<Part>,
    },
    AgentMessage {
        text: String,
        /// The answer was cut off: by a stop, a crash or a broken stream.
        #[serde(default)]
        interrupted: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<ProviderBlock>,
    },
    Reasoning {
        text: String,
        #[serde(default)]
        millis: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<ProviderBlock>,
    },
    ToolCall(Box<ToolCall>),
    /// A page the model cites.
    Citation {
        title: String,
        url: String,
    },
    Plan {
        entries: Vec<PlanEntry>,
    },
    /// Everything before it is represented to the model by `summary`; the journal keeps the whole.
    Compaction {
        summary: String,
        /// Verbatim parts that code kept: instructions, the last request, files touched.
        #[serde(default)]
        kept: Vec<Part>,
    },
    Subagent {
        session: SessionId,
        name: String,
    },
    Hook {
        name: String,
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<i32>,
        #[serde(default)]
        output: String,
    },
    /// A mark a user put on another item (`parent`).
    Flag {
        text: String,
    },
    /// A slash command as the user typed it: shown like a message, never sent to a model.
    Command {
        text: String,
    },
    /// Text of ours in the chat, for people only: command output, a stop notice, an error.
    SystemText {
        text: String,
    },
}

/// A piece of a message to a model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProviderBlock {
    /// The API format that understands `data`, e.g. `anthropic`.
    pub format: String,
    /// The model (`provider/name`) that made it: a signature is of no use to another.
    pub model: String,
    pub data: Value,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlanEntry {
    pub text: String,
    pub status: PlanStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Done,
}

impl Item {
    /// The streamed text of the item on one channel, where it has such a channel.
    pub fn channel_text(&self, channel: crate::event::Channel) -> Option<&str> {
        use crate::event::Channel;
        match (&self.kind, channel) {
            (ItemKind::AgentMessage { text, .. }, Channel::Text)
            | (ItemKind::Reasoning { text, .. }, Channel::Reasoning) => Some(text),
            (ItemKind::ToolCall(call), Channel::ToolInput) => Some(&call.input_text),
            (ItemKind::ToolCall(call), Channel::ToolOutput) => Some(&call.live_output),
            _ => None,
        }
    }

    /// The same, to be appended to.
    pub fn channel_text_mut(&mut self, channel: crate::event::Channel) -> Option<&mut String> {
        use crate::event::Channel;
        match (&mut self.kind, channel) {
            (ItemKind::AgentMessage { text, .. }, Channel::Text)
            | (ItemKind::Reasoning { text, .. }, Channel::Reasoning) => Some(text),
            (ItemKind::ToolCall(call), Channel::ToolInput) => Some(&mut call.input_text),
            (ItemKind::ToolCall(call), Channel::ToolOutput) => Some(&mut call.live_output),
            _ => None,
        }
    }
}
