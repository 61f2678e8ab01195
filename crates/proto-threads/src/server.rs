//! The state of one connection, and the options that it is served with.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use domain::host::Grants;
use domain::link::Commands;
use domain::{Failure, FrontendLink, ItemId, SessionId, TurnId};
use rpc::{Fault, Outgoing, RequestError, Responder};
use serde::Serialize;

use crate::client_thread::ClientThread;
use crate::from_wire;
use crate::reads::Reads;
use crate::to_wire::Projection;

/// After this long without a chunk the user's message is taken as complete.
pub const QUIET_TIME: Duration = Duration::from_millis(800);

/// Stands for text that is no item of a chat.
pub(crate) const NOTICE_ITEM: ItemId = ItemId(u64::MAX - 1);

/// The side that calls the thread methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The editor lists and opens threads and sends the user's message; the agent streams the answer.
    Editor,
    /// As the headings of the document have it: the client streams the user's message, the agent calls its thread methods.
    Agent,
}

#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// `None`: seen from the first calls.
    pub driver: Option<Driver>,
    /// An absolute path.
    pub workspace: PathBuf,
    /// Grants without a question: the protocol cannot ask.
    pub grants: Grants,
    /// See [`QUIET_TIME`].
    pub quiet: Duration,
}

/// A chat of this connection.
#[derive(Default)]
pub(crate) struct Thread {
    pub projection: Projection,
    /// `sendMessage` requests, answered by the end of their turns.
    pub waiting: HashMap<TurnId, Responder>,
    /// The item whose text was streamed last, in a turn under way.
    pub last: Option<domain::ItemId>,
}

/// Whether the client takes chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunks {
    Unknown,
    Taken,
    Refused,
}

pub(crate) struct Server {
    pub outgoing: Outgoing,
    pub commands: Commands,
    pub engine: FrontendLink<Server>,
    pub options: ServeOptions,
    pub driver: Option<Driver>,
    pub threads: HashMap<SessionId, Thread>,
    /// Threads of a client that lets the agent drive, by its ids.
    pub client_threads: HashMap<String, ClientThread>,
    pub chunks: Chunks,
    /// File methods that the client does not have.
    pub refused: HashSet<&'static str>,
    pub reads: Reads,
    /// Problems of MCP servers that were reported.
    pub reported_problems: HashSet<String>,
    /// Those of them that wait for an answer under way: the protocol has no other place for them.
    pub unshown_problems: Vec<String>,
}

/// The peer does not have the method.
pub(crate) fn is_unknown_method(error: &RequestError) -> bool {
    matches!(error, RequestError::Fault(fault) if fault.code == rpc::Fault::METHOD_NOT_FOUND)
}

pub(crate) fn respond<T: Serialize>(responder: Responder, outcome: Result<T, Failure>) {
    responder.respond(outcome.map_err(|failure: Failure| -> Fault { from_wire::fault_of(&failure) }));
}
