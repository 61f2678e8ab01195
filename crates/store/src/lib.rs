//! The durable journal of all chats of a user and its index, in one SQLite file.
//!
//! Owns everything that is kept between runs and the only persisted schemas: `record` (facts as JSON, also in exported
//! chats), `chat` (their table and index) and `key_values` (small values beside them). Knows no engine, no protocol and no
//! front-end.
//! Invariants: an append returns after its facts are on disk; facts of a chat are numbered from 1 without gaps
//! and only appended; one process writes a chat at a time; a deleted chat leaves no text behind.

mod chat;
mod database;
mod deletion;
mod encoded;
mod error;
mod files;
mod journal;
mod key_values;
mod lease;
mod listing;
mod log;
mod migrations;
mod record;
mod search;
mod unused_bytes;
mod worker;
mod writer;

pub use journal::Journal;
pub use record::{export_line, import_line};

/// What another store of the same facts needs: their stored form, and the rules of the index and of the search.
pub mod shared {
    pub use crate::encoded::{EncodedFact, IndexUpdate, MessageCount, PAGE, decode, no_chat, not_held};
    pub use crate::search::{excerpt, searchable, words};
}
