//! A thread of a client that lets the agent drive: what it said so far, and the chat that answers. Plain data.

use std::collections::VecDeque;

use domain::{ItemId, SessionId, TurnId};

use crate::wire::ThreadEntry;

/// A thread of the client.
#[derive(Default)]
pub(crate) struct ClientThread {
    /// The user's message so far.
    pub message: String,
    /// Counts chunks, so that a quiet time is that of the last one.
    pub chunks: u64,
    /// The client's entries are being asked for.
    pub asking: bool,
    /// The client does not tell its entries.
    pub silent: bool,
    /// Messages that are complete.
    pub ready: VecDeque<String>,
    /// The client was seen to stream text before it is in an entry: an entry with the text is a complete message.
    pub adds_whole_messages: bool,
    /// The client's entries, as last seen.
    pub entries: Vec<ThreadEntry>,
    pub session: Option<SessionId>,
    pub running: bool,
    pub turn: Option<TurnId>,
    pub answer: Vec<(ItemId, String)>,
}
