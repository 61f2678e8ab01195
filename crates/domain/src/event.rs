//! The one event stream. Facts are past tense, numbered without gaps per session and kept; deltas and progress are
//! neither numbered nor kept.
//!
//! Invariant: a fact is published only after it is in the journal, so what a client has seen survives a crash.
//! A new feature is a new item kind or field here, never a new pair of events. An event never expects an answer.

use std::sync::Arc;

use crate::ask::{Answer, Ask};
use crate::failure::Failure;
use crate::ids::{AskId, ItemId, SessionId, TurnId};
use crate::item::Item;
use crate::model::Tokens;
use crate::session_settings::SessionSettings;
use crate::taint::Taint;

pub use crate::part::Channel;

/// What a front-end receives.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// `None`: about the process, not about one chat.
    pub session: Option<SessionId>,
    pub body: EventBody,
}

#[derive(Clone, PartialEq, Debug)]
pub enum EventBody {
    Fact(Arc<Recorded>),
    /// Text as it comes, ahead of the journal. Offsets make it safe to lose or to see twice.
    Delta(ItemDelta),
    /// What the engine is waiting for, as text for a status line. Replaced by the next one, ended by `TurnEnded`.
    Progress {
        text: String,
    },
    /// A list that clients show has changed; they ask for it anew.
    Catalog(CatalogKind),
    /// The session's journal cannot be written: the running turn is over and no further event of it will come.
    Lost {
        failure: Failure,
    },
}

/// A fact with its place in the journal.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// From 1, without gaps, per session.
    pub number: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    pub fact: Fact,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    SessionOpened(SessionOpened),
    /// Only what changed is set.
    SessionChanged {
        change: SessionSettings,
    },
    TurnStarted {
        turn: TurnId,
        model: String,
    },
    TurnEnded {
        turn: TurnId,
        outcome: Outcome,
    },
    ItemStarted {
        item: Item,
    },
    /// The whole item, anew: a tool call that changed its state for instance.
    ItemChanged {
        item: Item,
    },
    /// Streamed text reached the journal: `text` is at byte `offset` of the item's `channel`.
    ItemGrew {
        item: ItemId,
        channel: Channel,
        offset: u64,
        text: String,
    },
    /// The whole item, for good. An item that never streams (a user's message) has only this.
    ItemEnded {
        item: Item,
    },
    /// The history now ends with this item (`None`: it is empty).
    HistoryReplaced {
        keep: Option<ItemId>,
    },
    AskRaised {
        ask: Ask,
    },
    AskSettled {
        id: AskId,
        answer: Answer,
    },
    UsageChanged {
        usage: SessionUsage,
    },
    Notice {
        notice: Notice,
    },
    /// What the chat has read that could misuse it, as it is now.
    TaintChanged {
        taint: Taint,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionOpened {
    /// Absolute paths of the workspace folders.
    pub workspace: Vec<std::path::PathBuf>,
    pub settings: SessionSettings,
    /// The chat this one was forked from or is a subagent of.
    pub parent: Option<SessionId>,
    /// Which client opened it, for people: `emacs`, `zed`, `terminal`.
    pub client: String,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Done,
    /// The user stopped it.
    Stopped,
    /// The model reached its output limit.
    MaxTokens,
    /// The step limit ended it.
    MaxSteps,
    /// The loop detector ended it: the same call gave the same result again and again.
    Repeating,
    /// The provider or the model refused to answer.
    Refused {
        reason: String,
    },
    Failed {
        failure: Failure,
    },
    /// The process died in the middle; found at the next start.
    Interrupted,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemDelta {
    pub item: ItemId,
    pub channel: Channel,
    /// Byte offset of `text` in the channel's whole text.
    pub offset: u64,
    pub text: String,
}

/// What a chat has used so far. Costs are US dollars; `None` where no price is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionUsage {
    /// Tokens of the last call: what the context window holds now.
    pub last: Tokens,
    /// Tokens of all calls.
    pub total: Tokens,
    pub last_cost: Option<f64>,
    pub session_cost: Option<f64>,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    /// What the tokens of the last call were, estimated by the lengths of the texts.
    pub context: Option<ContextUse>,
    /// What was spent on what, in the order of first use.
    pub spent: Vec<Spent>,
    /// Where the provider's cache could not be used on, oldest first.
    pub breaks: Vec<PrefixBreak>,
}

/// Tokens of a context window by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContextUse {
    pub system_prompt: u64,
    pub rules: u64,
    pub skills: u64,
    /// AGENTS.md files.
    pub instructions: u64,
    pub tool_definitions: u64,
    /// Calls and their results.
    pub tool_calls: u64,
    pub conversation: u64,
}

impl ContextUse {
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, tokens)| tokens).sum()
    }

    /// Each part with its name for people.
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("System prompt", self.system_prompt),
            ("Rules", self.rules),
            ("Skills", self.skills),
            ("AGENTS.md", self.instructions),
            ("Tool definitions", self.tool_definitions),
            ("Tool calls", self.tool_calls),
            ("Conversation", self.conversation),
        ]
    }
}

/// The calls of one model for one purpose.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spent {
    /// `answers`, `title`, `compact`.
    pub purpose: String,
    pub model: String,
    pub calls: u64,
    pub tokens: Tokens,
    pub cost: Option<f64>,
}

/// A call whose beginning was not that of the call before it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PrefixBreak {
    pub reason: String,
    /// Tokens that were read anew instead of from the cache.
    pub tokens: u64,
    /// What that cost more.
    pub cost: Option<f64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    pub level: Level,
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Info,
    Warning,
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CatalogKind {
    Models,
    ToolServers,
    /// Commands in the background.
    Jobs,
    /// What agents of other vendors offer in their chats.
    Agents,
}

impl Event {
    pub fn fact(session: SessionId, recorded: Arc<Recorded>) -> Self {
        Self { session: Some(session), body: EventBody::Fact(recorded) }
    }

    pub fn delta(session: SessionId, delta: ItemDelta) -> Self {
        Self { session: Some(session), body: EventBody::Delta(delta) }
    }
}
