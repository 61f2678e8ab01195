//! An attached front-end, as the engine holds it.

use std::sync::Arc;

use domain::command::SessionSettings;
use domain::host::HostRequest;
use domain::queue::EventSender;
use domain::{Abilities, FrontendId};
use tokio::sync::mpsc;

use crate::tool_calls::context::EditorHandle;
use crate::workspace::OpenWorkspace;

#[derive(Clone)]
pub(crate) struct AttachedFrontend {
    pub(crate) id: FrontendId,
    pub(crate) abilities: Abilities,
    pub(crate) events: EventSender,
    pub(crate) calls: mpsc::Sender<HostRequest>,
    /// Where it works; `None` before it entered a workspace.
    pub(crate) workspace: Option<Arc<OpenWorkspace>>,
    /// The settings that its new chats begin with.
    pub(crate) defaults: SessionSettings,
}

impl AttachedFrontend {
    pub(crate) fn editor(&self) -> EditorHandle {
        EditorHandle { abilities: self.abilities.clone(), calls: self.calls.clone() }
    }
}
