//! A thread with a bounded queue, started at the first request.
//!
//! Must not know what its jobs do. Invariant: dropping it lets it finish what is queued, and waits for that only
//! for a moment.

use std::sync::{Mutex, OnceLock, mpsc as blocking};
use std::thread;
use std::time::Duration;

use domain::Failure;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait; a further one waits to be queued.
const QUEUE: usize = 256;

/// How long the end of the process may be delayed; a commit takes milliseconds.
const FAREWELL: Duration = Duration::from_millis(500);

pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

pub struct Worker<Job> {
    running: OnceLock<Running<Job>>,
}

struct Running<Job> {
    queue: mpsc::Sender<Job>,
    ended: Mutex<blocking::Receiver<()>>,
}

impl<Job: Send + 'static> Worker<Job> {
    pub fn new() -> Self {
        Self { running: OnceLock::new() }
    }

    /// Queues a job and waits for its answer. `run` is the thread's work, should this be its first job.
    pub async fn ask<T>(
        &self,
        name: &str,
        run: impl FnOnce(mpsc::Receiver<Job>) + Send + 'static,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T, Failure> {
        let queue = self.queue(name, run)?;
        let (reply, answer) = oneshot::channel();
        queue.send(job(reply)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    fn queue(
        &self,
        name: &str,
        run: impl FnOnce(mpsc::Receiver<Job>) + Send + 'static,
    ) -> Result<&mpsc::Sender<Job>, Failure> {
        if let Some(running) = self.running.get() {
            return Ok(&running.queue);
        }
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (end, ended) = blocking::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                run(jobs);
                drop(end);
            })
            .map_err(|error| {
                Failure::internal(format!("The journal's thread cannot be started: {error}."))
            })?;
        // Of two that start at once one is kept; the other's queue is dropped, which ends its thread.
        Ok(&self.running.get_or_init(|| Running { queue, ended: Mutex::new(ended) }).queue)
    }
}

impl<Job> Drop for Worker<Job> {
    fn drop(&mut self) {
        let Some(Running { queue, ended }) = self.running.take() else { return };
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Nothing is ever sent: this returns when the thread has ended or the time is up.
        let _ = ended.recv_timeout(FAREWELL);
    }
}

fn gone() -> Failure {
    Failure::internal("The journal's thread has ended.").hint("Restart Dragoman; what was stored is safe.")
}
