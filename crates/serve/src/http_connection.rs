//! One connection of an editor by plain requests: messages come by `POST`, and leave by streams of events, one for the connection
//! and one for each session (docs/protocols/acp.md).
//!
//! Must not know HTTP. Invariants: a message waits in one mailbox until a stream takes it; a mailbox has at most one reader;
//! a client that does not read stops its own protocol and nothing else; a connection that nobody uses ends.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::CancellationToken;
use rpc::Messages;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use crate::protocol::Running;

/// What waits to be read; then the protocol is not read any further.
const MOST_BYTES: usize = 4 << 20;
/// How long a client may leave it so.
const STALL: Duration = Duration::from_secs(60);
/// A connection without a reader and without requests ends after this time.
const UNUSED: Duration = Duration::from_secs(120);
/// How long the protocol may take for the first answer, and to take a message.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// The session of a message, or the connection itself.
pub(crate) type Route = Option<String>;

pub(crate) struct HttpConnection {
    inbound: mpsc::Sender<String>,
    state: Mutex<Mailboxes>,
    /// A message came or was taken, or a reader has left.
    changed: Notify,
    /// Cancelled when the connection is over.
    pub(crate) ended: CancellationToken,
}

struct Mailboxes {
    boxes: HashMap<Route, Mailbox>,
    bytes: usize,
    /// Where the responses to the client's requests go, by their ids.
    pending: HashMap<String, Route>,
    /// The sessions of the agent's own requests, by their ids.
    asked: HashMap<String, Route>,
    used: Instant,
}

#[derive(Default)]
struct Mailbox {
    queue: VecDeque<String>,
    has_reader: bool,
}

/// The right to read a mailbox, until it is dropped.
pub(crate) struct Reader {
    connection: Arc<HttpConnection>,
    route: Route,
}

impl HttpConnection {
    /// Sends the first message to a protocol that was started; the connection and the answer.
    pub(crate) async fn open(
        running: Running,
        messages: Messages,
        revoked: CancellationToken,
        first: String,
    ) -> io::Result<(Arc<Self>, String)> {
        let Messages { mut incoming, outgoing, .. } = messages;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        outgoing.send(first).await.map_err(io::Error::other)?;
        let answer = timeout(ANSWER_DEADLINE, incoming.recv()).await.map_err(late)?;
        let answer = answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let connection = Arc::new(Self {
            inbound: outgoing,
            state: Mutex::new(Mailboxes {
                boxes: HashMap::new(),
                bytes: 0,
                pending: HashMap::new(),
                asked: HashMap::new(),
                used: Instant::now(),
            }),
            changed: Notify::new(),
            ended: CancellationToken::new(),
        });
        let kept = connection.clone();
        tokio::spawn(async move {
            kept.route_messages(incoming, revoked).await;
            kept.ended.cancel();
            // The protocol reads the end of its input when the last user of the connection has left.
            drop(kept);
            if let Err(error) = running.end().await {
                tracing::warn!(%error, "a protocol for an editor could not be served");
            }
        });
        Ok((connection, answer))
    }

    fn lock(&self) -> MutexGuard<'_, Mailboxes> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection: the client asked for it.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Hands a message of the client to the protocol. `route`: where the answer to a request goes.
    pub(crate) async fn send(&self, message: &Value, route: Route) -> Result<(), io::Error> {
        if message.get("method").is_some() {
            if let Some(id) = message.get("id").filter(|id| !id.is_null()) {
                self.lock().pending.insert(id.to_string(), route);
            }
        } else if let Some(id) = message.get("id") {
            self.lock().asked.remove(&id.to_string());
        }
        self.lock().used = Instant::now();
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        tokio::select! {
            () = self.ended.cancelled() => Err(gone()),
            sent = timeout(ANSWER_DEADLINE, self.inbound.send(message.to_string())) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(gone()),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            },
        }
    }

    /// The session that a response of the client belongs to; `None`: no such request is open.
    pub(crate) fn session_of_response(&self, id: &Value) -> Option<Route> {
        self.lock().asked.get(&id.to_string()).cloned()
    }

    /// The right to read what goes to a session or to the connection; `None` where somebody has it.
    pub(crate) fn read(self: &Arc<Self>, route: Route) -> Option<Reader> {
        let mut state = self.lock();
        let mailbox = state.boxes.entry(route.clone()).or_default();
        if mailbox.has_reader {
            return None;
        }
        mailbox.has_reader = true;
        Some(Reader { connection: self.clone(), route })
    }

    /// Reads the protocol until the connection is over.
    async fn route_messages(&self, mut incoming: mpsc::Receiver<String>, revoked: CancellationToken) {
        loop {
            if !self.wait_for_room().await {
                return;
            }
            let message = tokio::select! {
                () = revoked.cancelled() => return,
                () = self.ended.cancelled() => return,
                () = self.unused() => return,
                message = incoming.recv() => message,
            };
            match message {
                Some(message) => self.push(message),
                None => return,
            }
        }
    }

    /// Whether there is room; not where the client has read nothing for too long, or has gone.
    async fn wait_for_room(&self) -> bool {
        loop {
            let changed = self.changed.notified();
            if self.lock().bytes <= MOST_BYTES {
                return true;
            }
            tokio::select! {
                () = self.ended.cancelled() => return false,
                waited = timeout(STALL, changed) => if waited.is_err() { return false },
            }
        }
    }

    /// Resolves when nobody has used the connection for a while.
    async fn unused(&self) {
        loop {
            let until = {
                let mut state = self.lock();
                if state.boxes.values().any(|mailbox| mailbox.has_reader) {
                    state.used = Instant::now();
                }
                state.used + UNUSED
            };
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn push(&self, message: String) {
        let value: Value = serde_json::from_str(&message).unwrap_or_default();
        let session = |value: &Value| value["sessionId"].as_str().map(str::to_owned);
        let mut state = self.lock();
        let id = value.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let route = if value.get("method").is_some() {
            let route = session(&value["params"]);
            if let Some(id) = id {
                state.asked.insert(id, route.clone());
            }
            route
        } else {
            id.and_then(|id| state.pending.remove(&id)).flatten()
        };
        state.bytes += message.len();
        state.boxes.entry(route).or_default().queue.push_back(message);
        drop(state);
        self.changed.notify_waiters();
    }

    fn take(&self, route: &Route) -> Option<String> {
        let mut state = self.lock();
        let message = state.boxes.get_mut(route)?.queue.pop_front()?;
        state.bytes -= message.len();
        Some(message)
    }
}

impl Reader {
    /// The next message; `None` when the connection is over.
    pub(crate) async fn next(&self) -> Option<String> {
        loop {
            let changed = self.connection.changed.notified();
            if let Some(message) = self.connection.take(&self.route) {
                self.connection.changed.notify_waiters();
                return Some(message);
            }
            tokio::select! {
                () = self.connection.ended.cancelled() => return self.connection.take(&self.route),
                () = changed => {}
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.used = Instant::now();
        if let Some(mailbox) = state.boxes.get_mut(&self.route) {
            mailbox.has_reader = false;
        }
    }
}
