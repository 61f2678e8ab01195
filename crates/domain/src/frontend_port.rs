//! The engine's side of an attached front-end. Plain data.

use tokio::sync::mpsc;

use crate::host::{Abilities, HostRequest};
use crate::queue::EventSender;

/// The engine's side of an attached front-end.
pub struct FrontendPort {
    pub abilities: Abilities,
    pub events: EventSender,
    pub host: mpsc::Sender<HostRequest>,
}

impl std::fmt::Debug for FrontendPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontendPort").field("abilities", &self.abilities).finish_non_exhaustive()
    }
}
