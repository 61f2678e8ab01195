//! Messages for a connection that works them off on a task of its own: owned, in the order they came, and bounded.
//!
//! It must not know what messages mean. Invariant: while the inbox is full, the peer is not read.

use crate::{Handler, Params, Peer, PeerOptions, Responder, Transport};
use serde_json::value::RawValue;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

/// Messages that wait to be worked off.
const LIMIT: usize = 256;

/// A message as it came.
pub struct Inbound {
    pub method: String,
    pub params: Option<Box<RawValue>>,
    /// `None`: a notification, which expects no answer.
    pub responder: Option<Responder>,
}

struct InboxHandler {
    inbox: PollSender<Inbound>,
}

/// Starts a connection and gives its messages.
pub fn inbox(options: PeerOptions, transport: Transport) -> std::io::Result<(Peer, mpsc::Receiver<Inbound>)> {
    let (sender, messages) = mpsc::channel(LIMIT);
    let peer = Peer::start(options, transport, |_| InboxHandler { inbox: PollSender::new(sender) })?;
    Ok((peer, messages))
}

impl InboxHandler {
    fn forward(&mut self, method: &str, params: Params<'_>, responder: Option<Responder>) {
        let params = params.raw().map(ToOwned::to_owned);
        // `poll_ready` reserved the place; a closed inbox means that we are ending.
        let _ = self.inbox.send_item(Inbound { method: method.to_owned(), params, responder });
    }
}

impl Handler for InboxHandler {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        self.forward(method, params, Some(responder));
    }

    fn on_notification(&mut self, method: &str, params: Params<'_>) {
        self.forward(method, params, None);
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.inbox.poll_reserve(context).map(|_| ())
    }
}
