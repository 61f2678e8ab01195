//! Ways out of the sandbox, as data, and the small world they are tried in. `process` runs them: for
//! `dragoman doctor sandbox` on the user's machine, and for the tests.
//!
//! Invariants: an attempt exits with 0 exactly if it got out, but for those whose program runs later; outside of a sandbox it does no harm either, because it
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

/// Attempts to leave something behind that git runs later, outside of the sandbox. The script of such an attempt may
/// succeed; what counts is whether [`LOOK`] then runs the program `$EVIL`.
pub const RUNS_LATER: &str = "runs later";

/// What people and their editors run, in each folder that git could take for a repository.
pub const LOOK: &str = r#"
    look() { git status; git diff; git add -n .; git commit -q --allow-empty -m look; }
    look
    find . -maxdepth 9 \( -name .git -o -name HEAD \) -not -path './.git/*' -exec dirname {} \; | sort -u |
        while read -r folder; do (cd "$folder" && look); done
    git rebase --continue
"#;

/// Variables with which git works in the small world.
pub const GIT_VARIABLES: &[(&str, &str)] = &[
    ("GIT_AUTHOR_EMAIL", "a@example.org"),
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@example.org"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
];

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
