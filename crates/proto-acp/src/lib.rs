//! The Agent Client Protocol, version 1 and the draft of version 2: `dragoman acp`, for Zed, JetBrains, Neovim, Emacs and every other client of it.
//!
//! Owns a dispatch table and a projection between the official schema's types and the domain's; everything else is
//! the engine's. Knows no model, tool or disk.

mod asks;
mod dispatch;
mod faults;
mod from_wire;
mod host;
mod open_session;
mod opening;
mod options;
mod proxy;
mod proxying;
mod serve;
mod server;
mod sessions;
mod terminals;
mod to_wire;
mod tool_calls;
mod turn_ends;
mod unstable;
mod v2;
mod version_two;
mod wire;

pub use serve::{serve, serve_agent, serve_remote, serve_versions};
