//! What a tool is to the engine: a description for the model, a review for the policy, a run.
//!
//! Invariant: `review` changes nothing; whatever it says, `run` checks paths again when it uses them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::ask::{Answer, AskKind};
use crate::failure::Failure;
use crate::host::{Abilities, HostCall, HostReply};
use crate::ids::{ItemId, SessionId};
use crate::job::{Continued, Job, JobOutput};
use crate::part::Part;
pub use crate::sampling::{Sample, Sampled, WebAnswer};
use crate::taint::Taint;
pub use crate::text_format::TextFormat;
use crate::tool_call::{Details, Location, Origin};
use crate::visible::{visible_line, visible_source, visible_text};
use crate::{BoxFuture, CancellationToken};

pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Whether a front-end with these abilities gives it anything to do; where not, the model is not offered it.
    fn is_useful_with(&self, _abilities: &Abilities) -> bool {
        true
    }

    /// The form of its one argument, for models that write it as plain text instead of JSON.
    fn text_format(&self) -> Option<TextFormat> {
        None
    }

    /// Bare names of other built-in tools whose deny and ask rules hold for this one too: it can do what they do.
    fn counts_as(&self) -> &'static [&'static str] {
        &[]
    }

    /// Finds out, once, what reviews depend on and cannot wait for. The engine calls it before `review`.
    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// What this call would do, for the policy and for people. `Err` becomes the call's result for the model.
    fn review(&self, input: &Value, scope: &Scope) -> Result<Review, String>;

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult>;

    /// A person approved these keys of a review for later calls as well. The session remembers them by itself.
    fn remember(&self, _keys: &[String], _scope: &Scope) {}
}

/// A tool as it is offered to a model.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    /// The bare name.
    pub name: String,
    /// `eca` for built-in tools, else the MCP server's name.
    pub server: String,
    pub origin: Origin,
    pub description: String,
    /// JSON schema of the input, an object.
    pub input_schema: Value,
    pub effect: ToolEffect,
}

/// What runs of a tool can do, as the tool declares it. Policy depends on this alone, never on a tool's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ToolEffect {
    /// Changes nothing; several calls may run at once.
    Reads,
    /// Shows a change without making it; offered only where changes are forbidden.
    Previews,
    /// Changes files at the paths that its review names.
    WritesFiles,
    /// Changes nothing here and sends requests to other machines.
    UsesNetwork,
    /// Runs programs.
    RunsCommands,
    /// Anything else, such as the tools of MCP servers.
    Other,
}

impl ToolEffect {
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Reads | Self::Previews | Self::UsesNetwork)
    }
}

impl ToolSpec {
    /// The name the model sees: `eca__read_file`.
    pub fn offered_name(&self) -> String {
        format!("{}__{}", self.server, self.name)
    }
}

/// Where a call may act.
#[derive(Clone, Debug)]
pub struct Scope {
    pub session: SessionId,
    /// Absolute, resolved workspace folders; the first is the working directory.
    pub roots: Arc<[PathBuf]>,
    /// The behavior forbids changes: only commands that read may run.
    pub read_only: bool,
    /// Shell commands this session remembers as allowed.
    pub remembered: Arc<[String]>,
    /// Patterns of paths that no tool may read. Tools that search leave such files out.
    pub forbidden_paths: Arc<[String]>,
    /// The chat has read text of strangers: files that hold secrets are kept from its commands.
    pub tainted: bool,
    /// The chat has read a secret.
    pub secret_read: bool,
}

/// What a call would do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Review {
    /// One line for people: `Reading src/main.rs`.
    pub summary: String,
    pub details: Option<Details>,
    pub locations: Vec<Location>,
    /// Paths outside the workspace that the call would touch, resolved.
    pub outside: Vec<PathBuf>,
    /// Arguments that name paths, each with where it leads: relative to the workspace where it can be, and absolute.
    pub paths: Vec<(String, [String; 2])>,
    /// Exactly what an approval for the rest of the session covers: commands of a shell line, hosts. Where it is empty,
    /// the engine names the tool and its paths.
    pub keys: Vec<String>,
    /// The programs of a shell line, each with its subcommand, for rules: `git push`, `rm`.
    pub subcommands: Vec<String>,
    /// The commands of a shell line with their arguments, without quotes.
    pub commands: Vec<String>,
    /// Allowed by default policy as it is: reads inside the workspace, read-only listed commands.
    pub harmless: bool,
    /// The plan behavior must refuse it.
    pub changes: bool,
    /// Why it is asked about where no rule says so: `It needs the network: npm install.`
    pub cause: Option<String>,
    /// Its sandbox keeps it from opening what rules forbid to read.
    pub seals_forbidden: bool,
    /// Its sandbox keeps it from opening files of the workspace that hold secrets.
    pub seals_secrets: bool,
    /// Why it must be asked whatever is remembered (redirections, substitutions, unknown syntax, …).
    pub must_ask: Option<String>,
    /// What it would be granted beyond its sandbox, a sentence each. Only a person can grant: neither a rule nor trust.
    pub grants: Vec<String>,
    /// Files that the call may destroy and that undo could not bring back. The engine finds them, not the tool; only a
    /// person can allow it.
    pub unrecoverable: Vec<PathBuf>,
    /// Its sandbox keeps it from everything but the workspace, where changes can be undone. Default policy allows it
    /// where it would ask a person; it then runs with `Invocation::contained`.
    pub contained: bool,
    /// Its sandbox can keep the files of the workspace that run later as they are, and the call does not ask to change
    /// them. In a tainted chat it does, unless a person is asked about the call.
    pub keeps_run_later: bool,
    /// A shell line that is not fully understood: it may do more than its commands say.
    pub unclear: bool,
    /// Paths that a shell line may read, besides `paths`: relative to the workspace where it can be, and absolute.
    pub read_paths: Vec<[String; 2]>,
    /// A shell line that may read files it does not name, below a folder or by a pattern.
    pub reads_unnamed: bool,
    /// Files among those it may read that are known to hold keys or passwords, for people.
    pub secrets: Vec<String>,
    /// Files it would change that decide what runs or what is allowed: policy, configuration, hooks, CI. For people.
    pub run_later: Vec<String>,
    /// How it could send something out. `None`: as the effect of the tool says.
    pub exposure: Option<Exposure>,
    /// Other built-in tools whose deny and ask rules hold for the call too, because it can do what they do.
    pub counts_as: &'static [&'static str],
    /// What rules compare beside the arguments of the call: texts that it gives by other names or in parts.
    pub arguments: Vec<(&'static str, String)>,
}

