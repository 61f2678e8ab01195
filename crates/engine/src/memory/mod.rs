//! Memory across chats: facts that the user wants kept. The model gets an index of a few lines and reads entries by itself.
//!
//! Invariants: without entries nothing of this is in a request; the index is at most 400 bytes long; in a chat that has read
//! text of strangers an entry of the model needs the user's word; text that looks like a secret is never kept.

mod commands;
mod consolidation;
mod files;
mod keeping;
mod pending;

pub(crate) use commands::answer;
pub use consolidation::PURPOSE;
pub use files::{MemoryContents, MemoryEntry, MemoryFolders, MemoryScope};
pub(crate) use keeping::{instructions, keep_wish, summary, take_proposals, wish};
pub(crate) use pending::PendingMemory;
