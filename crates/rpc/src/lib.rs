//! A JSON-RPC 2.0 peer over any byte stream, calling and being called.
//!
//! It owns framing, ids, the pending tables, cancellation, limits and the one outgoing queue of a connection. It must
//! not know any method name, nor any other crate of this repository. The invariants it keeps:
//!
//! * **Order in.** Every message is handed to the [`Handler`] in arrival order from one place; only answers are
//!   concurrent. A stop never overtakes the prompt it stops.
//! * **Order out.** Answers, notifications and requests leave through one queue in the order of the calls, each in one
//!   write: a handler places its answer before the events it causes by calling [`Responder::succeed`] first.
//! * **Bounded.** A notification is refused with [`NotSent::Full`] while the queue is full (nothing waits, nothing
//!   grows); the front-end then drops what it holds, awaits [`Outgoing::ready`] and reads on from the journal. A message
//!   over the limit is never read into memory. A peer that sends but does not read is itself no longer read.
//! * **Nothing ends a connection but its end.** Broken JSON, broken headers, wrong shapes and panics in a handler are
//!   answered with their code and the next message is read.
//! * **One answer per request.** A [`Responder`] answers once; dropped unanswered it answers -32603.
//!
//! ```
//! use rpc::{Handler, Outgoing, Params, Peer, Responder, PeerOptions, Transport};
//! use std::time::Duration;
//!
//! struct Echo(Outgoing);
//!
//! impl Handler for Echo {
//!     fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
//!         match method {
//!             "echo" => match params.decode::<Vec<String>>() {
//!                 Ok(words) => {
//!                     responder.succeed(&words);
//!                     let _ = self.0.notify("echoed", &words.len()); // leaves after the answer
//!                 }
//!                 Err(fault) => responder.fail(fault),
//!             },
//!             _ => responder.method_not_found(method),
//!         }
//!     }
//!     fn on_notification(&mut self, _method: &str, _params: Params<'_>) {}
//! }
//!
//! struct Caller;
//!
//! impl Handler for Caller {
//!     fn on_request(&mut self, method: &str, _params: Params<'_>, responder: Responder) {
//!         responder.method_not_found(method);
//!     }
//!     fn on_notification(&mut self, _method: &str, _params: Params<'_>) {}
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let (near, far) = tokio::io::duplex(4096);
//! let (input, output) = tokio::io::split(near);
//! let server = Peer::start(PeerOptions::header(), Transport::stream(input, output), |out| Echo(out.clone())).unwrap();
//! let (input, output) = tokio::io::split(far);
//! let client = Peer::start(PeerOptions::header(), Transport::stream(input, output), |_| Caller).unwrap();
//!
//! let reply = client.outgoing().request("echo", &["hello"], Duration::from_secs(5));
//! assert_eq!(reply.decode::<Vec<String>>().await.unwrap(), ["hello"]);
//! assert!(server.close(Duration::from_secs(1)).await);
//! # });
//! ```
//!
//! Chosen where the specification leaves room: batch arrays are answered with one -32600 (no supported protocol has them);
//! `params: null` and absent params are the same; a response to an unknown id is ignored; a response with neither
//! `result` nor `error` to an outgoing request counts as `result: null` (JavaScript drops undefined members).

mod backlog;
mod cancellation;
mod carried;
mod connection;
mod errors;
pub mod framing;
mod inbox;
mod json_lines;
mod message;
mod messages;
mod options;
mod outgoing;
mod peer;
mod queue;
mod responder;
pub mod sse;
mod transport;

pub use backlog::Backlog;
pub use cancellation::Cancellation;
pub use carried::Carried;
pub use connection::End;
pub use errors::{NotSent, RequestError};
pub use framing::Framing;
pub use inbox::{Inbound, inbox};
pub use json_lines::{JsonLines, NullIdErrorFilter};
pub use message::{Fault, Id, Params};
pub use messages::{Messages, failed, messages};
pub use options::{CancelMethod, PeerOptions};
pub use outgoing::{Outgoing, Request};
pub use peer::{Handler, Peer};
pub use responder::Responder;
pub use transport::{Transport, stdio};
