//! The requests of front-ends to the engine. Each command has its typed reply, sent exactly once.
//!
//! Invariant: the engine accepts commands in arrival order, and none waits for a model, a tool or a person; events report
//! what takes time. A reply leaves before the events the command causes.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::agent::{AgentChoice, AgentOffers};
use crate::ask::Answer;
use crate::event::{Recorded, SessionUsage};
use crate::failure::Failure;
use crate::host::Position;
use crate::ids::{AskId, ItemId, SessionId, TurnId};
use crate::item::Part;
use crate::job::{Job, JobOutput};
use crate::link::FrontendPort;
use crate::memory::MemoryList;
use crate::model::ModelInfo;
use crate::provider::{LoginStep, ProviderStatus};
use crate::spending::Gate;
use crate::store::{ListFilter, Preview, SessionSummary};
use crate::tool::{Resource, ServerAction, ToolServer};

pub use crate::completion::{Completed, Completion};
pub use crate::session_settings::SessionSettings;
pub use crate::slash_argument::SlashArgument;

pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// A reply channel for a command, and the reply to come.
pub fn reply<T>() -> (Reply<T>, impl Future<Output = Result<T, Failure>>) {
    let (reply, answer) = oneshot::channel();
    (reply, async move { answer.await.unwrap_or_else(|_| Err(Failure::closed())) })
}

