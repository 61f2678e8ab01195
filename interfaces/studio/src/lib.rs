//! `dragoman studio`: the host of generated interfaces, in a page of the browser.
//!
//! Owns tabs, versions, the queue of changes, connections to APIs and the console; speaks the Copilot CLI contract to a
//! child (`cli`) and HTTP to the page (`routes`, docs/protocols/studio.md). Knows no engine and no model.
//! Invariants: code runs in the page only after the checker let it pass; nothing is deleted; credentials never leave
//! this process but to the API they belong to.

mod archive;
mod base_url;
mod calls;
mod changes;
pub mod cli;
mod connections;
mod console;
mod exchange;
mod export;

mod model;
mod moving;
mod network;
mod oauth;
mod parts;
mod plugin;
mod plugins;
mod routes;
mod sign_ins;
mod specification;
mod state;
mod studio;
mod tabs;
mod tool_calls;
mod versions;
mod waiting_call;
mod zip;

pub use calls::HEALTH_CHECK;
pub use connections::CredentialFile;
pub use moving::copy_tabs;
pub use plugin::{PluginAnswer, PluginHost, PluginTool, TriedPlugin};
pub use routes::{body_limit, is_open};
pub use specification::GivenSpecification;
pub use studio::{ProjectFiles, Studio, StudioOptions};
