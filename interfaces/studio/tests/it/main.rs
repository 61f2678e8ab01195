//! Studio from outside: the contract with a scripted child, and the program's HTTP with a real one in its place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contract;
mod documented;
mod fake_child;
mod hostile;
mod proxy;
mod server;
mod stored;
mod talking;
