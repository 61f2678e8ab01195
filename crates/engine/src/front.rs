//! An attached front-end, as the engine knows it.

use std::sync::Arc;

use domain::command::Settings;
use domain::host::HostRequest;
use domain::queue::EventSender;
use domain::{Abilities, FrontId};
use tokio::sync::mpsc;

use crate::port::FrontHost;
use crate::surroundings::Surroundings;

#[derive(Clone)]
pub struct Front {
    pub id: FrontId,
    pub abilities: Abilities,
    pub events: EventSender,
    pub calls: mpsc::Sender<HostRequest>,
    /// Of its workspace; `None` before it entered one.
    pub surroundings: Option<Arc<Surroundings>>,
    /// What new chats of it begin with.
    pub defaults: Settings,
}

impl Front {
    pub fn host(&self) -> FrontHost {
        FrontHost { abilities: self.abilities.clone(), calls: self.calls.clone() }
    }
}
