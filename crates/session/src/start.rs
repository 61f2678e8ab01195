//! How a session begins: new, loaded, or with the facts of another one.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::SessionSettings;
use domain::event::Fact;
use domain::{Peers, SessionId, Store};
use tokio::sync::mpsc;

use crate::actor_data::Message;
use crate::work::SessionWork;

/// How a session begins.
pub struct Start<S: SessionWork> {
    pub id: SessionId,
    pub store: Arc<dyn Store>,
    pub peers: Option<Arc<dyn Peers>>,
    /// What came while the chat was closing.
    pub returned: mpsc::UnboundedSender<Message>,
    /// Set: make the chat where it does not exist.
    pub create: Option<Create>,
    /// What the layers above make their part of the session of.
    pub above: S::Parts,
}

pub struct Create {
    pub workspace: Vec<PathBuf>,
    pub settings: SessionSettings,
    pub parent: Option<SessionId>,
    pub client: String,
    /// Facts of another chat that a fork begins with.
    pub facts: Vec<Fact>,
}
