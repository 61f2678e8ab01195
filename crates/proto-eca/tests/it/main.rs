//! `serve` from outside, over a pipe in memory, with an engine that the test scripts.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod client;
mod contents;
mod instructions;
mod lifecycle;
mod sessions;