/// How a call could send something to other machines. The worst comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Exposure {
    /// It sends nothing.
    Local,
    /// It runs code of the project, which could send something: builds, tests.
    RunsProject,
    /// It downloads from package registries, which also take uploads.
    Registries,
    /// It talks to other machines.
    Network,
    /// It runs code that the review does not know, which could read, change and send anything.
    Unknown,
}

impl Review {
    /// The review as people are asked about it: every character of what they see is visible.
    pub fn into_visible(mut self) -> Self {
        make_visible(&mut self.summary, visible_source);
        self.must_ask.iter_mut().chain(&mut self.cause).for_each(|text| make_visible(text, visible_text));
        self.grants.iter_mut().for_each(|text| make_visible(text, visible_text));
        self.keys.iter_mut().for_each(|key| make_visible(key, visible_line));
        self.secrets.iter_mut().chain(&mut self.run_later).for_each(|file| make_visible(file, visible_line));
        match &mut self.details {
            Some(Details::FileChange(change)) => {
                make_visible(&mut change.diff, visible_source);
                // Editors draw these texts themselves; where they hide something, the diff is what is shown.
                // Line ends of Windows hide nothing.
                let hides =
                    |text: &String| matches!(visible_source(&text.replace("\r\n", "\n")), Cow::Owned(_));
                let path = change.path.display().to_string();
                if change.old_text.iter().chain(&change.new_text).chain([&path]).any(hides) {
                    (change.old_text, change.new_text) = (None, None);
                }
            }
            Some(Details::Shell { commands }) => {
                commands.iter_mut().for_each(|part| make_visible(&mut part.key, visible_line));
            }
            Some(Details::Tasks { entries }) => {
                entries.iter_mut().for_each(|entry| make_visible(&mut entry.text, visible_text));
            }
            Some(Details::Subagent { name, .. }) => make_visible(name, visible_line),
            Some(Details::Json { .. }) | None => {}
        }
        self
    }
}

fn make_visible(text: &mut String, show: fn(&str) -> Cow<'_, str>) {
    if let Cow::Owned(visible) = show(text) {
        *text = visible;
    }
}

/// One run of a tool.
pub struct Invocation {
    pub item: ItemId,
    pub input: Value,
    pub scope: Scope,
    /// The call was approved with its paths outside the workspace.
    pub outside_allowed: bool,
    /// Nobody approved the call: it runs because its sandbox contains it, and must run in the strictest one.
    pub contained: bool,
    /// Files of the workspace that run later stay as they are.
    pub keeps_run_later: bool,
    /// Files and folders of the workspace, at any depth, that other programs run by themselves, as far as they are known.
    pub run_later: Vec<PathBuf>,
    pub cancel: CancellationToken,
    pub context: Arc<dyn ToolContext>,
}

/// The engine as a running tool uses it.
pub trait ToolContext: Send + Sync {
    /// Output for people while it runs.
    fn output(&self, text: &str);

    /// The call's command goes on after its result.
    fn goes_on(&self, _continued: Continued) {}

    /// Something that the people in the chat must know, once.
    fn notice(&self, _text: &str) {}

    /// What the front-end of this turn can do.
    fn abilities(&self) -> Abilities;

