//! The crate as its users see it: recorded streams, written requests, calls over real HTTP to the fake model.

#![allow(clippy::disallowed_methods, reason = "tests read the variables that say how much to test")]

mod calls;
mod recorded;
mod requests;
mod support;
