//! The durable journal of all chats of a user and its index, in one SQLite file.
//!
//! Owns everything that is kept between runs and the only persisted schemas: `chat` (facts and their index) and
//! `records` (small values beside them). Knows no engine, no protocol and no front-end.
//! Invariants: a caller is answered after its facts are on disk; facts of a chat are numbered from 1 without gaps
//! and only appended; one process writes a chat at a time; a deleted chat leaves no text behind.

mod chat;
mod database;
mod erase;
mod journal;
mod lease;
mod migrations;
mod place;
mod records;
mod trouble;
mod worker;
mod writer;

pub use journal::Journal;
