//! What a peer at the other end of the stream sees, over real streams, and what a caller of the crate sees.
#![allow(clippy::disallowed_methods, reason = "tests read their scale from the environment")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod flow;
mod framing;
mod fuzz;
mod requests;
mod support;
