//! How a session begins: new, loaded, forked or for a subagent, and what all sessions of a router share.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::ServerSpec;
use domain::tool::ToolSource;
use domain::{Failure, Peers, SessionId, Store};
use session::{Create, Message};
use tokio::sync::{mpsc, oneshot};

use super::{EndedSubagent, Inherited, LiveSessions, Session, StartSubagent};
use crate::decisions::Decisions;
use crate::workspace::{OpenWorkspace, WorkspaceSource};

/// What all sessions of a router share.
#[derive(Clone)]
pub(crate) struct SessionDeps {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) live: LiveSessions,
    pub(crate) peers: Option<Arc<dyn Peers>>,
    /// To the router: subagents to start.
    pub(crate) subagents: mpsc::UnboundedSender<StartSubagent>,
    /// To the router: what came while a chat was closing.
    pub(crate) returned: mpsc::UnboundedSender<Message>,
    /// To the router: requests for the workspace of a chat's own folders.
    pub(crate) workspaces: mpsc::UnboundedSender<WorkspaceRequest>,
    /// Decides about tool calls and other choices.
    pub(crate) decisions: Arc<dyn Decisions>,
    pub(crate) source: Arc<dyn WorkspaceSource>,
}

/// How a session begins.
pub(crate) struct Start {
    pub(crate) id: SessionId,
    pub(crate) deps: SessionDeps,
    pub(crate) workspace: Arc<OpenWorkspace>,
    /// Tool servers that live with this session.
    pub(crate) servers: Vec<ServerSpec>,
    /// Set: make the chat where it does not exist.
    pub(crate) create: Option<Create>,
    /// Set for the chat of a subagent.
    pub(crate) subagent: Option<(Inherited, oneshot::Sender<EndedSubagent>)>,
}

/// What the engine's part of a session is made of.
pub(crate) struct Opening {
    pub(crate) live: LiveSessions,
    pub(crate) subagents: mpsc::UnboundedSender<StartSubagent>,
    pub(crate) workspaces: mpsc::UnboundedSender<WorkspaceRequest>,
    pub(crate) decisions: Arc<dyn Decisions>,
    pub(crate) source: Arc<dyn WorkspaceSource>,
    pub(crate) workspace: Arc<OpenWorkspace>,
    /// Tool servers that live with this session.
    pub(crate) servers: Vec<ServerSpec>,
    pub(crate) subagent: Option<(Inherited, oneshot::Sender<EndedSubagent>)>,
}

impl From<Start> for session::Start<Session> {
    fn from(start: Start) -> Self {
        let Start { id, deps, workspace, servers, create, subagent } = start;
        let SessionDeps { store, live, peers, subagents, returned, workspaces, decisions, source } = deps;
        let above = Opening { live, subagents, workspaces, decisions, source, workspace, servers, subagent };
        Self { id, store, peers, returned, create, above }
    }
}

/// Starts the actor of a session.
pub(crate) fn spawn(start: Start) -> mpsc::UnboundedSender<Message> {
    session::actor::spawn::<Session>(start.into())
}

/// A chat of folders that its front-end does not have: it works with the settings, rules and servers of its own.
pub(crate) struct WorkspaceRequest {
    pub(crate) roots: Vec<PathBuf>,
    /// Where the front-end works; the options of its client hold for the chat too.
    pub(crate) entered: Arc<OpenWorkspace>,
    pub(crate) reply: oneshot::Sender<Arc<OpenWorkspace>>,
}

/// The workspace of the chat's folders where its front-end has others and these are there. A subagent has its own already.
pub(super) async fn own_workspace(
    entered: Arc<OpenWorkspace>,
    roots: &[PathBuf],
    is_subagent: bool,
    requests: &mpsc::UnboundedSender<WorkspaceRequest>,
) -> Result<Arc<OpenWorkspace>, Failure> {
    let is_entered = is_subagent || roots.iter().all(|root| entered.roots.contains(root));
    if is_entered || !roots.iter().all(|root| root.is_dir()) {
        return Ok(entered);
    }
    let (reply, found) = oneshot::channel();
    let request = WorkspaceRequest { roots: roots.to_vec(), entered, reply };
    requests.send(request).map_err(|_| Failure::closed())?;
    found.await.map_err(|_| Failure::closed())
}

/// The tool servers that the client of a chat brought along.
pub(super) async fn own_sources(
    source: Arc<dyn WorkspaceSource>,
    servers: Vec<ServerSpec>,
    roots: Vec<PathBuf>,
) -> Result<Vec<Arc<dyn ToolSource>>, Failure> {
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let made = tokio::task::spawn_blocking(move || source.session_servers(&servers, &roots)).await;
    made.map_err(|_| Failure::internal("The servers of this chat could not be set up."))
}
