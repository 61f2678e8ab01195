//! Runs the program and shuts it down: EOF, `exit`, a signal or a dead parent lead to the same shutdown.
//!
//! Invariant: a shutdown flushes the journal, ends all children and takes a bounded time.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::link::Engine;
use domain::{Abilities, CancellationToken, Command, Failure};
use tokio::sync::{Notify, mpsc};

use crate::{stores, telemetry};

/// The engine has deadlines of its own: 800 ms for sessions, then 800 ms for tool servers. This one is longer, so that
/// it applies only to an engine that does not answer at all.
const ENGINE_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(7);
/// The last step ends every process tree in less than a second; this bounds a reaper that does not answer.
const CHILDREN_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Memory is trimmed this long after the start, and again when the chores of the start are done as well.
const START_TRIM_DELAYS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(600)];
/// The heap is trimmed when nothing was done for this long, at the latest for twice as long.
const IDLE_TRIM_DELAY: Duration = Duration::from_secs(2);

/// Runs async work on a small runtime and closes the stores; ends without waiting for blocked threads.
pub(crate) fn run(work: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return crate::commands::failed(&Failure::internal(format!("No runtime: {error}."))),
    };
    let outcome = runtime.block_on(work);
    stores::close_all();
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => crate::commands::failed(&failure),
    }
}

/// Serves until the connection, the client or a signal ends it, then shuts down.
pub(crate) async fn serve(
    engine: Engine,
    connection: impl Future<Output = std::io::Result<()>>,
    mut parents: mpsc::UnboundedReceiver<u32>,
) {
    let mut connection = std::pin::pin!(trim_memory_when_idle(connection));
    let signal = process::shutdown_signal();
    let parent = async move {
        if let Some(pid) = parents.recv().await {
            match process::watch_parent(pid).await {
                process::ParentEnd::Died => return,
                // The client runs on another machine or in another container; if it dies, stdin closes.
                process::ParentEnd::NotFound => tracing::warn!(pid, "the client's process is not visible"),
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        ended = &mut connection => {
            if let Err(error) = ended {
                tracing::error!(%error, "the connection broke");
            }
        }
        () = wait_for_signal(signal) => tracing::info!("ended by a signal"),
        () = parent => tracing::info!("the client has ended"),
    }
    shut_down(engine).await;
}

/// Polls the work and trims the heap soon after its start and whenever it idles. An idle server is not woken.
async fn trim_memory_when_idle<T>(work: impl Future<Output = T>) -> T {
    let activity = Arc::new(Activity::default());
    tokio::spawn(trim_while_idle(activity.clone()));
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(move |context| {
        if !activity.is_active.load(Ordering::Relaxed) {
            activity.is_active.store(true, Ordering::Relaxed);
            activity.started.notify_one();
        }
        work.as_mut().poll(context)
    })
    .await
}

/// Records whether the work was polled. A poll of active work costs one load of a flag.
#[derive(Default)]
struct Activity {
    is_active: AtomicBool,
    started: Notify,
}

async fn trim_while_idle(activity: Arc<Activity>) {
    for delay in START_TRIM_DELAYS {
        tokio::time::sleep(delay).await;
        let _ = tokio::task::spawn_blocking(platform::memory::trim).await;
    }
    loop {
        while !activity.is_active.load(Ordering::Relaxed) {
            activity.started.notified().await;
        }
        while activity.is_active.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(IDLE_TRIM_DELAY).await;
        }
        let _ = tokio::task::spawn_blocking(platform::memory::trim).await;
    }
}

/// Returns `None` if a signal came first.
pub(crate) async fn until_signal<T>(work: impl Future<Output = T>) -> Option<T> {
    let signal = process::shutdown_signal();
    tokio::select! {
        done = work => Some(done),
        () = wait_for_signal(signal) => None,
    }
}

/// A signal asks the work to end by itself; a second one abandons it, and the result is `None`.
pub(crate) async fn stop_on_signal<T>(work: impl Future<Output = T>, stop: &CancellationToken) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let signal = process::shutdown_signal();
    tokio::select! {
        done = &mut work => return Some(done),
        () = wait_for_signal(signal) => stop.cancel(),
    }
    until_signal(work).await
}

/// Stops turns, flushes the journal and ends children.
pub(crate) async fn shut_down(engine: Engine) {
    let _ = tokio::time::timeout(ENGINE_SHUTDOWN_TIMEOUT, stop_engine(engine)).await;
    let children = tokio::time::timeout(CHILDREN_SHUTDOWN_TIMEOUT, process::shutdown());
    let _ = tokio::join!(children, telemetry::shut_down());
}

async fn wait_for_signal(signal: std::io::Result<impl Future<Output = process::ShutdownSignal>>) {
    match signal {
        Ok(signal) => {
            signal.await;
        }
        Err(error) => {
            tracing::warn!(%error, "signals cannot be received");
            std::future::pending::<()>().await;
        }
    }
}

/// Stops every turn and flushes the journal.
async fn stop_engine(engine: Engine) {
    if let Ok(link) = engine.attach(Abilities::default()).await {
        let _ = link.commands.call(|reply| Command::Shutdown { reply }).await;
    }
}
