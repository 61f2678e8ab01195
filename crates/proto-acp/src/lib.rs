//! The Agent Client Protocol, version 1: `dragoman acp`, for Zed, JetBrains, Neovim, Emacs and every other client of it.
//!
//! Owns a dispatch table and a projection between the official schema's types and our vocabulary; everything else is
//! the engine's. Knows no model, tool or disk.

pub mod asks;
pub mod dispatch;
pub mod from_wire;
pub mod host;
pub mod options;
pub mod serve;
pub mod sessions;
pub mod to_wire;
pub mod tool_calls;
pub mod wire;

pub use serve::serve;
