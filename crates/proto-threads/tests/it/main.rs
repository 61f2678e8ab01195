//! The thread protocol without an engine, in both readings of its document.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod agent;
mod client;
mod editor;
mod entries;
mod shape;
