//! `dragoman serve`: the chats of this machine for a web page, over HTTP and server-sent events.
//!
//! It is a front-end like the others: it knows the link to the engine and the store, and no model, tool or setting.
//! Invariants: a chat that a page opened stays with this process while a turn runs, whether a page looks or not; every
//! stream begins with the whole chat and then misses nothing; the routes are those of docs/protocols/serve.md.

pub mod accounts;
mod audit;
mod caller;
mod chats;
mod client_input;
mod editor_routes;
pub mod guard;
mod http_connection;
mod http_editors;
mod ledger;
mod limits;
mod policy;
mod protocol;
mod reservations;
mod routes;
mod server;
mod sockets;
mod stream;
mod to_wire;

pub use accounts::{Account, Accounts};
pub use audit::{Act, Audit, Entry, Verified};
pub use caller::{Caller, ENDED, Role};
pub use chats::{Chats, Options, RunningChat, RunningState, Scope};
pub use guard::Guard;
pub use ledger::{Ledger, spent};
pub use policy::Policy;
pub use protocol::Endpoint;
pub use routes::{OPENAPI, ROUTES, Route, body_limit, is_open};
pub use server::{Server, ServerOptions};
pub use sockets::{Entrance, Sockets};
