//! An attached front-end, as the engine knows it.

use std::sync::Arc;

use domain::command::SessionSettings;
use domain::host::HostRequest;
use domain::queue::EventSender;
use domain::{Abilities, FrontendId};
use tokio::sync::mpsc;

use crate::tool_calls::context::EditorHandle;
use crate::workspace::Workspace;

#[derive(Clone)]
pub struct AttachedFrontend {
    pub id: FrontendId,
    pub abilities: Abilities,
    pub events: EventSender,
    pub calls: mpsc::Sender<HostRequest>,
    /// Of its workspace; `None` before it entered one.
    pub workspace: Option<Arc<Workspace>>,
    /// What new chats of it begin with.
    pub defaults: SessionSettings,
}

impl AttachedFrontend {
    pub fn host(&self) -> EditorHandle {
        EditorHandle { abilities: self.abilities.clone(), calls: self.calls.clone() }
    }
}
