//! A model server that says what a test tells it to, in every API format, over real HTTP.
//!
//! ```ignore
//! let fake = FakeModel::start().await;
//! fake.answer(Answer::text("Hello").call("c1", "eca__read_file", json!({"path": "a"})));
//! // … point a provider's url at fake.url(), prompt …
//! assert_eq!(fake.requests()[0].last_user_text(), "Hi");
//! ```
//! The format is chosen by the request's path. Answers are used up in order; when none is left, the request's own
//! text says what to answer (see [`echo`]).

pub mod echo;
mod request;
mod script;
mod server;
mod wire;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use request::{Format, Request};
pub use script::{Answer, Gate, Usage};

/// The server. It stops when it is dropped.
pub struct FakeModel {
    url: String,
    state: Arc<FakeModelState>,
    task: JoinHandle<()>,
}

type Responder = dyn Fn(&Request) -> Answer + Send + Sync;

#[derive(Default)]
struct FakeModelState {
    answers: Mutex<VecDeque<Answer>>,
    responder: Mutex<Option<Arc<Responder>>>,
    requests: Mutex<Vec<Request>>,
    hangups: Mutex<usize>,
    connections: Mutex<usize>,
    models: Mutex<Vec<String>>,
    takes_titles: AtomicBool,
    changed: Notify,
}

impl FakeModel {
    /// Listens on a free port of this machine.
    pub async fn start() -> Self {
        Self::listen("127.0.0.1:0").await
    }

    pub async fn listen(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port for the fake model");
        let url = format!("http://{}", listener.local_addr().expect("the address of the fake model"));
        let state = Arc::new(FakeModelState::default());
        *locked(&state.models) = vec!["fake-model".to_owned()];
        let task = tokio::spawn(server::serve(listener, state.clone()));
        Self { url, state, task }
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds an answer after those already added.
    pub fn answer(&self, answer: Answer) -> &Self {
        locked(&self.state.answers).push_back(answer);
        self
    }

    /// Answers requests for which no answer was added.
    pub fn respond_with(&self, responder: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> &Self {
        *locked(&self.state.responder) = Some(Arc::new(responder));
        self
    }

    /// Requests for the title of a chat are answered and kept like others. Without it they fail unseen, so that the first
    /// words of a chat are its title and a test sees only what it asks for.
    pub fn take_titles(&self) -> &Self {
        self.state.takes_titles.store(true, Ordering::Relaxed);
        self
    }

    /// The models that are listed where a client asks for the list.
    pub fn models(&self, names: &[&str]) -> &Self {
        *locked(&self.state.models) = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// All requests to a model so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.requests).clone()
    }

    /// Forgets the requests so far, so that a long run does not keep them all.
    pub fn forget_requests(&self) {
        locked(&self.state.requests).clear();
    }

    /// The last request to a model.
    pub fn last_request(&self) -> Request {
        locked(&self.state.requests).last().cloned().expect("a request to the fake model")
    }

    /// Waits until there were `count` requests.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait(|| self.requests().len() >= count, "requests").await;
        self.requests()
    }

    /// How many clients went away before their answer had ended.
    pub fn hangups(&self) -> usize {
        *locked(&self.state.hangups)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        *locked(&self.state.connections)
    }

    /// Waits until `count` clients went away before their answer had ended.
    pub async fn wait_for_hangups(&self, count: usize) {
        self.wait(|| self.hangups() >= count, "hang-ups").await;
    }

    async fn wait(&self, done: impl Fn() -> bool, what: &str) {
        let waiting = async {
            loop {
                let changed = self.state.changed.notified();
                if done() {
                    return;
                }
                let _ = tokio::time::timeout(Duration::from_millis(50), changed).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        assert!(waited.is_ok(), "the fake model waited 10 s for {what} in vain");
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeModelState {
    fn answer(&self, request: &Request) -> Answer {
        let is_title =
            || request.last_user_text().contains(TITLE_REQUEST) || request.system().contains(TITLE_REQUEST);
        if !self.takes_titles.load(Ordering::Relaxed) && is_title() {
            return Answer::status(400);
        }
        locked(&self.requests).push(request.clone());
        self.changed.notify_waiters();
        if let Some(answer) = locked(&self.answers).pop_front() {
            return answer;
        }
        let responder = locked(&self.responder).clone();
        match responder {
            Some(responder) => responder(request),
            None => echo::answer(request),
        }
    }

    fn hung_up(&self) {
        *locked(&self.hangups) += 1;
        self.changed.notify_waiters();
    }
}

/// What every request for a title says.
pub(crate) const TITLE_REQUEST: &str = "Answer with a title of at most six words";

/// Nanoseconds since this process first asked.
pub fn clock() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Appends an AWS frame: an event, or an exception if its name says so.
pub fn aws_frame(kind: &str, payload: &str, out: &mut Vec<u8>) {
    let message = if kind.ends_with("Exception") { "exception" } else { "event" };
    wire::bedrock::write_frame(message, kind, payload, out);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
