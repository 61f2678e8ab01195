//! The early Agent Communication Protocol, in both readings of its document: `dragoman threads`.
//!
//! Owns wire types, a dispatch table and a projection; everything else is the engine's. Knows no model, tool or disk.

pub mod agent_drives;
pub mod dispatch;
pub mod editor_drives;
pub mod files;
pub mod from_wire;
pub mod serve;
pub mod to_wire;
pub mod wire;

pub use serve::{Driver, Options, QUIET, serve};
