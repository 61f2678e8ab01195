//! The options that a protocol chooses for its connection. Plain data with defaults; the invariant: every limit is finite.

use crate::{Fault, Framing};
use std::time::Duration;

/// How one connection speaks and how much it will hold. Start from [`PeerOptions::header`] or [`PeerOptions::newline`].
#[derive(Clone, Debug)]
pub struct PeerOptions {
    pub framing: Framing,
    /// Whether messages carry `"jsonrpc":"2.0"`: then it is written, and demanded of requests and notifications.
    pub version_member: bool,
    /// The largest message that is read, in bytes of its body.
    pub message_limit: usize,
    /// The answer to a message over that limit; it carries the request's id where its first bytes show it.
    pub too_large: Fault,
    /// How many requests of the peer may be unanswered at once.
    pub in_flight_limit: usize,
    /// The answer to a request beyond that.
    pub too_many: Fault,
    /// Notifications are refused as full from this many queued messages on; outgoing requests from twice as many. The
    /// peer is not read while twice as many wait.
    pub queue_messages: usize,
    /// The same in bytes.
    pub queue_bytes: usize,
    /// How long a peer may keep us from reading by not reading our answers before the connection ends.
    pub stall_limit: Duration,
    /// The notification by which a request is cancelled, in both directions.
    pub cancel: Option<CancelMethod>,
}

/// The name of the cancel notification and of the member of its params that holds the id of the request.
#[derive(Clone, Copy, Debug)]
pub struct CancelMethod {
    pub method: &'static str,
    pub parameter: &'static str,
}

impl PeerOptions {
    /// `Content-Length` framing, as ECA and the Language Server Protocol use it.
    pub fn header() -> PeerOptions {
        PeerOptions {
            framing: Framing::Header,
            version_member: true,
            message_limit: 64 << 20,
            too_large: Fault::new(
                Fault::INVALID_REQUEST,
                "The message is too large; send it in smaller parts.",
            ),
            in_flight_limit: 1024,
            too_many: Fault::new(
                -32000,
                "Too many requests are unanswered; wait for answers and send it again.",
            ),
            queue_messages: 1024,
            queue_bytes: 2 << 20,
            stall_limit: Duration::from_secs(60),
            cancel: None,
        }
    }

    /// One message per line.
    pub fn newline() -> PeerOptions {
        PeerOptions { framing: Framing::Newline, ..PeerOptions::header() }
    }
}
