//! The early Agent Communication Protocol, in both readings of its document: `dragoman threads`.
//!
//! Owns wire types, a dispatch table and a projection; everything else is the engine's. Knows no model, tool or disk.

mod agent_drives;
mod client_thread;
mod dispatch;
mod editor_drives;
mod files;
mod from_wire;
mod reads;
mod serve;
mod server;
mod to_wire;
mod wire;

pub use serve::serve;
pub use server::{Driver, QUIET_TIME, ServeOptions};
