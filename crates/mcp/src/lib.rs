//! The client of the Model Context Protocol and the supervisor of the servers a user configured or a client handed over.
//!
//! It owns the life of each server (a child process or an HTTP address), the handshake, the lists, the calls and the
//! translation into [`domain::tool`]. It knows no configuration file, no front-end and no model. Invariants:
//!
//! * **Nothing waits for a server.** [`Supervisor::start`] returns at once; what is known of a server is a snapshot, at first
//!   the tools that it offered in an earlier process (`kept`). Only a call waits, until its server runs.
//! * **Nothing outlives its purpose.** A stopped, crashed or dropped server takes its whole process tree with it; every
//!   request has a deadline and is cancelled at the server when its answer is no longer needed.
//! * **A server is not trusted.** Names, descriptions, schemas, lists and results are bounded and cleaned; a hint of a
//!   server never makes a call harmless or lets it run beside others; a definition that changes after it was first
//!   listed is withheld until the user stops and starts the server (`pins`).
//! * **One peer, two carriers.** Standard pipes and streamable HTTP both end in a byte stream under [`rpc::Peer`].

mod auth;
mod calling;
mod calls;
mod catalog;
mod client;
mod connection;
mod content;
mod definitions;
mod digest;
mod era;
mod form;
mod handler;
mod http;
mod kept;
mod lifecycle;
mod list_store;
mod offered_tools;
mod options;
mod pins;
mod read_cache;
mod request_error;
mod resource_tool_spec;
mod resources;
mod sampling;
pub mod served;
mod server_state;
mod stdio;
mod supervisor;
mod tasks;
mod text;
mod tool;
mod uri_template;
mod wire;

pub use auth::{
    Identity, Keyring, LoginDone, LoginPrompt, LoginStore, OauthGrant, OauthLookup, OauthSettings,
    SealedLogins, client_metadata,
};
pub use list_store::ListStore;
pub use options::{Lookup, OpenBrowser, Options, ServerConfig, ServerDisplay};
pub use supervisor::{Supervisor, session_servers};
