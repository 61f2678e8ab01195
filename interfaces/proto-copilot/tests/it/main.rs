//! The contract as a host notices it: each method, each code, the limits. `apiui` is real, the engine's end is scripted.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]

mod chatting;
mod codes;
mod customizing;
mod documented;
mod generating;
mod host;
mod lifecycle;
mod talk;
