//! The workspace of a replay: no files, no servers, and settings under which the recorded commands are accepted.

use std::path::PathBuf;
use std::sync::Arc;

use config::{Environment, Inputs, Settings};
use domain::command::{Context, ContextQuery, FileContent, FileStat, ServerSpec, WorkspaceSpec};
use domain::event::Fact;
use domain::files::Files;
use domain::item::ItemKind;
use domain::tool::{Scope, ToolContext, ToolSource};
use domain::{BoxFuture, Failure, Part, Recorded, ToolState};
use engine::{NamedText, Texts, Workspace, WorkspaceSource};

use super::compare::item_of;
use super::recording::Recording;

/// A folder without configuration.
const NO_HOME: &str = "/nonexistent";

pub(super) struct World {
    settings: Arc<Settings>,
    roots: Vec<PathBuf>,
    /// The client of the chat applied changes by itself.
    pub(super) proposes_changes: bool,
}

impl World {
    pub(super) fn of(facts: &[Recorded]) -> Self {
        let environment = Environment::new(NO_HOME, std::iter::empty::<(String, String)>());
        let mut settings = config::resolve(&environment, &Inputs::default()).settings;
        settings.chat.max_steps = u64::from(u32::MAX);
        let mut roots = Vec::new();
        let mut proposes_changes = false;
        for Recorded { fact, .. } in facts {
            match fact {
                Fact::SessionOpened(opened) => roots = opened.workspace.clone(),
                Fact::SessionChanged { change } => {
                    if let Some(behavior) = &change.behavior {
                        settings.behaviors.entry(behavior.clone()).or_default().primary = true;
                    }
                }
                _ => proposes_changes |= is_proposal(fact),
            }
        }
        Self { settings: Arc::new(settings), roots, proposes_changes }
    }

    pub(super) fn workspaces(&self, recording: &Recording) -> Arc<dyn WorkspaceSource> {
        let roots = self.roots.clone();
        Arc::new(RecordedWorkspaces { settings: self.settings.clone(), roots, recording: recording.clone() })
    }
}

/// A call that the client was to apply: done, and it never ran.
fn is_proposal(fact: &Fact) -> bool {
    let Some(ItemKind::ToolCall(call)) = item_of(fact).map(|item| &item.kind) else { return false };
    let is_refusal =
        |part: &Part| matches!(part, Part::Text { text } if text.starts_with("This change was not applied"));
    call.state == ToolState::Done && call.manual_approval && call.result.iter().any(is_refusal)
}

struct RecordedWorkspaces {
    settings: Arc<Settings>,
    roots: Vec<PathBuf>,
    recording: Recording,
}

impl WorkspaceSource for RecordedWorkspaces {
    fn workspace(&self, _: &WorkspaceSpec) -> Arc<Workspace> {
        Arc::new(Workspace {
            roots: self.roots.clone(),
            settings: self.settings.clone(),
            models: Arc::new(self.recording.clone()),
            sources: vec![Arc::new(self.recording.clone())],
            files: Arc::new(NoFiles),
            notices: Vec::new(),
            is_trusted: true,
            texts: Arc::new(NoTexts),
            accounts: None,
            hooks: None,
            undo: None,
            worktrees: None,
        })
    }

    fn session_servers(&self, _: &[ServerSpec], _: &[PathBuf]) -> Vec<Arc<dyn ToolSource>> {
        Vec::new()
    }
}

struct NoTexts;

impl Texts for NoTexts {
    fn rules(&self) -> Vec<NamedText> {
        Vec::new()
    }

    fn commands(&self) -> Vec<NamedText> {
        Vec::new()
    }

    fn global_agents_file(&self) -> Option<PathBuf> {
        None
    }

    fn config(&self) -> String {
        String::new()
    }

    fn doctor(&self) -> BoxFuture<'_, String> {
        Box::pin(async { String::new() })
    }

    fn login<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, String> {
        Box::pin(async { String::new() })
    }
}

struct NoFiles;

fn no_files<'a, T: 'a>() -> BoxFuture<'a, Result<T, Failure>> {
    Box::pin(async { Err(Failure::user("A replay has no files.")) })
}

impl Files for NoFiles {
    fn query<'a>(&'a self, _: &'a [PathBuf], _: &'a str, _: ContextQuery) -> BoxFuture<'a, Vec<Context>> {
        Box::pin(async { Vec::new() })
    }

    fn expand<'a>(
        &'a self,
        _: &'a Context,
        _: &'a Scope,
        _: Arc<dyn ToolContext>,
    ) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        no_files()
    }

    fn repo_map<'a>(&'a self, _: &'a [PathBuf]) -> BoxFuture<'a, String> {
        Box::pin(async { String::new() })
    }

    fn read<'a>(&'a self, _: &'a [PathBuf], _: PathBuf) -> BoxFuture<'a, Result<FileContent, Failure>> {
        no_files()
    }

    fn stat<'a>(&'a self, _: &'a [PathBuf], _: PathBuf) -> BoxFuture<'a, Result<FileStat, Failure>> {
        no_files()
    }

    fn glob<'a>(&'a self, _: &'a [PathBuf], _: String) -> BoxFuture<'a, Result<Vec<PathBuf>, Failure>> {
        no_files()
    }
}
