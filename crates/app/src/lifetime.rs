//! How a server ends: EOF, `exit`, a signal or a dead parent become one shutdown.
//!
//! Invariant: whichever comes, the journal is flushed, children are ended, and the process is gone within a second
//! with exit code 0.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::link::Engine;
use domain::{Abilities, Command, Failure};
use tokio::sync::{Notify, mpsc};

use crate::memory;

/// What the engine may take to stop turns and flush.
const LAST_WORK: Duration = Duration::from_millis(700);

/// When what only the start needed can go.
const STARTED: Duration = Duration::from_millis(20);
/// How long nothing happens before a burst is over: longer than a person takes between two prompts in a row.
const REST: Duration = Duration::from_secs(10);

/// Runs async work on a runtime of few threads and ends without waiting for threads that block.
pub fn run(work: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return crate::commands::failed(&Failure::internal(format!("No runtime: {error}."))),
    };
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => crate::commands::failed(&failure),
    }
}

/// Serves until the first reason to end, then ends everything.
pub async fn serve(
    engine: Engine,
    served: impl Future<Output = std::io::Result<()>>,
    mut parents: mpsc::UnboundedReceiver<u32>,
) {
    let mut served = std::pin::pin!(giving_back(served));
    let signal = process::shutdown_signal();
    let parent = async move {
        if let Some(pid) = parents.recv().await {
            match process::watch_parent(pid).await {
                process::ParentEnd::Died => return,
                // Of another machine or container; a client that is gone has closed our stdin.
                process::ParentEnd::NotFound => tracing::warn!(pid, "the client's process cannot be seen"),
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        ended = &mut served => {
            if let Err(error) = ended {
                tracing::error!(%error, "the connection broke");
            }
        }
        () = wait(signal) => tracing::info!("ended by a signal"),
        () = parent => tracing::info!("the client is gone"),
    }
    end(engine).await;
}

/// Does the work; memory is given back soon after its start, and whenever it rests. A server at rest is not woken.
async fn giving_back<T>(work: impl Future<Output = T>) -> T {
    let pulse = Arc::new(Pulse::default());
    tokio::spawn(at_rest(pulse.clone()));
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(move |context| {
        if !pulse.works.load(Ordering::Relaxed) {
            pulse.works.store(true, Ordering::Relaxed);
            pulse.begun.notify_one();
        }
        work.as_mut().poll(context)
    })
    .await
}

/// Whether the work was polled. While it is, a poll costs one look at a flag.
#[derive(Default)]
struct Pulse {
    works: AtomicBool,
    begun: Notify,
}

async fn at_rest(pulse: Arc<Pulse>) {
    tokio::time::sleep(STARTED).await;
    loop {
        let _ = tokio::task::spawn_blocking(memory::give_back).await;
        while !pulse.works.load(Ordering::Relaxed) {
            pulse.begun.notified().await;
        }
        while pulse.works.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(REST).await;
        }
    }
}

/// `None`: a signal came first.
pub async fn until_signal<T>(work: impl Future<Output = T>) -> Option<T> {
    let signal = process::shutdown_signal();
    tokio::select! {
        done = work => Some(done),
        () = wait(signal) => None,
    }
}

/// Stops turns, flushes the journal, ends children.
pub async fn end(engine: Engine) {
    let _ = tokio::time::timeout(LAST_WORK, stop(engine)).await;
    let _ = tokio::time::timeout(LAST_WORK, process::shutdown()).await;
}

async fn wait(signal: std::io::Result<impl Future<Output = process::ShutdownSignal>>) {
    match signal {
        Ok(signal) => {
            signal.await;
        }
        Err(error) => {
            tracing::warn!(%error, "signals cannot be seen");
            std::future::pending::<()>().await;
        }
    }
}

/// Every turn stops and everything recorded is on disk.
async fn stop(engine: Engine) {
    if let Ok(link) = engine.attach(Abilities::default()).await {
        let _ = link.commands.call(|reply| Command::Shutdown { reply }).await;
    }
}
