//! The ECA protocol, as its seeds describe it and its editor plugins speak it: `dragoman server`.
//!
//! Owns wire types, a dispatch table and a projection; everything else is the engine's. Knows no model, tool or disk.

pub mod catalog;
pub mod chats;
pub mod dispatch;
pub mod draft;
pub mod from_wire;
pub mod pending_logins;
pub mod prompting;
pub mod queries;
pub mod serve;
pub mod to_wire;
pub mod wire;

pub use serve::{ServeOptions, serve};
