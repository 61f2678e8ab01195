//! Streamable HTTP as a byte stream: outgoing messages become POSTs, incoming ones become lines.
//!
//! The peer above sees one connection with lines in both directions and keeps the ids, deadlines and cancellations.
//! Invariants: each request gets an answer line, possibly one that describes the error; at most one message
//! per stream is held; when the peer is gone nothing is left but a last DELETE with a deadline.

mod challenge_probe;
mod exchange;
mod message;
mod network;
mod old;
mod param_headers;
mod refusal;
mod response;
mod sending;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rpc::Transport;
use rpc::framing::{Decoder, Frame, Framing};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

pub(crate) use challenge_probe::challenge_of;
use exchange::Exchange;
use message::{MessageKind, OutgoingMessage};
pub(crate) use network::{client, is_local};
pub(crate) use param_headers::{ParamHeader, param_headers};
pub(crate) use refusal::Refusal;
pub(crate) use response::read_limited;

use crate::auth::Authorization;

/// Between the peer and the bridge, in each direction.
const PIPE_CAPACITY: usize = 64 << 10;

/// Outgoing messages are bounded by the peer's queue; this only has to be larger.
const MAX_OUTGOING_BYTES: usize = 256 << 20;

/// Lines on their way to the peer.
const MAX_LINES: usize = 16;

const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The task behind the byte stream.
pub(crate) struct HttpBridge {
    exchange: Arc<Exchange>,
    task: JoinHandle<()>,
}

/// The server is first spoken to when the peer sends; the sentence says what is wrong with the settings.
pub(crate) async fn open(
    url: &str,
    headers: &[(String, String)],
    authorization: Option<Authorization>,
) -> Result<(Transport, HttpBridge), String> {
    let (peer_side, bridge_side) = tokio::io::duplex(PIPE_CAPACITY);
    let (lines, inbox) = mpsc::channel(MAX_LINES);
    let exchange =
        Arc::new(Exchange::new(client(url).await?, url, header_map(headers)?, authorization, lines)?);
    let task = tokio::spawn(run(exchange.clone(), bridge_side, inbox));
    let (input, output) = tokio::io::split(peer_side);
    Ok((Transport::stream(input, output), HttpBridge { exchange, task }))
}

impl HttpBridge {
    /// Why the server refuses requests without a login, or with this one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.exchange.refusal()
    }

    /// The same for every client of this connection, now and later.
    pub(crate) fn shared_refusal(&self) -> Arc<Mutex<Option<Refusal>>> {
        self.exchange.refusal.clone()
    }

    /// Whether the last request found no server.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.exchange.is_unreachable.load(Ordering::Relaxed)
    }

    /// Whether requests carry a token of the user's login.
    pub(crate) fn has_login(&self) -> bool {
        self.exchange.authorization.as_ref().is_some_and(Authorization::has_token)
    }

    /// The user set a header for the login.
    pub(crate) fn has_own_credentials(&self) -> bool {
        self.exchange.has_own_credentials()
    }

    /// The arguments of tools that are repeated as headers.
    pub(crate) fn set_param_headers(&self, headers: HashMap<String, Vec<ParamHeader>>) {
        self.exchange.set_param_headers(headers);
    }

    /// Resolves when the server refuses a request because it needs a login.
    pub(crate) async fn login_required(&self) {
        self.exchange.login_required().cancelled().await;
    }

    /// Resolves when the server ends a connection of the old transport.
    pub(crate) async fn ended(&self) {
        self.exchange.ended().cancelled().await;
    }

    /// Resolves when the session is ended at the server too, or cannot be.
    pub(crate) async fn closed(mut self) {
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = || format!("The header {name} is not a valid HTTP header. Check the server's headers.");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad())?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// A request whose answer has not come.
struct RunningRequest {
    task: AbortHandle,
    is_stateless: bool,
}

/// Serves until the peer closes its side.
async fn run(exchange: Arc<Exchange>, stream: DuplexStream, inbox: mpsc::Receiver<Vec<u8>>) {
    let (input, output) = tokio::io::split(stream);
    let mut tasks = JoinSet::new();
    tasks.spawn(write(inbox, output));
    read(&exchange, input, &mut tasks).await;
    tasks.shutdown().await;
    exchange.delete_session().await;
}

async fn write(mut inbox: mpsc::Receiver<Vec<u8>>, mut output: WriteHalf<DuplexStream>) {
    while let Some(mut line) = inbox.recv().await {
        line.push(b'\n');
        if output.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read(exchange: &Arc<Exchange>, mut input: ReadHalf<DuplexStream>, tasks: &mut JoinSet<()>) {
    let mut decoder = Decoder::new(Framing::Newline, MAX_OUTGOING_BYTES);
    let mut under_way: HashMap<u64, RunningRequest> = HashMap::new();
    while let Ok(count @ 1..) = input.read(decoder.space()).await {
        decoder.filled(count);
        while let Some(frame) = decoder.next_frame() {
            if let Frame::Message(body) = frame {
                dispatch(exchange, OutgoingMessage::read(body), &mut under_way, tasks).await;
            }
        }
        while tasks.try_join_next().is_some() {}
        under_way.retain(|_, request| !request.task.is_finished());
    }
}

async fn dispatch(
    exchange: &Arc<Exchange>,
    message: OutgoingMessage,
    under_way: &mut HashMap<u64, RunningRequest>,
    tasks: &mut JoinSet<()>,
) {
    let OutgoingMessage { kind, body } = message;
    let exchange = exchange.clone();
    match kind {
        MessageKind::Request { id, initialize, stateless } => {
            let is_stateless = stateless.is_some();
            let task = tasks.spawn(async move { exchange.request(id, initialize, stateless, body).await });
            under_way.insert(id, RunningRequest { task, is_stateless });
        }
        // What follows must not overtake it.
        MessageKind::Initialized => {
            exchange.notify(body).await;
            tasks.spawn(exchange::listen(exchange.clone()));
        }
        MessageKind::Cancelled { id } => {
            let request = id.and_then(|id| under_way.remove(&id));
            tasks.spawn(async move {
                // In the stateless era the end of the response stream is the cancellation.
                if !request.as_ref().is_some_and(|request| request.is_stateless) {
                    exchange.notify(body).await;
                }
                if let Some(request) = request {
                    request.task.abort();
                }
            });
        }
        MessageKind::NullIdError => {}
        MessageKind::Other => drop(tasks.spawn(async move { exchange.notify(body).await })),
    }
}
