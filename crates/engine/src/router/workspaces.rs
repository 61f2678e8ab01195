//! The workspaces of the router: entered by front-ends, shared by the chats of one folder, ended with the last user.
//!
//! Must not know what a workspace holds. Invariant: entering one never waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use config::HookEvent;
use domain::command::{Catalog, Command, WorkspaceSpec};
use domain::link::Envelope;
use domain::{Failure, FrontendId, Reply, SessionId};
use futures_util::future::join_all;
use session::refusal::refuse;

use super::resolver::{Caller, ResolveRequest, ResolvedWorkspace};
use super::shutdown::run_session_hooks;
use super::{Delivery, KnownWorkspace, Router, addressee};
use crate::session::start::WorkspaceRequest;
use crate::workspace::{OpenWorkspace, Workspace};

/// The files are listed after this delay, so that it does not slow the first answer; a query that comes earlier lists them.
const INDEX_DELAY: Duration = Duration::from_millis(100);
/// What the servers of a workspace may take to end when nothing waits for it.
const SERVERS_END_TIMEOUT: Duration = Duration::from_secs(5);

impl Router {
    pub(super) fn find_workspace(&mut self, request: WorkspaceRequest) {
        let WorkspaceRequest { roots, entered, reply } = request;
        let is_entered = |known: &&KnownWorkspace| known.open.as_ptr() == Arc::as_ptr(&entered);
        let spec = self.workspaces.iter().find(is_entered).and_then(|known| known.spec.as_ref());
        let options = spec.and_then(|spec| spec.options.clone());
        let spec = WorkspaceSpec { roots, options };
        match self.workspace(&spec) {
            Ok(open) => drop(reply.send(open)),
            Err(_) => self.resolve(spec, false, Caller::Chat(reply)),
        }
    }

    /// Gives a command back that can be handled now. Another one waits for its workspace.
    pub(super) fn resolve_for(&mut self, front: FrontendId, command: Command) -> Option<Command> {
        let Some(spec) = self.wanted_workspace(front, &command) else { return Some(command) };
        let names_folders = matches!(command, Command::Open { .. }) && !spec.roots.is_empty();
        if !names_folders && self.workspace(&spec).is_ok() {
            return Some(command);
        }
        if self.is_down {
            refuse(command, Failure::closed());
            return None;
        }
        self.waiting.insert(front, VecDeque::from([command]));
        self.resolve(spec, names_folders, Caller::Frontend(front));
        None
    }

    /// The workspace that a command needs; `None`: it needs none, or that of its front-end, which is known.
    #[allow(clippy::wildcard_enum_match_arm, reason = "every other command goes on to the session it names")]
    fn wanted_workspace(&self, front: FrontendId, command: &Command) -> Option<WorkspaceSpec> {
        let frontend = self.frontends.get(&front)?;
        let default = || (!self.entered.contains_key(&front)).then(WorkspaceSpec::default);
        // A front-end of another process works with the chats that are here.
        let starts = |session: &SessionId| !frontend.abilities.remote && !self.is_live(session);
        match command {
            Command::Attach { .. }
            | Command::Detach
            | Command::Shutdown { .. }
            | Command::Close { .. }
            | Command::Jobs { .. }
            | Command::StopJob { .. }
            | Command::JobOutput { .. } => None,
            Command::Enter { workspace, .. } => Some(workspace.clone()),
            Command::Open { id: Some(id), .. } if self.is_live(id) => None,
            Command::Open { workspace: Some(roots), .. } => {
                Some(WorkspaceSpec { roots: roots.clone(), options: None })
            }
            Command::Load { session, .. } => default().filter(|_| starts(session)),
            other => match addressee(other) {
                Some((_, Delivery::IfLive)) => None,
                Some((session, Delivery::Load)) => default().filter(|_| starts(&session)),
                None => default(),
            },
        }
    }

    fn resolve(&self, spec: WorkspaceSpec, must_exist: bool, caller: Caller) {
        let is_open = self.workspace(&spec).is_ok();
        let _ = self.resolver.send(ResolveRequest::Workspace { spec, is_open, must_exist, caller });
    }

