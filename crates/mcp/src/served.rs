//! The server side of the Model Context Protocol on one connection: both eras, tools alone.
//!
//! It owns the handshake, the lists and the life of calls. It must not know what a tool does: its caller hands the tools
//! over. Invariants: every request is answered once; a call that its client cancels, or whose client leaves, is stopped.

mod serve;
mod wire;

pub use serve::{CallOutcome, LocalFuture, RunningCall, ServedTools, serve};
