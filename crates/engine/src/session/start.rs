//! How a session begins: new, loaded, forked or for a subagent, and what all sessions of a router share.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::SessionSettings;
use domain::event::Fact;
use domain::tool::ToolSource;
use domain::{Peers, SessionId, Store};
use tokio::sync::{mpsc, oneshot};

use super::actor::Message;
use crate::LiveSessions;
use crate::router::workspaces::WorkspaceRequest;
use crate::subagents::{EndedSubagent, Inherited, StartSubagent};
use crate::tool_calls::Approver;
use crate::workspace::OpenWorkspace;

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
    /// Decides about tool calls.
    pub(crate) approver: Arc<dyn Approver>,
}

/// How a session begins.
pub(crate) struct Start {
    pub(crate) id: SessionId,
    pub(crate) deps: SessionDeps,
    pub(crate) workspace: Arc<OpenWorkspace>,
    pub(crate) own_sources: Vec<Arc<dyn ToolSource>>,
    /// Set: make the chat where it does not exist.
    pub(crate) create: Option<Create>,
    /// Set for the chat of a subagent.
    pub(crate) subagent: Option<(Inherited, oneshot::Sender<EndedSubagent>)>,
}

pub(crate) struct Create {
    pub(crate) workspace: Vec<PathBuf>,
    pub(crate) settings: SessionSettings,
    pub(crate) parent: Option<SessionId>,
    pub(crate) client: String,
    /// Facts of another chat that a fork begins with.
    pub(crate) facts: Vec<Fact>,
}
