//! The durable journal of all chats of a user and its index, in one SQLite file.
//!
//! Owns everything that is kept between runs and the only persisted schemas: `record` (facts as JSON, also in exported
//! chats), `chat` (their table and index) and `key_values` (small values beside them). Knows no engine, no protocol and no
//! front-end.
//! Invariants: an append returns after its facts are on disk; facts of a chat are numbered from 1 without gaps
//! and only appended; one process writes a chat at a time; a deleted chat leaves no text behind; a fact that was changed
//! behind our back is not read.

mod chat;
mod check;
mod checksum;
mod copying;
mod database;
mod deletion;
mod encoded;
mod error;
mod fact_place;
mod files;
mod index_row;
mod journal;
mod key_values;
mod lease;
mod listing;
mod log;
mod log_damage;
mod migrations;
mod record;
mod repair;
mod repaired;
mod restoring;
mod salvage;
mod scan;
mod search;
mod searchable;
mod unused_bytes;
mod waiting;
mod worker;
mod writer;

pub use check::check_file;
pub use copying::{Migrated, migrate};
pub use journal::Journal;
pub use record::{Stored, export_line, import_line};
pub use repair::{Repair, repair};
pub use repaired::{DamagedChat, Repaired};

/// What another store of the same facts needs: their stored form, and the rules of the index and of the search.
pub mod shared {
    pub use crate::checksum::of_fact as checksum_of_fact;
    pub use crate::encoded::{
        EncodedFact, FactOrder, IndexUpdate, MessageCount, PAGE, damaged_chat, decode, no_chat, not_held,
    };
    pub use crate::search::{excerpt, words};
    pub use crate::searchable::searchable;
}