    /// A workspace is resolved: what waited for it goes on.
    pub(super) fn go_on_with(&mut self, resolved: ResolvedWorkspace) {
        // Its servers and hooks would outlive the program; what waited for it was refused.
        if self.is_down {
            return;
        }
        let ResolvedWorkspace { spec, found, caller } = resolved;
        let open = match (self.workspace(&spec), found) {
            (_, Err(failure)) => Err(failure),
            (Ok(open), Ok(_)) => Ok(open),
            (Err(_), Ok(Some(workspace))) => {
                run_session_hooks(&workspace, HookEvent::SessionStart);
                Ok(self.add_known(Some(spec), workspace))
            }
            // It was open, and has ended meanwhile.
            (Err(_), Ok(None)) => return self.resolve(spec, false, caller),
        };
        match (caller, open) {
            (Caller::Frontend(front), open) => self.handle_waiting(front, open),
            (Caller::Chat(reply), Ok(open)) => drop(reply.send(open)),
            // The chat hears that nobody will answer.
            (Caller::Chat(_), Err(_)) => {}
        }
    }

    /// Handles the commands that waited for a workspace. The first of them needs it.
    fn handle_waiting(&mut self, front: FrontendId, open: Result<Arc<OpenWorkspace>, Failure>) {
        let mut waiting = self.waiting.remove(&front).unwrap_or_default();
        if let Some(first) = waiting.pop_front() {
            match &open {
                Ok(_) => self.handle_now(front, first),
                Err(failure) => refuse(first, failure.clone()),
            }
        }
        while let Some(command) = waiting.pop_front() {
            self.handle(Envelope { front, command });
        }
    }

    pub(super) fn enter(&mut self, front: FrontendId, spec: WorkspaceSpec, reply: Reply<Catalog>) {
        let workspace = match self.workspace(&spec) {
            Ok(workspace) => workspace,
            Err(failure) => {
                let _ = reply.send(Err(failure));
                return;
            }
        };
        self.set_entered(front, workspace.clone());
        let entered = Arc::downgrade(&workspace);
        tokio::spawn(async move {
            tokio::time::sleep(INDEX_DELAY).await;
            if let Some(workspace) = entered.upgrade() {
                workspace.files.warm(&workspace.roots);
            }
        });
        tokio::spawn(async move { reply.send(Ok(workspace.catalog())) });
    }

    /// A front-end works in this workspace from now on.
    pub(super) fn set_entered(&mut self, front: FrontendId, workspace: Arc<OpenWorkspace>) {
        if self.frontends.contains_key(&front) {
            self.entered.insert(front, workspace);
        }
    }

    /// A workspace that is open.
    pub(super) fn workspace(&self, spec: &WorkspaceSpec) -> Result<Arc<OpenWorkspace>, Failure> {
        let known = self.workspaces.iter().filter(|known| known.spec.as_ref() == Some(spec));
        let open = known.filter_map(|known| known.open.upgrade()).next();
        open.ok_or_else(|| Failure::internal("The workspace was closed meanwhile.").hint("Send it again."))
    }

    /// The workspace of one subagent, which no other chat enters.
    pub(super) fn add_workspace(&mut self, workspace: Arc<Workspace>) -> Arc<OpenWorkspace> {
        self.add_known(None, workspace)
    }

    fn add_known(&mut self, spec: Option<WorkspaceSpec>, workspace: Arc<Workspace>) -> Arc<OpenWorkspace> {
        let open = Arc::new(OpenWorkspace::new(workspace.clone(), self.released.clone()));
        self.workspaces.push(KnownWorkspace { spec, workspace, open: Arc::downgrade(&open) });
        open
    }

    /// Where a front-end works.
    pub(super) fn workspace_of(&mut self, front: FrontendId) -> Result<Arc<OpenWorkspace>, Failure> {
        if let Some(workspace) = self.entered.get(&front) {
            return Ok(workspace.clone());
        }
        if !self.frontends.contains_key(&front) {
            return Err(Failure::closed());
        }
        let workspace = self.workspace(&WorkspaceSpec::default())?;
        self.entered.insert(front, workspace.clone());
        Ok(workspace)
    }

    /// Ends the servers of workspaces that nothing uses.
    pub(super) fn end_unused_workspaces(&mut self) {
        let unused = self.workspaces.extract_if(.., |known| known.open.strong_count() == 0);
        for KnownWorkspace { workspace, .. } in unused {
            tokio::spawn(async move {
                let ends = join_all(workspace.sources.iter().map(|source| source.shutdown()));
                let _ = tokio::time::timeout(SERVERS_END_TIMEOUT, ends).await;
            });
        }
    }
}
