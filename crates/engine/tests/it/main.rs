//! The engine driven through its link: a scripted model, a store in memory, tools that do what a test needs. No process,
//! no HTTP, and a clock that a test can let run.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tests read their scale from the environment")]

mod bench;
mod client;
mod peers;
mod random;

mod answers;
mod approvals;
mod attached;
mod attached_random;
mod attached_strangers;
mod closing;
mod compaction;
mod crashes;
mod decisions;
mod finishing;
mod goals;
mod history;
mod hooks;
mod instructions;
mod leases;
mod limits;
mod prompts;
mod reviews;
mod slash_commands;
mod subagents;
mod taint;
mod workspaces;
