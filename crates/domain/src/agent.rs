//! An agent of another vendor that answers prompts as a child process, in no protocol's words.
//!
//! The agent runs its own tools. What it does comes as [`AgentEvent`]s, and what it wants of us as [`AgentRequest`]s that
//! the engine answers. Invariant: every request has one reply; dropping its sender refuses it.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::ids::SessionId;
use crate::item::{Part, PlanEntry};
use crate::model_answer::{StopReason, Tokens};
use crate::tool::ToolSpec;
use crate::tool_call::{FileChange, Location};
use crate::{BoxFuture, CancellationToken};

/// An agent behind a model's name, such as `acp:codex/default`.
pub trait ExternalAgent: Send + Sync {
    /// Starts the agent for a chat where it does not run, and opens its session.
    fn open(&self, opening: AgentOpening) -> BoxFuture<'_, Result<OpenedAgent, Failure>>;

    /// Sends a prompt to the opened session. The stream ends with [`AgentEvent::Ended`] or a failure. Dropping it stops
    /// the agent's work.
    fn prompt(&self, chat: &SessionId, parts: Vec<Part>) -> AgentStream;

    /// Resolves when the agent no longer works on anything: by itself, or because it was ended.
    fn wait_until_idle<'a>(&'a self, chat: &'a SessionId) -> BoxFuture<'a, ()>;

    /// What the agent offers in the open session of the chat; `None`: it does not run.
    fn offers(&self, chat: &SessionId) -> Option<AgentOffers>;

    /// Chooses something that the agent offers in the open session of the chat.
    fn choose<'a>(&'a self, chat: &'a SessionId, choice: AgentChoice) -> BoxFuture<'a, Result<(), Failure>>;
}

/// What an agent lets its user choose, as the agent itself describes it. Only a front-end that speaks the agent's protocol reads
/// the values, and shows them unchanged.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AgentOffers {
    pub modes: Value,
    pub models: Value,
    pub options: Value,
    pub commands: Value,
    /// The names of the commands, without a slash, and what each does.
    pub slash_commands: Vec<(String, String)>,
}

/// A choice of the user among [`AgentOffers`], by the agent's own ids.
#[derive(Clone, PartialEq, Debug)]
pub enum AgentChoice {
    Mode { id: String },
    Model { id: String },
    Option { id: String, value: Value },
}

pub type AgentStream = Pin<Box<dyn Stream<Item = Result<AgentEvent, Failure>> + Send>>;

/// What an agent is opened with.
#[derive(Clone, Debug)]
pub struct AgentOpening {
    pub chat: SessionId,
    /// Absolute, resolved workspace folders; the first is the working directory.
    pub roots: Arc<[PathBuf]>,
    /// The session of the agent to go on with.
    pub known: Option<String>,
    /// Patterns of paths that nothing may read.
    pub forbidden_paths: Arc<[String]>,
    /// The chat has read text of strangers: files that hold secrets are kept from the agent.
    pub tainted: bool,
    /// The behavior forbids changes: the agent cannot write the workspace.
    pub read_only: bool,
    /// Tools of servers that the agent may call through us.
    pub tools: Arc<[ToolSpec]>,
}

/// An agent that is ready for prompts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedAgent {
    /// The short name, as in `acp:NAME/…`.
    pub agent: String,
    /// The name and version that it gives itself.
    pub title: String,
    /// The agent's own name of the session.
    pub session: String,
    /// The session is the known one, with everything that was said in it.
    pub is_known: bool,
    /// The agent process was started for this; otherwise it was running.
    pub is_started: bool,
    /// The sandbox holds the whole agent.
    pub is_confined: bool,
    /// Its sandbox keeps it from opening what rules forbid to read.
    pub seals_forbidden: bool,
}

#[derive(Debug)]
pub enum AgentEvent {
    Text {
        text: String,
    },
    Thought {
        text: String,
    },
    /// A tool call of the agent began or changed.
    Call(Box<AgentCall>),
    /// The whole plan, anew.
    Plan {
        entries: Vec<PlanEntry>,
    },
    Usage(AgentUsage),
    /// A sentence for people: another mode, an update that was left out.
    Notice {
        text: String,
    },
    Request(AgentRequest),
    /// The last event of a good stream.
    Ended {
        reason: StopReason,
        /// What the prompt used, where the agent says so.
        tokens: Option<Tokens>,
    },
}

/// What is new about a tool call; what is not set is as before.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AgentCall {
    /// The agent's own id.
    pub id: String,
    pub title: Option<String>,
    pub kind: Option<CallKind>,
    pub status: Option<CallStatus>,
    pub input: Option<Value>,
    /// The output so far, whole.
    pub output: Option<Vec<Part>>,
    pub changes: Vec<FileChange>,
    pub locations: Option<Vec<Location>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallStatus {
    Pending,
    Running,
    Done,
    Failed,
}

/// What an agent says of its context window and of money, for its whole session.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AgentUsage {
    pub used: u64,
    pub window: u64,
    /// US dollars.
    pub cost: Option<f64>,
}

/// Something that the agent asks of us.
#[derive(Debug)]
pub enum AgentRequest {
    /// May this call run? `true` lets it run once.
    Permission {
        call: Box<AgentCall>,
        reply: oneshot::Sender<bool>,
    },
    ReadFile {
        path: PathBuf,
        line: Option<u32>,
        limit: Option<u32>,
        /// `None`: there is no such file.
        reply: oneshot::Sender<Result<Option<String>, String>>,
    },
    WriteFile {
        path: PathBuf,
        content: String,
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// Runs a shell line.
    Command(AgentCommand),
    /// Calls one of the offered tools.
    Tool(AgentToolCall),
}

/// A call of a tool that was offered to the agent.
#[derive(Debug)]
pub struct AgentToolCall {
    pub server: String,
    pub name: String,
    pub input: Value,
    /// The agent no longer wants the result.
    pub cancel: CancellationToken,
    /// The text of the result; `Err`: the call failed or was refused, and why.
    pub reply: oneshot::Sender<Result<String, String>>,
}

#[derive(Debug)]
pub struct AgentCommand {
    pub line: String,
    pub directory: Option<PathBuf>,
    pub output: OutputSink,
    pub cancel: CancellationToken,
    pub reply: oneshot::Sender<Result<CommandEnd, String>>,
}

/// Takes the output of a command as it comes.
#[derive(Clone)]
pub struct OutputSink(pub Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for OutputSink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OutputSink")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandEnd {
    pub exit_code: Option<i32>,
}