#[derive(Debug)]
pub enum Command {
    /// Sent by [`crate::link::Engine::attach`].
    Attach {
        port: FrontendPort,
    },
    Detach,
    /// The workspace this front-end works in by default. Resolves configuration; the reply is what clients show at start.
    Enter {
        workspace: WorkspaceSpec,
        reply: Reply<Catalog>,
    },
    /// A new chat. With an id that exists: the same as `Load`.
    Open {
        id: Option<SessionId>,
        workspace: Option<Vec<PathBuf>>,
        settings: SessionSettings,
        servers: Vec<ServerSpec>,
        reply: Reply<SessionInfo>,
    },
    /// Attaches to a stored chat. Its facts come by `Read` (or by a [`crate::Follower`]).
    Load {
        session: SessionId,
        servers: Vec<ServerSpec>,
        reply: Reply<SessionInfo>,
    },
    /// The newest facts of a stored chat, before it is loaded; `None` where there is no such chat.
    Preview {
        session: SessionId,
        limit: usize,
        reply: Reply<Option<Preview>>,
    },
    /// Facts after a number: replay, and what a lagging reader missed. Pages: empty means that is all.
    Read {
        session: SessionId,
        after: u64,
        limit: usize,
        reply: Reply<Vec<Arc<Recorded>>>,
    },
    List {
        filter: ListFilter,
        reply: Reply<Vec<SessionSummary>>,
    },
    /// This front-end leaves the chat. With the last one, the turn stops and the chat's servers end; the chat stays
    /// stored.
    Close {
        session: SessionId,
        reply: Reply<()>,
    },
    Delete {
        session: SessionId,
        reply: Reply<()>,
    },
    /// A new chat with the history up to and including `until` (`None`: all of it). With an `id` that exists: the same
    /// as `Load` of that chat.
    Fork {
        session: SessionId,
        until: Option<ItemId>,
        id: Option<SessionId>,
        reply: Reply<SessionInfo>,
    },
    /// Drops the history from `from` on (`None`: all of it), takes back the file changes of its turns, or both. Refused
    /// while a turn runs.
    Rollback {
        session: SessionId,
        from: Option<ItemId>,
        scope: RollbackScope,
        reply: Reply<()>,
    },
    /// Sets or removes a bookmark of the user's. Also while a turn runs.
    Flag {
        session: SessionId,
        change: FlagChange,
        reply: Reply<()>,
    },
    /// `session: None`: the default of new chats of this front-end.
    Configure {
        session: Option<SessionId>,
        change: SessionSettings,
        reply: Reply<SessionSettings>,
    },
    Prompt {
        session: SessionId,
        prompt: UserPrompt,
        reply: Reply<Accepted>,
    },
    /// Text for the running turn at its next step; refused where no turn reads it. `None` takes back unread text.
    Steer {
        session: SessionId,
        text: Option<String>,
        reply: Reply<()>,
    },
    /// Stops the running turn at once; nothing happens when none runs.
    Cancel {
        session: SessionId,
    },
    /// Stops one running tool call; the turn goes on without its result. Refused where the call does not run.
    CancelCall {
        session: SessionId,
        call: ItemId,
        reply: Reply<()>,
    },
    /// The first answer settles an ask; the reply is the answer that did. Unknown asks are refused.
    Answer {
        session: SessionId,
        ask: AskId,
        answer: Answer,
        reply: Reply<Answer>,
    },
    /// Starts the agent of another vendor that answers in this chat, where it does not run, and tells what it offers; with
    /// a choice, after it has taken that.
    Agent {
        session: SessionId,
        choice: Option<AgentChoice>,
        reply: Reply<AgentOffers>,
    },
    Catalog {
        reply: Reply<Catalog>,
    },
    Contexts {
        session: Option<SessionId>,
        query: String,
        kind: ContextQuery,
        reply: Reply<Vec<Context>>,
    },
    SlashCommands {
        session: Option<SessionId>,
        query: String,
        reply: Reply<Vec<SlashCommand>>,
    },
    /// Values for the last of these arguments of a server's prompt.
    CompleteArgument {
        command: String,
        arguments: Vec<String>,
        reply: Reply<Vec<String>>,
    },
    /// The servers of the workspace, and with a session also those that its client brought along.
    Servers {
        session: Option<SessionId>,
        reply: Reply<Vec<ToolServer>>,
    },
    ServerAction {
        name: String,
        action: ServerAction,
        reply: Reply<()>,
    },
    /// The user's accounts with providers.
    Providers {
        reply: Reply<Vec<ProviderStatus>>,
    },
    /// Begins a login; `method`: one of those that the reply to an earlier call named.
    Login {
        provider: String,
        method: Option<String>,
        reply: Reply<LoginStep>,
    },
    /// What the user typed for a login, by the names of its fields.
    FinishLogin {
        provider: String,
        fields: Vec<(String, String)>,
        reply: Reply<()>,
    },
    Logout {
        provider: String,
        reply: Reply<()>,
    },
    /// The commands that run in the background of any chat.
    Jobs {
        reply: Reply<Vec<Job>>,
    },
    /// Ends one; the reply says whether it ran.
    StopJob {
        id: String,
        reply: Reply<bool>,
    },
    JobOutput {
        id: String,
        reply: Reply<JobOutput>,
    },
    /// The memory across chats; `None` where it is switched off.
    Memory {
        reply: Reply<Option<MemoryList>>,
    },
    /// Under the same path policy as the tools; inside the workspace only. Logged in the chat where `session` is given.
    ReadFile {
        session: Option<SessionId>,
        path: PathBuf,
        reply: Reply<FileContent>,
    },
    Stat {
        session: Option<SessionId>,
        path: PathBuf,
        reply: Reply<FileStat>,
    },
    Glob {
        session: Option<SessionId>,
        pattern: String,
        reply: Reply<Vec<PathBuf>>,
    },
    /// One model call without tools, session or journal item; text comes by `deltas` as it streams.
    Complete {
        completion: Completion,
        deltas: Option<mpsc::Sender<String>>,
        reply: Reply<Completed>,
    },
    /// Stops everything and waits for the journal; answered when everything is on disk.
    Shutdown {
        reply: Reply<()>,
    },
}

