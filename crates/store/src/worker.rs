//! A thread with a bounded queue, started at the first request.
//!
//! Must not know what its jobs do. Invariant: after `close` the thread finishes its queue, and `close` waits for that
//! at most `SHUTDOWN_TIMEOUT`.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::thread;
use std::time::Duration;

use domain::Failure;
use tokio::sync::{mpsc, oneshot};

/// Requests in the queue; a further caller waits until there is room.
const QUEUE: usize = 256;

/// The longest delay of the process's end. A commit takes milliseconds, writing the log back on a slow disk some hundred.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Failure>>;

pub(crate) struct Worker<Job> {
    state: Mutex<State<Job>>,
}

enum State<Job> {
    Unused,
    Running(Running<Job>),
    Closed,
}

struct Running<Job> {
    queue: mpsc::Sender<Job>,
    ended: blocking::Receiver<()>,
}

impl<Job: Send + 'static> Worker<Job> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::Unused) }
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
        // The thread ends when nobody can send to it.
        drop(queue);
        response.await.unwrap_or_else(|_| Err(thread_ended()))
    }

    fn queue(
        &self,
        name: &str,
        run: impl FnOnce(mpsc::Receiver<Job>) + Send + 'static,
    ) -> Result<mpsc::Sender<Job>, Failure> {
        let mut state = self.state();
        match &*state {
            State::Running(Running { queue, .. }) => return Ok(queue.clone()),
            State::Closed => return Err(thread_ended()),
            State::Unused => {}
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
        *state = State::Running(Running { queue: queue.clone(), ended });
        Ok(queue)
    }
}

impl<Job> Worker<Job> {
    /// Lets the thread finish its queue and end, and waits for that. Every later request fails.
    pub(crate) fn close(&self) {
        let State::Running(Running { queue, ended }) = std::mem::replace(&mut *self.state(), State::Closed)
        else {
            return;
        };
        drop(queue);
        // The thread sends nothing: this returns when the thread has ended or the time is up.
        let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }

    fn state(&self) -> MutexGuard<'_, State<Job>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Job> Drop for Worker<Job> {
    fn drop(&mut self) {
        self.close();
    }
}

fn thread_ended() -> Failure {
    Failure::internal("The journal's thread has ended.")
        .hint("Restart Dragoman. Everything stored before is safe.")
}
