//! The Copilot CLI contract: `dragoman copilot`, one JSON-RPC message per line.
//!
//! Owns wire types, a dispatch table and the four methods over `apiui`. Knows no engine: the one way to a model is
//! `Command::Complete`, which has no tools, so that a specification of anybody's is never near a shell.

pub mod chat;
pub mod customize;
pub mod dispatch;
pub mod from_wire;
pub mod generate;
pub mod model;
pub mod serve;
pub mod to_wire;
pub mod wire;

pub use serve::{Limits, serve};
