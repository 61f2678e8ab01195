//! Traces and metrics of turns, model calls and tool calls, sent to the collector of the user (OTLP over HTTP).
//!
//! Nothing happens unless the user's own settings or the standard variables name a collector. Invariants: no turn ever
//! waits here: signals go into a bounded queue, and a full one drops them; names, sizes, times and costs leave the
//! machine, texts and paths only with `otlp.content`; the end of the program waits a bounded time.

mod encode;
mod export;
mod metrics;
mod observe;
mod protobuf;
mod recorder;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::Failure;
use llm::Network;
use tokio::sync::{mpsc, oneshot};

pub use observe::{observe_model, observe_store};
pub use recorder::IsSubagent;
use recorder::Signal;

/// Signals that wait for the exporter.
const QUEUE_LENGTH: usize = 4096;
/// What the last export may take when the program ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The way to the exporter. There is none while nothing is exported.
struct Queue {
    signals: mpsc::Sender<Signal>,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    /// Signals for which there was no room.
    dropped: Arc<AtomicU64>,
    /// Texts and paths go along.
    content: bool,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Starts the exporter where the settings ask for it. The first workspace of a process decides.
pub fn start(
    resolved: &config::Resolved,
    network: fn(&config::Resolved) -> Result<Network, Failure>,
    is_subagent: IsSubagent,
) {
    let Some(settings) = &resolved.settings.telemetry else { return };
    if QUEUE.get().is_some() {
        return;
    }
    let network = match network(resolved) {
        Ok(network) => network,
        Err(failure) => return tracing::warn!(%failure, "telemetry is not exported"),
    };
    let (signals, received) = mpsc::channel(QUEUE_LENGTH);
    let (flushes, asked) = mpsc::channel(1);
    let dropped = Arc::new(AtomicU64::new(0));
    let queue = Queue { signals, flushes, dropped: dropped.clone(), content: settings.content };
    if QUEUE.set(queue).is_ok() {
        let recorder = recorder::Recorder::new(resolved.redactor.clone(), is_subagent);
        let exporter = export::Exporter::new(settings.clone(), network, recorder, dropped);
        tokio::spawn(exporter.run(received, asked));
    }
}

/// Exports what is left, within a bounded time.
pub async fn shut_down() {
    let Some(queue) = QUEUE.get() else { return };
    let (done, ended) = oneshot::channel();
    let flush = async {
        if queue.flushes.send(done).await.is_ok() {
            let _ = ended.await;
        }
    };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, flush).await.is_err() {
        tracing::warn!("the last telemetry was not exported in time");
    }
}

impl Queue {
    fn push(&self, signal: Signal) {
        if self.signals.try_send(signal).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
