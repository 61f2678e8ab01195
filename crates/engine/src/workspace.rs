//! What a session works with: settings, models, tools and files of its workspace. Made by `app`, which alone knows
//! the crates behind the traits.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Settings;
use domain::command::{ServerSpec, WorkspaceSpec};
use domain::event::Notice;
use domain::files::Files;
use domain::model::Models;
use domain::provider::{LoginStep, ProviderStatus};
use domain::tool::{ToolServer, ToolSource};
use domain::{Abilities, BoxFuture, Failure};
use tokio::sync::mpsc;

use crate::hooks::HookRunner;
use crate::memory::MemoryFolders;
use crate::undo_log::UndoLog;

/// Resolves a workspace. Called on the way to `initialize`: must not connect, spawn or walk.
pub trait WorkspaceSource: Send + Sync {
    /// A front-end was attached: workspaces that are entered later serve it.
    fn attached(&self, _abilities: &Abilities) {}

    fn workspace(&self, workspace: &WorkspaceSpec) -> Arc<Workspace>;

    /// Tool servers that live with one session.
    fn session_servers(&self, servers: &[ServerSpec], roots: &[PathBuf]) -> Vec<Arc<dyn ToolSource>>;
}

pub struct Workspace {
    pub roots: Vec<PathBuf>,
    pub settings: Arc<Settings>,
    pub models: Arc<dyn Models>,
    pub sources: Vec<Arc<dyn ToolSource>>,
    pub files: Arc<dyn Files>,
    pub notices: Vec<Notice>,
    /// The user trusts all of its folders, so their files do not taint a chat.
    pub is_trusted: bool,
    pub texts: Arc<dyn Texts>,
    /// `None`: accounts cannot be changed here.
    pub accounts: Option<Arc<dyn ProviderAccounts>>,
    /// `None`: hooks cannot run, so those before tool calls make calls ask.
    pub hooks: Option<Arc<dyn HookRunner>>,
    /// `None`: changes of files are not recorded.
    pub undo: Option<Arc<UndoLog>>,
    /// `None`: subagents cannot work in worktrees.
    pub worktrees: Option<Arc<dyn Worktrees>>,
}

/// Git worktrees of a workspace's first folder, in which subagents work.
pub trait Worktrees: Send + Sync {
    /// Makes a worktree at the last commit.
    fn create(&self) -> BoxFuture<'_, Result<Worktree, Failure>>;

    /// Removes a worktree, unless work would be lost with it: then a sentence says why it is kept.
    fn release<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, Option<String>>;
}

/// A worktree and what a subagent has there: the settings and models of its parent, the built-in tools, no servers.
pub struct Worktree {
    pub folder: PathBuf,
    pub workspace: Arc<Workspace>,
}

/// Texts from outside the chat: the user's rules and commands, and what `app` knows of configuration and providers.
pub trait Texts: Send + Sync {
    /// Rule files, read anew.
    fn rules(&self) -> Vec<NamedText>;
    /// Custom commands, read anew.
    fn commands(&self) -> Vec<NamedText>;
    /// Skills, read anew.
    fn skills(&self) -> Vec<Skill> {
        Vec::new()
    }
    /// The sources of plugins and what they offer.
    fn plugins(&self) -> String {
        String::new()
    }
    fn global_agents_file(&self) -> Option<PathBuf>;
    /// Where the memory across chats is; `None` where it is switched off.
    fn memory(&self) -> Option<MemoryFolders> {
        None
    }
    /// Facts about the machine and the project for the system prompt: date, system, shell, git branch.
    fn environment(&self) -> String {
        String::new()
    }
    /// Allow rules that the user has added since the settings were read.
    fn added_rules(&self) -> Vec<config::Rule> {
        Vec::new()
    }
    /// A sentence about settings that changed after they were read.
    fn changed_settings(&self) -> Option<String> {
        None
    }
    /// Replaces the behavior's own instructions.
    fn system_prompt(&self) -> Option<String> {
        None
    }
    fn config(&self) -> String;
    fn doctor(&self) -> domain::BoxFuture<'_, String>;
    /// What contains the commands of the model.
    fn sandbox(&self) -> domain::BoxFuture<'_, String> {
        Box::pin(async { "Nothing is known about a sandbox here.".to_owned() })
    }
    /// The figures of this workspace's chats over so many days.
    fn stats<'a>(
        &'a self,
        _store: &'a dyn domain::Store,
        _days: u16,
    ) -> domain::BoxFuture<'a, Result<String, domain::Failure>> {
        Box::pin(async { Err(domain::Failure::user("There are no figures here.")) })
    }
    fn login<'a>(&'a self, provider: Option<&'a str>) -> domain::BoxFuture<'a, String>;
}

/// A rule or a command of the user's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamedText {
    pub name: String,
    pub text: String,
    /// What it is for, in a line.
    pub description: Option<String>,
    /// A rule is about files of these patterns; empty: about everything.
    pub paths: Vec<String>,
    /// A rule holds for these agents; empty: for all.
    pub agents: Vec<String>,
    /// A rule holds for models whose full name matches one of these regular expressions; empty: for all.
    pub models: Vec<String>,
    /// When the model must have read a rule about files: before it would `read` or `modify` one of them.
    pub enforce: Vec<String>,
}

/// Instructions for one kind of work, which the model is given when it asks for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skill {
    pub name: String,
    /// When it is of use.
    pub description: String,
    pub text: String,
    /// The folder with its other files.
    pub folder: PathBuf,
}

/// The user's accounts with providers, as clients show and change them. A key never leaves by it.
pub trait ProviderAccounts: Send + Sync {
    fn providers(&self) -> Vec<ProviderStatus>;

    /// Begins a login, or says what it needs.
    fn login<'a>(
        &'a self,
        provider: &'a str,
        method: Option<&'a str>,
    ) -> BoxFuture<'a, Result<LoginStep, Failure>>;

    /// Ends a login with what the user typed, by the names of its fields.
    fn finish_login(&self, provider: &str, fields: &[(String, String)]) -> Result<(), Failure>;

    fn logout(&self, provider: &str) -> Result<(), Failure>;
}

/// A workspace that is in use by front-ends and sessions. The router hears of it when the last of them lets it go.
pub(crate) struct OpenWorkspace {
    workspace: Arc<Workspace>,
    released: mpsc::UnboundedSender<()>,
}

impl OpenWorkspace {
    pub(crate) fn new(workspace: Arc<Workspace>, released: mpsc::UnboundedSender<()>) -> Self {
        Self { workspace, released }
    }
}

impl Deref for OpenWorkspace {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Drop for OpenWorkspace {
    fn drop(&mut self) {
        let _ = self.released.send(());
    }
}

impl Workspace {
    pub fn servers(&self) -> Vec<ToolServer> {
        self.sources.iter().flat_map(|source| source.servers()).collect()
    }
}
