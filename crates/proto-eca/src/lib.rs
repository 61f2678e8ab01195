//! The ECA protocol in its three generations (the draft of 2025, the published protocol, the plugins of today):
//! `dragoman server`.
//!
//! Owns wire types, a dispatch table and a projection; everything else is the engine's. Knows no model, tool or disk.

mod catalog;
mod chats;
mod dispatch;
mod draft;
mod from_wire;
mod pending_logins;
mod prompting;
mod queries;
mod serve;
mod to_wire;
mod wire;

pub use serve::{ServeOptions, serve};
