//! The host's side of the Copilot CLI contract: one child, its requests, and its restarts.
//!
//! Owns ids, the queue, deadlines, retries and the restart of a child that crashed. Knows nothing of tabs or pages.
//! Invariants: ids rise; at most `MOST_WAITING` requests wait; every call is answered once, whatever the child does.

mod actor;
mod connection;
mod launch;
mod method;
mod policy;
mod request;
mod status;

pub use launch::{CliProcess, Launch, Launched, Program};
pub use method::Method;
pub use request::{Chunk, CliError, CliErrorKind, MOST_WAITING};
pub use status::{CliState, CliStatus, Diagnostics};

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use actor::{Actor, Command};
use request::Request;

/// The handle. The child ends when the last handle is dropped.
#[derive(Clone)]
pub struct Cli {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<CliStatus>,
}

impl Cli {
    /// Starts the child at once and keeps it running.
    pub fn start(launcher: Arc<dyn Launch>, diagnostics: Diagnostics) -> Self {
        let (commands, receiver) = mpsc::channel(MOST_WAITING);
        let (actor, status) = Actor::new(launcher, diagnostics, receiver);
        tokio::spawn(actor.run());
        Self { commands, status }
    }

    pub fn status(&self) -> watch::Receiver<CliStatus> {
        self.status.clone()
    }

    /// Asks the child; the answer comes after at most the deadlines and retries of the method.
    pub async fn call(
        &self,
        method: Method,
        params: Value,
        chunks: Option<mpsc::UnboundedSender<Chunk>>,
    ) -> Result<Value, CliError> {
        let (answer, answered) = oneshot::channel();
        let request = Request::new(method, params, chunks, answer);
        let sent = self.commands.send(Command::Call(Box::new(request))).await;
        sent.map_err(|_| CliError::unavailable("The program is shutting down."))?;
        answered.await.unwrap_or_else(|_| Err(CliError::unavailable("The program is shutting down.")))
    }

    /// Starts a child that failed or was stopped, or another one in place of a running one.
    pub async fn restart(&self) {
        let _ = self.commands.send(Command::Restart).await;
    }

    /// Ends the child: by the `exit` notification, then by force.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
    }
}
