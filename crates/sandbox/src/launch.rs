//! How a command line becomes that of the helper, and where the helper begins. It starts nothing itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::policy::Policy;

/// The hidden first argument that makes the program the helper.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// The running program's own file, whatever became of its path.
pub fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The helper's arguments for a command. `channel` is the descriptor for listening sockets that it inherits.
pub fn arguments(policy: &Policy, channel: Option<i32>, program: &OsStr) -> io::Result<Vec<OsString>> {
    let policy = serde_json::to_string(policy)?;
    let channel = channel.map_or_else(|| "-".to_owned(), |number| number.to_string());
    Ok(vec![HELPER_ARGUMENT.into(), policy.into(), channel.into(), program.to_owned()])
}

/// Called by `main` before anything else, with the arguments after the first: builds the wall and becomes the command.
#[cfg(target_os = "linux")]
pub fn run_helper(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    crate::helper::run(arguments)
}

#[cfg(not(target_os = "linux"))]
pub fn run_helper(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
