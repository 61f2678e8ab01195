//! The messages between two processes, version 1: what an attached window sends, and what the holder of the chat sends.
//!
//! Must not know sockets. Invariants: these types alone decide which bytes are sent, so a change of a domain type cannot
//! change the format by accident; facts, answers, settings, parts and failures are sent in the form in which they are stored.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::{
    Accepted, AcceptedStatus, Context, FlagChange, RollbackScope, SessionSettings, TurnLimits, UserPrompt,
};
use domain::event::Channel;
use domain::host::Position;
use domain::spending::Gate;
use domain::tool::Resource;
use domain::{Abilities, Answer, AskId, Failure, ItemDelta, ItemId, Part, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Stored;

/// The first message of a peer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) secret: String,
    pub(crate) session: String,
    /// The peer for people, in the log of the holder.
    pub(crate) name: String,
    pub(crate) person: PersonV1,
}

/// What the person in front of the peer can be asked. What may run without asking is not the peer's to say.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PersonV1 {
    client: String,
    approvals: bool,
    questions: bool,
    forms: bool,
    proposes_changes: bool,
    subagents: bool,
}

/// The answer to it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Welcome {
    Attached { holder: String },
    Refused(Stored<Failure>),
}

/// A command of the peer, for the chat that its first message named.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) command: CommandV1,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CommandV1 {
    Prompt(Box<PromptV1>),
    Steer { text: Option<String> },
    Cancel,
    CancelCall { call: u64 },
    Answer { ask: u64, answer: Stored<Answer> },
    Configure { change: Stored<SessionSettings> },
    Rollback { from: Option<u64>, scope: ScopeV1 },
    AddFlag { after: u64, text: String },
    RemoveFlag { flag: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) id: u64,
    pub(crate) reply: ReplyV1,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ReplyV1 {
    Done,
    Accepted { turn: u64, model: String, status: StatusV1 },
    Answer(Stored<Answer>),
    Settings(Stored<SessionSettings>),
    Failed(Stored<Failure>),
}

/// An event that is not a fact.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EventV1 {
    Delta {
        item: u64,
        channel: Stored<Channel>,
        offset: u64,
        text: String,
    },
    Progress {
        text: String,
    },
    Lost(Stored<Failure>),
    /// Facts were left out: the journal has them.
    Lagged,
}

/// Makes an enum that another one of the domain is converted to and from, variant by variant.
macro_rules! same_names {
    ($name:ident = $domain:ty { $($variant:ident),* }) => {
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        pub(crate) enum $name { $($variant),* }

        impl From<$domain> for $name {
            fn from(value: $domain) -> Self {
                match value { $(<$domain>::$variant => Self::$variant),* }
            }
        }

        impl From<$name> for $domain {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),* }
            }
        }
    };
}

same_names!(ScopeV1 = RollbackScope { Messages, Files, Both });
same_names!(StatusV1 = AcceptedStatus { Prompting, Login, Error });

impl From<Abilities> for PersonV1 {
    fn from(abilities: Abilities) -> Self {
        let Abilities { client, approvals, questions, forms, proposes_changes, subagents, .. } = abilities;
        Self { client, approvals, questions, forms, proposes_changes, subagents }
    }
}

