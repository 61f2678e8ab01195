//! The connection and its projection, without an engine: what a client sees, checked against the official schema.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "tests fetch the official schema with npm")]

mod client;
mod opening;
mod projection;
mod prompting;
mod reaching_out;
mod robustness;
mod schema;
mod sdk;
mod version_two;
