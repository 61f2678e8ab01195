//! From an API specification to a user interface, in five pure stages: read, normalize, plan, print, check.
//!
//! Owns the specification model, the interface plan and the printed React module. Knows no files, clock,
//! environment or network: whatever lies outside comes through a callback. Same input, same bytes.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the checker matches the syntax trees of JavaScript, whose enums have dozens of variants"
)]

pub mod check;
pub mod customize;
mod generate;
pub mod plan;
pub mod print;
pub mod problem;
pub mod project;
pub mod read;
pub mod spec;
pub mod tool;

pub use generate::{Generated, describe, generate};