impl From<PersonV1> for Abilities {
    fn from(person: PersonV1) -> Self {
        let PersonV1 { client, approvals, questions, forms, proposes_changes, subagents } = person;
        Self {
            client,
            approvals,
            questions,
            forms,
            proposes_changes,
            subagents,
            remote: true,
            ..Self::default()
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PromptV1 {
    text: String,
    parts: Vec<Stored<Part>>,
    contexts: Vec<ContextV1>,
    change: Stored<SessionSettings>,
    max_steps: Option<u32>,
    max_cost: Option<f64>,
    output_schema: Option<Value>,
    failover: Vec<String>,
    #[serde(default)]
    listed_resources: bool,
    #[serde(default)]
    until: Option<String>,
}

impl From<UserPrompt> for PromptV1 {
    fn from(prompt: UserPrompt) -> Self {
        let UserPrompt { text, parts, contexts, change, limits } = prompt;
        // The payer is of this process; the cap of the turn holds in the other one.
        let TurnLimits { max_steps, max_cost, gate: _, output_schema, failover, listed_resources, until } =
            limits;
        Self {
            text,
            parts: parts.into_iter().map(Into::into).collect(),
            contexts: contexts.into_iter().map(Into::into).collect(),
            change: change.into(),
            max_steps,
            max_cost,
            output_schema,
            failover,
            listed_resources,
            until,
        }
    }
}

impl From<PromptV1> for UserPrompt {
    fn from(prompt: PromptV1) -> Self {
        let PromptV1 { text, parts, contexts, change, .. } = prompt;
        let PromptV1 { max_steps, max_cost, output_schema, failover, listed_resources, until, .. } = prompt;
        let gate = Gate::default();
        Self {
            text,
            parts: parts.into_iter().map(|part| part.0).collect(),
            contexts: contexts.into_iter().map(Into::into).collect(),
            change: change.0,
            limits: TurnLimits {
                max_steps,
                max_cost,
                gate,
                output_schema,
                failover,
                listed_resources,
                until,
            },
        }
    }
}

/// Line and character.
type PositionV1 = (u32, u32);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ContextV1 {
    File { path: PathBuf, lines: Option<(u32, u32)> },
    Directory { path: PathBuf },
    Web { url: String },
    RepoMap,
    Cursor { path: PathBuf, start: PositionV1, end: PositionV1 },
    Resource { server: String, uri: String, name: String, description: String, mime: String },
    Code { content: String, language: String, description: Option<String> },
    Text { name: String, text: String },
    Image { mime: String, data: Arc<str> },
}

impl From<Context> for ContextV1 {
    fn from(context: Context) -> Self {
        let position = |at: Position| (at.line, at.character);
        match context {
            Context::File { path, lines } => Self::File { path, lines },
            Context::Directory { path } => Self::Directory { path },
            Context::Web { url } => Self::Web { url },
            Context::RepoMap => Self::RepoMap,
            Context::Cursor { path, start, end } => {
                Self::Cursor { path, start: position(start), end: position(end) }
            }
            Context::McpResource(Resource { server, uri, name, description, mime }) => {
                Self::Resource { server, uri, name, description, mime }
            }
            Context::Code { content, language, description } => Self::Code { content, language, description },
            Context::Text { name, text } => Self::Text { name, text },
            Context::Image { mime, data } => Self::Image { mime, data },
        }
    }
}

impl From<ContextV1> for Context {
    fn from(context: ContextV1) -> Self {
        let position = |(line, character): PositionV1| Position { line, character };
        match context {
            ContextV1::File { path, lines } => Self::File { path, lines },
            ContextV1::Directory { path } => Self::Directory { path },
            ContextV1::Web { url } => Self::Web { url },
            ContextV1::RepoMap => Self::RepoMap,
            ContextV1::Cursor { path, start, end } => {
                Self::Cursor { path, start: position(start), end: position(end) }
            }
            ContextV1::Resource { server, uri, name, description, mime } => {
                Self::McpResource(Resource { server, uri, name, description, mime })
            }
            ContextV1::Code { content, language, description } => {
                Self::Code { content, language, description }
            }
            ContextV1::Text { name, text } => Self::Text { name, text },
            ContextV1::Image { mime, data } => Self::Image { mime, data },
        }
    }
}

impl From<Accepted> for ReplyV1 {
    fn from(accepted: Accepted) -> Self {
        let Accepted { turn, model, status } = accepted;
        Self::Accepted { turn: turn.0, model, status: status.into() }
    }
}

impl From<()> for ReplyV1 {
    fn from((): ()) -> Self {
        Self::Done
    }
}

impl From<Answer> for ReplyV1 {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer.into())
    }
}

impl From<SessionSettings> for ReplyV1 {
    fn from(settings: SessionSettings) -> Self {
        Self::Settings(settings.into())
    }
}

/// A reply of the kind that a command expects; another kind is a mistake of the holder.
pub(crate) trait FromReply: Sized {
    fn from_reply(reply: ReplyV1) -> Option<Self>;
}

impl FromReply for () {
    fn from_reply(reply: ReplyV1) -> Option<Self> {
        matches!(reply, ReplyV1::Done).then_some(())
    }
}

impl FromReply for Accepted {
    fn from_reply(reply: ReplyV1) -> Option<Self> {
        let ReplyV1::Accepted { turn, model, status } = reply else { return None };
        Some(Self { turn: TurnId(turn), model, status: status.into() })
    }
}

impl FromReply for Answer {
    fn from_reply(reply: ReplyV1) -> Option<Self> {
        let ReplyV1::Answer(answer) = reply else { return None };
        Some(answer.0)
    }
}

impl FromReply for SessionSettings {
    fn from_reply(reply: ReplyV1) -> Option<Self> {
        let ReplyV1::Settings(settings) = reply else { return None };
        Some(settings.0)
    }
}

impl From<FlagChange> for CommandV1 {
    fn from(change: FlagChange) -> Self {
        match change {
            FlagChange::Add { after, text } => Self::AddFlag { after: after.0, text },
            FlagChange::Remove { flag } => Self::RemoveFlag { flag: flag.0 },
        }
    }
}

impl From<ItemDelta> for EventV1 {
    fn from(delta: ItemDelta) -> Self {
        let ItemDelta { item, channel, offset, text } = delta;
        Self::Delta { item: item.0, channel: channel.into(), offset, text }
    }
}

/// Numbers of the domain, as the messages have them.
pub(crate) fn item(number: u64) -> ItemId {
    ItemId(number)
}

pub(crate) fn ask(number: u64) -> AskId {
    AskId(number)
}
