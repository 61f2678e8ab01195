//! How a command line becomes that of the helper, and where the helper begins. It starts nothing itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::connect::{self, CONNECT_ARGUMENT};
pub use crate::memory::OVER_MEMORY;
use crate::policy::Policy;
use crate::suite::{self, ATTEMPT_ARGUMENT};

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

/// Called by `main` before anything else, with the arguments after the first: builds the wall and becomes the command,
/// or becomes one of the small tools that are needed behind it.
pub fn run_helper(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.peekable();
    if arguments.next_if(|first| first == ATTEMPT_ARGUMENT).is_some() {
        return suite::run_tool(arguments);
    }
    if arguments.next_if(|first| first == CONNECT_ARGUMENT).is_some() {
        return connect::run(arguments);
    }
    build_wall(arguments)
}

#[cfg(target_os = "linux")]
fn build_wall(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    crate::helper::run(arguments)
}

#[cfg(not(target_os = "linux"))]
fn build_wall(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
