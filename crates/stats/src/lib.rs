//! What was used, by day, model, project, chat and tool, read from the stored chats.
//!
//! Must not know settings, files or models. Invariants: usage counts once, in the chat that caused it (a fork's copied
//! history counts for the chat it was copied from).

mod collect;
pub mod page;
pub mod text;

pub use collect::{ChatKinds, Figures, Stats, collect};
