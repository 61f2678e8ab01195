//! One session: its state, the fold that makes it, the journal behind it, the lease on it, and the actor that handles its
//! commands in order.
//!
//! Also owns the plain data that the layers above keep in a session: questions, remembered approvals, spending, offered
//! tools. Must not know turns, tools, hooks, subagents, slash commands or settings: the layers above do their work behind
//! [`SessionWork`]. Invariant: the log alone says what a chat is; everything else here is gone with the process.

#![warn(unreachable_pub)]

pub mod account;
pub mod actor;
mod actor_data;
mod answering;
pub mod asks;
pub mod attached_frontend;
mod ending;
mod flags;
pub mod fork;
pub mod lease;
pub mod log;
pub mod offered_tools;
mod pending_ask;
pub mod refusal;
mod remembered;
mod remote;
mod running_calls;
mod session_core;
pub mod start;
pub mod state;
pub mod steering;
mod work;

pub use crate::session_core::{LoadedSession, SessionCore, SessionParts, load};
pub use actor_data::{Actor, Message};
pub use attached_frontend::{AttachedFrontend, EditorHandle};
pub use remembered::{Remembered, RememberedApprovals};
pub use running_calls::RunningCalls;
pub use start::{Create, Start};
pub use work::SessionWork;

/// Facts read at a time while loading.
const PAGE: usize = 4096;
