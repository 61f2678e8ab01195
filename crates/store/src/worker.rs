//! A thread with a bounded queue, started at the first request.
//!
//! Must not know what its jobs do. Invariant: after a drop the thread finishes its queue, and the drop waits for that
//! at most `SHUTDOWN_TIMEOUT`.

use std::sync::{Mutex, OnceLock, mpsc as blocking};
use std::thread;
use std::time::Duration;

use domain::Failure;
use tokio::sync::{mpsc, oneshot};

/// Requests in the queue; a further caller waits until there is room.
const QUEUE: usize = 256;

/// The longest delay of the process's end; a commit takes milliseconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Failure>>;

pub(crate) struct Worker<Job> {
    running: OnceLock<Running<Job>>,
}

struct Running<Job> {
    queue: mpsc::Sender<Job>,
    ended: Mutex<blocking::Receiver<()>>,
}

impl<Job: Send + 'static> Worker<Job> {
    pub(crate) fn new() -> Self {
        Self { running: OnceLock::new() }
    }

    /// Queues a job and waits for its reply. The first request starts the thread with `run`.
    pub(crate) async fn request<T>(
        &self,
        name: &str,
        run: impl FnOnce(mpsc::Receiver<Job>) + Send + 'static,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T, Failure> {
        let queue = self.queue(name, run)?;
        let (reply, response) = oneshot::channel();
        queue.send(job(reply)).await.map_err(|_| thread_ended())?;
        response.await.unwrap_or_else(|_| Err(thread_ended()))
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
        // Of two concurrent starts one is kept; the other's queue is dropped, which ends its thread.
        Ok(&self.running.get_or_init(|| Running { queue, ended: Mutex::new(ended) }).queue)
    }
}

impl<Job> Drop for Worker<Job> {
    fn drop(&mut self) {
        let Some(Running { queue, ended }) = self.running.take() else { return };
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The thread sends nothing: this returns when the thread has ended or the time is up.
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

fn thread_ended() -> Failure {
    Failure::internal("The journal's thread has ended.")
        .hint("Restart Dragoman. Everything stored before is safe.")
}
