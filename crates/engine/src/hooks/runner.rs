//! How the program of a hook is started: the interface, which `app` implements.

use std::path::Path;

use config::HookAction;
use domain::{BoxFuture, CancellationToken};

/// Starts the program of an action. Made by `app`.
pub trait HookRunner: Send + Sync {
    /// Runs to the end, the action's timeout or `cancel`, with `input` on its standard input.
    fn run<'a>(
        &'a self,
        action: &'a HookAction,
        folder: Option<&'a Path>,
        input: String,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HookExit>;

    /// This program, for scripts that call it.
    fn program(&self) -> String {
        String::new()
    }
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookExit {
    /// The exit code; `None` where it could not be started or was ended.
    pub status: Option<i32>,
    pub stdout: String,
    /// Without an exit code: why there is none.
    pub stderr: String,
    /// What the sandbox kept from it, as a sentence for people.
    pub stopped: Option<String>,
}
