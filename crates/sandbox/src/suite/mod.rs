//! Ways out of the sandbox, as data, and the small world they are tried in. `process` runs them: for
//! `dragoman doctor sandbox` on the user's machine, and for the tests.
//!
//! Invariants: an attempt exits with 0 exactly if it got out; outside of a sandbox it does no harm either, because it
//! touches only the small world, or asks the kernel for something that cannot be done.

mod attempts;
#[cfg(target_os = "linux")]
mod tool;
mod world;

pub use attempts::{ATTEMPTS, HOME};
pub use world::World;

use std::ffi::OsString;
use std::process::ExitCode;

/// The hidden argument after the first one that makes the program the attempts' tool.
pub const ATTEMPT_ARGUMENT: &str = "attempt";

/// One way out: a script for the shell.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub category: &'static str,
    pub name: &'static str,
    pub script: &'static str,
}

/// What became of an attempt.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub category: &'static str,
    pub name: String,
    pub blocked: bool,
}

/// Does what a script cannot: system calls. Exits with 0 if the kernel let it.
#[cfg(target_os = "linux")]
pub(crate) fn run_tool(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    tool::run(arguments)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run_tool(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
