//! The state of one connection: the engine's side, the client's side, and the sessions that are open in it.

use std::collections::{HashMap, HashSet, VecDeque};

use domain::{FrontendLink, SessionId};
use rpc::{Backlog, Inbound};

use crate::open_session::OpenSession;
use crate::wire::ClientFeatures;

/// One connection.
pub(crate) struct Server {
    /// Attached from `initialize` on.
    pub engine: FrontendLink<Server>,
    pub client: Backlog,
    pub sessions: HashMap<SessionId, OpenSession>,
    pub features: ClientFeatures,
    /// The client is on another machine.
    pub is_remote: bool,
    pub permits_version_two: Box<dyn Fn() -> bool + Send + Sync>,
    /// The agent that answers in new chats of this connection, as a model.
    pub proxied: Option<String>,
    /// The client called `logout`: no session is opened or prompted until `authenticate`.
    pub logged_out: bool,
    /// Notices that were shown.
    pub shown_notices: HashSet<String>,
    /// Problems of servers that were shown, each in every session that has the server.
    pub reported_servers: HashSet<(SessionId, String)>,
    /// Sessions that are being loaded, and the messages that came for them meanwhile.
    pub opening: HashMap<SessionId, Vec<Inbound>>,
    /// Messages for sessions that have been loaded meanwhile; handled next.
    pub deferred: VecDeque<Inbound>,
}
