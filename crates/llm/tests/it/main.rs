//! The crate as its users see it: recorded streams, written requests, calls over real HTTP to the fake model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests read the variables that say how much to test")]

mod calls;
mod fill;
mod lossless;
mod matrix;
mod network;
mod rate_limiter;
mod recorded;
mod registry;
mod requests;
mod stalls;
mod support;
mod text_tool_calls;
mod written;
