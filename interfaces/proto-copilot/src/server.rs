//! The state of one connection: its limits, its running requests and its way to a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::command::WorkspaceSpec;
use domain::link::Commands;
use domain::{Command, Failure};
use rpc::Outgoing;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::joining::JoinedRequests;

/// What the contract promises. Tests shorten the times.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub running: usize,
    pub waiting: usize,
    /// A host waits 60 s.
    pub generate: Duration,
    /// A host waits 30 s. This and the next: a second before the promise, for a machine that is busy.
    pub customize: Duration,
    pub chat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 4,
            waiting: 100,
            generate: Duration::from_secs(55),
            customize: Duration::from_secs(25),
            chat: Duration::from_secs(7),
        }
    }
}

/// The connection, as the work on its requests sees it.
pub(crate) struct Server {
    pub outgoing: Outgoing,
    pub model: ModelAccess,
    /// The host takes chunks.
    pub streaming: AtomicBool,
    pub running: Arc<Semaphore>,
    pub joined: JoinedRequests,
    pub limits: Limits,
}

/// A running request. Its slot and its bytes are free again when the last holder is done, on any thread.
#[derive(Clone)]
pub(crate) struct Job {
    /// When it must be answered.
    pub until: Instant,
    held: Arc<Permits>,
}

struct Permits {
    _bytes: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Server {
    /// Waits for one of the places; `None`: not in time.
    pub(crate) async fn admit(
        &self,
        bytes: OwnedSemaphorePermit,
        since: Instant,
        time_limit: Duration,
    ) -> Option<Job> {
        let until = since + time_limit;
        let place = tokio::time::timeout_at(until, self.running.clone().acquire_owned()).await.ok()?.ok()?;
        Some(Job { until, held: Arc::new(Permits { _bytes: bytes, _place: place }) })
    }

    pub(crate) fn streams(&self) -> bool {
        self.streaming.load(Ordering::Relaxed)
    }
}

impl Job {
    /// Runs heavy work away from the connection. `None`: it was not done in time, or it panicked; the thread keeps the
    /// place until it ends.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let held = self.held.clone();
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(held);
            done
        });
        match tokio::time::timeout_at(self.until, done).await {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                tracing::error!(%error, "work on a request broke");
                None
            }
            Err(_) => None,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// For work that streams its result: hold it as long as the work runs.
    pub(crate) fn hold(&self) -> impl Send + 'static + use<> {
        self.held.clone()
    }
}

/// The way to a model, which needs the workspace to be entered first.
#[derive(Clone)]
pub(crate) struct ModelAccess {
    commands: Commands,
    entered: Arc<tokio::sync::OnceCell<Result<(), Failure>>>,
    workspace: WorkspaceSpec,
}

impl ModelAccess {
    pub(crate) fn start(commands: Commands, workspace: WorkspaceSpec) -> Self {
        Self { commands, entered: Arc::default(), workspace }
    }

    /// The engine's commands, once it knows the workspace.
    pub(crate) async fn commands(&self) -> Result<&Commands, Failure> {
        let entered = self.entered.get_or_init(|| async {
            let workspace = self.workspace.clone();
            self.commands.call(|reply| Command::Enter { workspace, reply }).await.map(|_| ())
        });
        entered.await.clone().map(|()| &self.commands)
    }
}
