//! A program that has the user's terminal for a while, such as an editor.
//!
//! The exception among our children: it stays in our process group and session, because only that group may read the
//! terminal; it has no deadline, because a person decides when it ends. It dies with the future that waits for it.

use std::ffi::OsStr;

use crate::error::ProcessError;
use crate::exit::Exit;

/// Runs a program with our own stdin, stdout and stderr and waits for its end.
pub async fn foreground(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Exit, ProcessError> {
    let mut command = std::process::Command::new(program.as_ref());
    crate::environment::remove_secrets(&mut command);
    let mut command = tokio::process::Command::from(command);
    command.args(arguments).kill_on_drop(true);
    let name = program.as_ref().to_string_lossy();
    #[expect(clippy::disallowed_methods, reason = "this crate owns spawning")]
    let mut child = command.spawn().map_err(|source| ProcessError::from_spawn(&name, source))?;
    let status = child.wait().await.map_err(|source| ProcessError::from_spawn(&name, source))?;
    Ok(status.into())
}
