//! The ECA protocol in its three generations (the draft of 2025, the published protocol, the plugins of today):
//! `dragoman server`.
//!
//! Owns wire types, a table of methods and a projection per dialect; everything else is the engine's. Knows no model,
//! tool or disk.

mod call_ids;
mod catalog;
mod compaction;
mod completing;
mod dialect;
mod dialect_interface;
mod draft;
mod faults;
mod flags;
mod forms;
mod from_wire;
mod history;
mod host;
mod inline_prompt;
mod jobs;
mod lifecycle;
mod mcp;
mod newest_page;
mod next_edit;
mod pending_logins;
mod prompting;
mod proposal;
mod providers;
mod queries;
mod replaying;
mod reply;
mod rewriting;
mod selection;
mod sent;
mod serve;
mod server;
mod session_facts;
mod sessions;
mod settings;
mod to_wire;
mod tool_calls;
mod turns;
mod wire;

pub use serve::serve;
pub use server::ServeOptions;
