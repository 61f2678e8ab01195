//! How a child is started and ended: `dragoman copilot` as a process, or a scripted one in tests.
//!
//! Invariant: the child's environment holds only what is handed over.

use std::ffi::OsString;
use std::path::PathBuf;

use domain::BoxFuture;
use process::{Child, Spawn};
use tokio::io::{AsyncRead, AsyncWrite};

pub trait Launch: Send + Sync {
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>>;
}

/// A child that runs: its pipes, and the handle that ends it.
pub struct Launched {
    pub pid: Option<u32>,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    pub process: Box<dyn CliProcess>,
}

pub trait CliProcess: Send + Sync {
    /// Ends it by force and returns when it is gone.
    fn kill(&self) -> BoxFuture<'_, ()>;
}

/// A program with its arguments and its whole environment.
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Launch for Program {
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>> {
        Box::pin(async move {
            let spawn = Spawn::new(&self.path)
                .args(&self.arguments)
                .clear_environment()
                .envs(self.environment.iter().map(|(name, value)| (name, value)))
                .piped_input();
            let mut child =
                spawn.start().await.map_err(|error| format!("The CLI cannot be started: {error}."))?;
            let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
            let (Some(input), Some(output), Some(errors)) = pipes else {
                return Err("The CLI was started without its pipes.".to_owned());
            };
            Ok(Launched {
                pid: Some(child.pid()),
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                process: Box::new(child),
            })
        })
    }
}

impl CliProcess for Child {
    fn kill(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stop().await;
        })
    }
}
