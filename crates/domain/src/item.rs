//! A history is a list of items. An item is whole in itself: shown, stored and sent to a model from the same data.

use crate::ids::{ItemId, TurnId};
use crate::note::Note;
use crate::tool_call::ToolCall;

pub use crate::part::{Part, PlanEntry, PlanStatus, ProviderBlock};

#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    pub id: ItemId,
    pub turn: TurnId,
    /// Which model answer of the turn made it, from 0; calls of one answer share it.
    pub step: u32,
    pub parent: Option<ItemId>,
    pub kind: ItemKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `text` is what the user typed and sees again; `parts` is what the model is sent, contexts included.
    UserMessage {
        text: String,
        parts: Vec<Part>,
    },
    AgentMessage {
        text: String,
        /// The answer was cut off: by a stop, a crash or a broken stream.
        interrupted: bool,
        provider: Option<ProviderBlock>,
    },
    Reasoning {
        text: String,
        millis: u64,
        provider: Option<ProviderBlock>,
    },
    ToolCall(Box<ToolCall>),
    /// A page the model cites.
    Citation {
        title: String,
        url: String,
    },
    /// Everything before it is represented to the model by `summary`; the journal keeps the whole.
    Compaction {
        summary: String,
        /// Verbatim parts that code kept: instructions, the last request, files touched.
        kept: Vec<Part>,
    },
    /// A slash command as the user typed it: shown like a message, never sent to a model.
    Command {
        text: String,
    },
    /// Text from Dragoman itself, for people only: command output, a stop notice, an error.
    SystemText {
        text: String,
    },
    /// An action of a hook, for people only: its effects are in the items that it changed.
    Hook(Box<HookRun>),
    /// A bookmark of the user's behind the item `parent`; without text it was removed.
    Flag {
        text: String,
    },
    /// A message of Dragoman itself: a line for people, and mostly a text for the model.
    Note(Box<Note>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookRun {
    pub name: String,
    /// The exit code; `None` while it runs.
    pub status: Option<i32>,
    pub output: String,
    pub error: String,
    /// The tool call that it is about.
    pub call: Option<ItemId>,
}

impl Item {
    /// The tool call, where the item is one.
    pub fn tool_call(&self) -> Option<&ToolCall> {
        if let ItemKind::ToolCall(call) = &self.kind { Some(call) } else { None }
    }

    /// The note, where the item is one.
    pub fn note(&self) -> Option<&Note> {
        if let ItemKind::Note(note) = &self.kind { Some(note) } else { None }
    }

    /// The streamed text of the item on one channel, where it has such a channel.
    pub fn channel_text(&self, channel: crate::part::Channel) -> Option<&str> {
        use crate::part::Channel;
        match (&self.kind, channel) {
            (ItemKind::AgentMessage { text, .. }, Channel::Text)
            | (ItemKind::Reasoning { text, .. }, Channel::Reasoning) => Some(text),
            (ItemKind::ToolCall(call), Channel::ToolInput) => Some(&call.input_text),
            (ItemKind::ToolCall(call), Channel::ToolOutput) => Some(&call.live_output),
            _ => None,
        }
    }

    /// The same, to be appended to.
    pub fn channel_text_mut(&mut self, channel: crate::part::Channel) -> Option<&mut String> {
        use crate::part::Channel;
        match (&mut self.kind, channel) {
            (ItemKind::AgentMessage { text, .. }, Channel::Text)
            | (ItemKind::Reasoning { text, .. }, Channel::Reasoning) => Some(text),
            (ItemKind::ToolCall(call), Channel::ToolInput) => Some(&mut call.input_text),
            (ItemKind::ToolCall(call), Channel::ToolOutput) => Some(&mut call.live_output),
            _ => None,
        }
    }
}
