//! What a client has been sent, and the responses that wait. Plain data of one connection.

use std::collections::{HashMap, HashSet};

use domain::{Event, SessionId, TurnId};

use crate::reply::Reply;
use crate::wire::notifications::ServerUpdated;
use crate::wire::providers::ProviderStatus;
use crate::wire::requests::Prompt;

/// What the client has been sent of the lists.
#[derive(Default)]
pub(crate) struct SentCatalog {
    /// The client said `initialized`: it gets changes from now on.
    pub is_announced: bool,
    /// Something changed before that.
    pub is_stale: bool,
    pub selected_model: Option<String>,
    pub servers: HashMap<String, ServerUpdated>,
    pub servers_start: ServersStart,
}

/// Whether the client has been shown that servers start.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ServersStart {
    #[default]
    Unshown,
    Shown,
    Finished,
}

impl SentCatalog {
    /// The name of a server as the engine knows it.
    pub(crate) fn known_name(&self, name: &str) -> Option<String> {
        self.servers.keys().find(|known| domain::names::is_same_name(known, name)).cloned()
    }
}

/// What the client has been sent of each provider; `None`: it has not asked.
pub(crate) type SentProviders = Option<HashMap<String, ProviderStatus>>;

/// Prompts whose responses wait for the answer of a provider.
#[derive(Default)]
pub(crate) struct PendingLogins {
    /// Providers that have answered.
    pub proven: HashSet<String>,
    pub waiting: HashMap<SessionId, PendingPrompt>,
}

pub(crate) struct PendingPrompt {
    pub turn: TurnId,
    /// The events that come belong to its turn.
    pub has_begun: bool,
    /// Another model may answer instead of the requested one.
    pub is_warned: bool,
    pub model: String,
    pub reply: Reply<Prompt>,
    /// Events that the client gets after the response.
    pub held: Option<Vec<Event>>,
}
