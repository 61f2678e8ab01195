//! The Copilot CLI contract: `dragoman copilot`, one JSON-RPC message per line.
//!
//! Owns wire types, a dispatch table and the four methods over `apiui`. Knows no engine: the one way to a model is
//! `Command::Complete`, which has no tools, so that no text of a specification reaches a shell; a tool of the host is called
//! by the host, after its user allowed it.

mod chat;
mod customize;
mod dispatch;
mod from_wire;
mod generate;
mod joining;
mod model;
mod serve;
mod server;
mod task;
mod to_wire;
mod tool_calls;
mod wire;

pub use serve::serve;
pub use server::Limits;
