//! An attached front-end, as the engine holds it.

use domain::command::SessionSettings;
use domain::host::HostRequest;
use domain::queue::EventSender;
use domain::{Abilities, FrontendId};
use tokio::sync::mpsc;

/// The front-end whose prompt began a turn.
#[derive(Clone)]
pub struct EditorHandle {
    pub abilities: Abilities,
    pub calls: mpsc::Sender<HostRequest>,
}

#[derive(Clone)]
pub struct AttachedFrontend {
    pub id: FrontendId,
    pub abilities: Abilities,
    pub events: EventSender,
    pub calls: mpsc::Sender<HostRequest>,
    /// The settings that its new chats begin with.
    pub defaults: SessionSettings,
}

impl AttachedFrontend {
    pub fn editor(&self) -> EditorHandle {
        EditorHandle { abilities: self.abilities.clone(), calls: self.calls.clone() }
    }
}
