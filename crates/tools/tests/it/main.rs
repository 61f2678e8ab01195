//! The built-in tools as the engine uses them: real folders, real processes, a scripted client.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and tell"
)]

mod contexts;
mod corpus;
mod edit_quality;
mod editor;
mod edits;
mod hostile_git;
mod jobs;
mod kit;
mod loops;
mod patches;
mod paths;
mod people;
mod searching;
mod shell_lines;
mod shell_runs;
mod shell_truth;
mod specs;
