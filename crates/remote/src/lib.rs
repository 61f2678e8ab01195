//! Protocols over WebSocket: messages that survive a lost connection, the client's way to a server, and the relay of an editor.
//!
//! It knows no method of a protocol and no route of a server. Invariants: a message is delivered once and in order, however often
//! the connection is lost; what is kept for that is bounded; every wait has a deadline; a token is in a header and nowhere else.

mod address;
mod channel;
mod connect;
mod handshake;
mod memory;
mod relay;
mod tls;

pub use address::Address;
pub use channel::{Channel, Limits, RunEnd, Side, Stream};
pub use connect::{ConnectError, Opened, Target};
pub use handshake::{CONNECTION_ID, RESUME, accept_key, is_key};
pub use memory::Recovery;
pub use relay::{Editor, LONGEST_OUTAGE, relay};
pub use tls::{client_config, read_fingerprint};
