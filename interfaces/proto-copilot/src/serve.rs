//! One connection of the contract: lines in, at most four requests at work, answers and chunks out.
//!
//! Invariants: the reader only hands on, all work is on tasks and blocking threads; what waits is bounded in number and
//! in bytes; every request is answered once, by a time that its method promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::command::WorkspaceSpec;
use domain::link::{Commands, Link};
use domain::{Command, Failure};
use rpc::{Handler, Outgoing, Params, Peer, PeerOptions, Responder, Transport};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::dispatch;
use crate::joining::JoinedRequests;
use crate::to_wire;

/// The longest line that is read.
const LINE: usize = 128 << 20;
/// What all requests that are not answered may hold together, in KiB.
const PENDING_KIB: usize = 384 << 10;
/// How long the last messages may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

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

/// Serves until `exit` or the end of the input. After the end of the input what was asked for is still answered.
pub async fn serve(
    link: Link,
    workspace: WorkspaceSpec,
    transport: Transport,
    limits: Limits,
) -> std::io::Result<()> {
    let settings = PeerOptions {
        message_limit: LINE,
        too_large: to_wire::too_large(format!(
            "The message is larger than {} MB. Send a smaller specification or less code.",
            LINE >> 20
        )),
        in_flight_limit: limits.running + limits.waiting,
        too_many: to_wire::rate_limited(),
        ..PeerOptions::newline()
    };
    let exit = Arc::new(Notify::new());
    let peer = Peer::start(settings, transport, |outgoing| RequestHandler {
        server: Arc::new(Server {
            outgoing: outgoing.clone(),
            model: ModelAccess::start(link.commands.clone(), workspace),
            streaming: AtomicBool::new(true),
            running: Arc::new(Semaphore::new(limits.running)),
            joined: JoinedRequests::default(),
            limits,
        }),
        held: Arc::new(Semaphore::new(PENDING_KIB)),
        exit: exit.clone(),
    })?;
    tokio::select! {
        biased;
        () = exit.notified() => {}
        end = peer.ended() => if matches!(end, rpc::End::Input) {
            let longest = limits.generate.max(limits.customize).max(limits.chat);
            tokio::select! {
                () = peer.answered() => {}
                () = exit.notified() => {}
                () = tokio::time::sleep(longest) => {}
            }
        },
    }
    let _ = link.commands.send(Command::Detach).await;
    peer.close(CLOSE_TIMEOUT).await;
    Ok(())
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
    fn start(commands: Commands, workspace: WorkspaceSpec) -> Self {
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

struct RequestHandler {
    server: Arc<Server>,
    held: Arc<Semaphore>,
    exit: Arc<Notify>,
}

impl Handler for RequestHandler {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        let raw = params.raw();
        let kib = raw.map_or(0, |raw| raw.get().len() >> 10) + 1;
        let bytes =
            u32::try_from(kib).ok().and_then(|kib| self.held.clone().try_acquire_many_owned(kib).ok());
        match bytes {
            Some(bytes) => dispatch::handle_message(&self.server, method, raw, bytes, responder),
            None => responder.fail(to_wire::rate_limited()),
        }
    }

    fn on_notification(&mut self, method: &str, _params: Params<'_>) {
        match method {
            crate::wire::method::EXIT => self.exit.notify_one(),
            _ => tracing::debug!("an unknown notification"),
        }
    }
}
