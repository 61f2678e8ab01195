//! The workspaces of the router: entered by front-ends, shared by the chats of one folder, ended with the last user.
//!
//! Must not know what a workspace holds. Invariant: entering one never waits.

use std::sync::Arc;
use std::time::Duration;

use config::HookEvent;
use domain::command::{Catalog, WorkspaceSpec};
use domain::{Failure, FrontendId, Reply};
use futures_util::future::join_all;

use super::shutdown::run_session_hooks;
use super::{KnownWorkspace, Router};
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
        let _ = reply.send(self.workspace(WorkspaceSpec { roots, options }));
    }

    pub(super) fn enter(&mut self, front: FrontendId, spec: WorkspaceSpec, reply: Reply<Catalog>) {
        let workspace = self.workspace(spec);
        self.set_entered(front, workspace.clone());
        let entered = Arc::downgrade(&workspace);
        tokio::spawn(async move {
            tokio::time::sleep(INDEX_DELAY).await;
            if let Some(workspace) = entered.upgrade() {
                workspace.files.warm(&workspace.roots);
            }
        });
        let _ = reply.send(Ok(workspace.catalog()));
    }

    /// A front-end works in this workspace from now on.
    pub(super) fn set_entered(&mut self, front: FrontendId, workspace: Arc<OpenWorkspace>) {
        if self.frontends.contains_key(&front) {
            self.entered.insert(front, workspace);
        }
    }

    pub(super) fn workspace(&mut self, spec: WorkspaceSpec) -> Arc<OpenWorkspace> {
        let known = self.workspaces.iter().filter(|known| known.spec.as_ref() == Some(&spec));
        if let Some(open) = known.filter_map(|known| known.open.upgrade()).next() {
            return open;
        }
        let workspace = self.source.workspace(&spec);
        run_session_hooks(&workspace, HookEvent::SessionStart);
        self.add_known(Some(spec), workspace)
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
        let workspace = self.workspace(WorkspaceSpec::default());
        self.entered.insert(front, workspace.clone());
        Ok(workspace)
    }

    /// Ends the servers of workspaces that nothing uses any more.
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