    fn host(&self, call: HostCall, deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>>;

    fn ask(&self, kind: AskKind) -> BoxFuture<'_, Answer>;

    /// Has a model search the web by the tool of its provider. What it costs counts as the chat's.
    fn search_web<'a>(
        &'a self,
        _model: &'a str,
        _words: &'a str,
    ) -> BoxFuture<'a, Result<WebAnswer, Failure>> {
        Box::pin(async { Err(Failure::user("No model can be asked here.")) })
    }

    /// One answer of the turn's model, for a tool that the user allowed to use it. The chat pays, within its budgets.
    fn sample(&self, _sample: Sample) -> BoxFuture<'_, Result<Sampled, Failure>> {
        Box::pin(async { Err(Failure::user("No model can be used here.")) })
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolResult {
    pub parts: Vec<Part>,
    pub error: bool,
    /// Replaces the details of the review where set.
    pub details: Option<Details>,
    pub locations: Vec<Location>,
    /// The history should be compacted now (`compact_chat`).
    pub compact: Option<String>,
    /// What the result brings along beside what its tool says of itself: the taint of another chat.
    pub taint: Taint,
}

impl ToolResult {
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], ..Self::default() }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], error: true, ..Self::default() }
    }
}

/// Where tools come from: the built-in ones, MCP servers. Handed to the engine by `app`.
pub trait ToolSource: Send + Sync {
    /// The servers as clients show them; the built-in one is called `ECA`.
    fn servers(&self) -> Vec<ToolServer>;

    /// Tools that can be called now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Instructions of servers for the system prompt.
    fn instructions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether servers can be added to this source.
    fn takes_servers(&self) -> bool {
        false
    }

    fn act<'a>(&'a self, _server: &'a str, _action: ServerAction) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Err(Failure::user("There is no such server.")) })
    }

    /// Slash commands that servers offer (MCP prompts).
    fn prompts(&self) -> Vec<ServerPrompt> {
        Vec::new()
    }

    fn prompt<'a>(&'a self, _name: &'a str, _arguments: Value) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async { Err(Failure::user("There is no such prompt.")) })
    }

    fn resources(&self) -> Vec<Resource> {
        Vec::new()
    }

    fn resource<'a>(&'a self, _server: &'a str, _uri: &'a str) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async { Err(Failure::user("There is no such resource.")) })
    }

    /// Resources that servers do not list: those whose addresses fit the typed text and a template of a server. Servers
    /// that complete arguments are asked, for two seconds at most.
    fn templated_resources<'a>(&'a self, _typed: &'a str) -> BoxFuture<'a, Vec<Resource>> {
        Box::pin(async { Vec::new() })
    }

    /// Values for the last of these arguments of a prompt, from a server that completes arguments; two seconds at most.
    fn complete_prompt<'a>(&'a self, _name: &'a str, _arguments: &'a [String]) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    /// Commands that run in the background.
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    /// Ends a job; `None`: it is not one of this source's. Whether it ran.
    fn stop_job<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Option<bool>> {
        Box::pin(async { None })
    }

    /// What a job has printed. Reading it changes nothing for the model, which reads on where it was.
    fn job_output(&self, _id: &str) -> Option<JobOutput> {
        None
    }

    /// A chat was deleted: ends its jobs and deletes what was kept for it.
    fn forget<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Ends the jobs of a chat that another process may take over soon.
    fn stop_jobs_of<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Ends its servers until `resume`, because other processes may take over the chats that they work for.
    fn suspend(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Starts the servers again that `suspend` ended.
    fn resume(&self) {}

    /// Resolves when servers of which nothing is known have answered or failed, after two seconds in any case.
    fn first_lists(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Ends every process it owns.
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum ServerAction {
    Start,
    Stop,
    /// A person logs in with a browser; the server's message is the address until then.
    Login,
    /// Forgets the login.
    Logout,
    /// Starts it now and in the future.
    Enable,
    Disable,
    /// Adds a server to the configuration: of the user, or of this folder.
    Add {
        entry: Value,
        folder: Option<std::path::PathBuf>,
    },
    /// Changes members of its entry; null removes one.
    Update {
        changes: Value,
    },
    Remove,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ToolServer {
    pub name: String,
    pub origin: Origin,
    pub status: ServerStatus,
    pub command: String,
    pub args: Vec<String>,
    pub url: Option<String>,
    /// The last lines of stderr where it failed.
    pub error: Option<String>,
    pub tools: Vec<ToolSpec>,
    /// By the names that the server gives them.
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<Resource>,
    /// It runs with a login of the user.
    pub has_login: bool,
}

impl ToolServer {
    /// What is wrong with it and the command that helps; `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        let name = &self.name;
        let reason = self.error.as_deref().unwrap_or_default().trim();
        match self.status {
            ServerStatus::Failed => {
                Some(format!("The MCP server {name} failed. {reason} Try it: `dragoman mcp test {name}`."))
            }
            ServerStatus::RequiresAuth if reason.is_empty() => {
                Some(format!("The MCP server {name} requires a login. Run `dragoman mcp login {name}`."))
            }
            ServerStatus::RequiresAuth => Some(format!("The MCP server {name} requires a login. {reason}")),
            ServerStatus::Starting
            | ServerStatus::Running
            | ServerStatus::Stopping
            | ServerStatus::Stopped
            | ServerStatus::Disabled => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerStatus {
    Starting,
    Running,
    Stopping,
    Stopped,
    Failed,
    Disabled,
    RequiresAuth,
}

/// `name` is `server:prompt`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerPrompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<crate::slash_argument::SlashArgument>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    pub server: String,
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime: String,
}