impl Command {
    /// An answer whose sender does not wait for the reply.
    pub fn answer(session: SessionId, ask: AskId, answer: Answer) -> Self {
        let (reply, _) = oneshot::channel();
        Self::Answer { session, ask, answer, reply }
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkspaceSpec {
    /// Absolute paths; may be empty.
    pub roots: Vec<PathBuf>,
    /// A protocol's `initializationOptions`, a layer of configuration.
    pub options: Option<Value>,
}

/// What a rollback takes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RollbackScope {
    #[default]
    Messages,
    /// The changes that tools made to files.
    Files,
    Both,
}

/// What happens to a bookmark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlagChange {
    /// Behind this item.
    Add {
        after: ItemId,
        text: String,
    },
    Remove {
        flag: ItemId,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionInfo {
    pub id: SessionId,
    pub workspace: Vec<PathBuf>,
    pub settings: SessionSettings,
    pub usage: SessionUsage,
    /// Number of the newest fact when the reply was made.
    pub newest: u64,
    /// A turn runs.
    pub busy: bool,
    /// Another process writes this chat, and this one has no link to it: it can be followed and forked, not prompted.
    pub held_by: Option<String>,
    /// Another process holds this chat, and this window works through it: its keys, policy, sandbox and folder count.
    pub attached_to: Option<String>,
    pub created_at: u64,
    pub updated_at: u64,
    /// How many items can be shown.
    pub items: usize,
    pub last_compaction: Option<ItemId>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct UserPrompt {
    pub text: String,
    /// Images and the like that belong to the message itself.
    pub parts: Vec<Part>,
    pub contexts: Vec<Context>,
    /// Applied to the chat before the turn starts.
    pub change: SessionSettings,
    pub limits: TurnLimits,
}

/// What one turn may take, beside what the settings say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TurnLimits {
    pub max_steps: Option<u32>,
    /// US dollars; checked before each call to the model.
    pub max_cost: Option<f64>,
    /// Asked before each call to a model, whatever it is for.
    pub gate: Gate,
    /// The answer must be JSON of this schema, where the model's API can enforce it.
    pub output_schema: Option<Value>,
    /// Models to go on with when one fails, in order; empty: those of the settings.
    pub failover: Vec<String>,
    /// Resources of MCP servers are contexts only where their server lists them: its templates may lead anywhere.
    pub listed_resources: bool,
    /// The turn goes on until this command succeeds.
    pub until: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Accepted {
    pub turn: TurnId,
    /// The model that will answer; empty where a command answers alone.
    pub model: String,
    pub status: AcceptedStatus,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceptedStatus {
    Prompting,
    /// A key is missing; the chat says what to set.
    Login,
    /// The chat says why nothing will come.
    Error,
}

/// What the user adds to a prompt.
#[derive(Clone, PartialEq, Debug)]
pub enum Context {
    /// `lines`: 1-based, inclusive.
    File {
        path: PathBuf,
        lines: Option<(u32, u32)>,
    },
    Directory {
        path: PathBuf,
    },
    Web {
        url: String,
    },
    RepoMap,
    Cursor {
        path: PathBuf,
        start: Position,
        end: Position,
    },
    McpResource(Resource),
    Code {
        content: String,
        language: String,
        description: Option<String>,
    },
    Text {
        name: String,
        text: String,
    },
    Image {
        mime: String,
        data: Arc<str>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextQuery {
    /// Everything that can be added.
    All,
    /// Files only.
    Files,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    pub origin: SlashOrigin,
    pub arguments: Vec<SlashArgument>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlashOrigin {
    Native,
    McpPrompt,
    /// From a file of the user's.
    Custom,
    /// The instructions of a skill.
    Skill,
}

/// What clients show at start and when something changes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Catalog {
    pub models: Vec<ModelInfo>,
    /// Names of behaviors, `agent` and `plan` first.
    pub behaviors: Vec<String>,
    pub default_model: Option<String>,
    pub default_behavior: String,
    pub welcome: String,
    /// The model that rewrites selections, where it is another than the default.
    pub rewrite_model: Option<String>,
    /// What chats that an editor shows inside a file begin with, where it is another than the default.
    pub inline: SessionSettings,
    /// Sentences a person should read: broken files, what was left out of an untrusted folder.
    pub notices: Vec<crate::event::Notice>,
}

/// Refuses a behavior that is not among those that can be chosen, and names these. `code` means `agent`.
pub fn known_behavior(name: &str, known: &[String]) -> Result<(), Failure> {
    if known.iter().any(|known| known == name || (known == "agent" && name == "code")) {
        return Ok(());
    }
    Err(Failure::user(format!("There is no behavior {name:?}."))
        .hint(format!("Choose one of these: {}.", known.join(", "))))
}

/// An MCP server that a client hands over with a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSpec {
    pub name: String,
    pub transport: ServerTransport,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerTransport {
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)> },
    Http { url: String, headers: Vec<(String, String)> },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileContent {
    pub bytes: Vec<u8>,
    /// Changes when the content changes; below 2^53.
    pub version: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStat {
    pub exists: bool,
    pub directory: bool,
}
