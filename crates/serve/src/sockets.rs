//! Editors at other places: a WebSocket per editor, and the protocol that is spoken over it as on standard streams.
//!
//! Must not know a protocol: each comes as a function. It follows the remote transport of ACP (docs/protocols/acp.md); a client
//! that asks for it can lose its connection and go on with another one (decision 0036). Invariants: nothing is served before the
//! token is accepted; a connection is resumed by its own caller only; connections, messages and waits are bounded.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::link::Engine;
use domain::{BoxFuture, CancellationToken};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use remote::{CONNECTION_ID, Channel, Limits, RESUME, RunEnd, Side};
use rpc::Messages;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use web::ApiError;

use crate::http_connection::HttpConnection;
use crate::protocol::{self, Endpoint};

/// Connections of all callers, and of one.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 16;
/// How long the client may take between the answer to its upgrade and the WebSocket.
const UPGRADE_DEADLINE: Duration = Duration::from_secs(20);
/// How long a lost connection is kept on which nothing came yet, or whose protocol has ended.
const SHORT_WAIT: Duration = Duration::from_secs(30);
const LONGEST_TOKEN: usize = 512;

/// What a token opens.
pub struct Entrance {
    /// Whose it is; a connection is resumed by the same caller.
    pub caller: String,
    /// The engine as that caller may use it.
    pub engine: Engine,
    /// Cancelled when the caller may no longer use it.
    pub ended: CancellationToken,
}

type Admit = Box<dyn Fn(String) -> BoxFuture<'static, Result<Entrance, ApiError>> + Send + Sync>;
/// Cheap to clone.
#[derive(Clone)]
pub struct Sockets(Arc<Shared>);

struct Shared {
    admit: Admit,
    /// How long a lost connection is kept.
    kept: Duration,
    connections: Mutex<HashMap<String, Known>>,
}

struct Known {
    caller: String,
    path: &'static str,
    link: Link,
}

/// How a connection reaches its client.
enum Link {
    Socket(mpsc::Sender<Attach>),
    Http(Arc<HttpConnection>),
}

/// One WebSocket on its way to its connection.
struct Attach {
    /// How many messages the client has received.
    received: u64,
    /// How many messages the server has received.
    reply: oneshot::Sender<u64>,
    upgrade: OnUpgrade,
}

/// A request that may become a WebSocket.
struct Wanted {
    key: String,
    token: String,
    /// The client can resume; how many messages it has received.
    received: Option<u64>,
    connection: Option<String>,
}

impl Sockets {
    /// `kept`: how long a lost connection can be resumed.
    pub fn new(admit: Admit, kept: Duration) -> Self {
        Self(Arc::new(Shared { admit, kept, connections: Mutex::default() }))
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What a token opens, or why it does not.
    pub(crate) async fn admit(&self, token: String) -> Result<Entrance, ApiError> {
        (self.0.admit)(token).await
    }

    /// Adds a connection to the list; its id.
    fn register(&self, caller: String, path: &'static str, link: Link) -> Result<String, ApiError> {
        let id = web::random_id().map_err(|error| ApiError::internal(error.to_string()))?;
        let mut connections = self.connections();
        let of_caller = connections.values().filter(|known| known.caller == caller).count();
        if connections.len() >= MOST || of_caller >= MOST_OF_ONE {
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(ApiError::new(status, "tooMany", "Too many editors are connected.")
                .hint("Close one of them, or try again later."));
        }
        connections.insert(id.clone(), Known { caller, path, link });
        Ok(id)
    }

    /// Lists a connection by plain requests until it ends.
    pub(crate) fn add_http(
        &self,
        caller: String,
        path: &'static str,
        connection: Arc<HttpConnection>,
    ) -> Result<String, ApiError> {
        let id = self.register(caller, path, Link::Http(connection.clone()))?;
        let (sockets, name) = (self.clone(), id.clone());
        tokio::spawn(async move {
            connection.ended.cancelled().await;
            sockets.connections().remove(&name);
        });
        Ok(id)
    }

    /// The connection by plain requests with this id, where it is this caller's.
    pub(crate) fn find_http(&self, id: &str, caller: &str, path: &str) -> Option<Arc<HttpConnection>> {
        let connections = self.connections();
        let known = connections.get(id).filter(|known| known.caller == caller && known.path == path)?;
        match &known.link {
            Link::Http(connection) => Some(connection.clone()),
            Link::Socket(_) => None,
        }
    }

    /// Registers a new connection and starts its protocol.
    fn open(&self, endpoint: Endpoint, entrance: Entrance, resumes: bool) -> Result<String, ApiError> {
        let (attach, attaches) = mpsc::channel(4);
        let id = self.register(entrance.caller, endpoint.path, Link::Socket(attach))?;
        let (sockets, name) = (self.clone(), id.clone());
        let Entrance { engine, ended, .. } = entrance;
        tokio::spawn(async move {
            if let Err(error) =
                keep(endpoint, engine, ended, resumes.then_some(sockets.0.kept), attaches).await
            {
                tracing::warn!(%error, "a protocol for an editor could not be served");
            }
            sockets.connections().remove(&name);
        });
        Ok(id)
    }

    /// Hands a WebSocket to its connection, which says how many messages it has received.
    async fn attach(
        &self,
        id: &str,
        caller: Option<(&str, &str)>,
        received: u64,
        upgrade: OnUpgrade,
    ) -> Result<u64, ApiError> {
        let attach = {
            let connections = self.connections();
            let known = connections.get(id);
            let known =
                known.filter(|it| caller.is_none_or(|caller| caller == (it.caller.as_str(), it.path)));
            known.and_then(|known| match &known.link {
                Link::Socket(attach) => Some(attach.clone()),
                Link::Http(_) => None,
            })
        };
        let missing = || ApiError::not_found("There is no such connection.").hint("Connect without its id.");
        let attach = attach.ok_or_else(missing)?;
        let (reply, answer) = oneshot::channel();
        attach.send(Attach { received, reply, upgrade }).await.map_err(|_| missing())?;
        answer.await.map_err(|_| missing())
    }
}

pub(crate) async fn upgrade(
    State((sockets, endpoint)): State<(Sockets, Endpoint)>,
    mut request: Request,
) -> Response {
    let upgraded = async {
        let wanted = Wanted::read(request.headers())?;
        let entrance = (sockets.0.admit)(wanted.token).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        let resumes = wanted.received.is_some();
        let (id, received) = match (wanted.connection, wanted.received) {
            (Some(id), Some(received)) => {
                let caller = (entrance.caller.as_str(), endpoint.path);
                let count = sockets.attach(&id, Some(caller), received, upgrade).await?;
                (id, count)
            }
            (Some(_), None) => {
                return Err(ApiError::not_found("A connection without a count cannot be resumed."));
            }
            (None, _) => {
                let id = sockets.open(endpoint, entrance, resumes)?;
                let count = sockets.attach(&id, None, 0, upgrade).await?;
                (id, count)
            }
        };
        Ok(switch(&wanted.key, &id, resumes.then_some(received)))
    };
    upgraded.await.unwrap_or_else(IntoResponse::into_response)
}

/// The answer that makes the connection a WebSocket.
fn switch(key: &str, id: &str, received: Option<u64>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::UPGRADE, "websocket");
    set(header::CONNECTION, "Upgrade");
    set(header::SEC_WEBSOCKET_ACCEPT, &remote::accept_key(key));
    set(HeaderName::from_static(CONNECTION_ID), id);
    if let Some(received) = received {
        set(HeaderName::from_static(RESUME), &received.to_string());
    }
    response
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        // The token first: a program without one learns nothing else.
        let token = bearer(headers)?;
        let one = |name: HeaderName| {
            let mut values = headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok());
            value.filter(|_| values.next().is_none())
        };
        let has = |name: HeaderName, word: &str| {
            one(name).is_some_and(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
        };
        let is_socket = has(header::UPGRADE, "websocket") && has(header::CONNECTION, "upgrade");
        if !is_socket || one(header::SEC_WEBSOCKET_VERSION) != Some("13") {
            let status = StatusCode::UPGRADE_REQUIRED;
            return Err(ApiError::new(status, "invalid", "This address speaks WebSocket, version 13."));
        }
        let key = one(header::SEC_WEBSOCKET_KEY).filter(|key| remote::is_key(key));
        let key = key.ok_or_else(|| ApiError::invalid("The key of the WebSocket cannot be used."))?;
        let received = match headers.get(RESUME) {
            Some(_) => {
                let count = one(HeaderName::from_static(RESUME)).and_then(|text| text.parse().ok());
                Some(count.ok_or_else(|| ApiError::invalid("The count of messages is not a number."))?)
            }
            None => None,
        };
        let connection = one(HeaderName::from_static(CONNECTION_ID)).map(str::to_owned);
        Ok(Self { key: key.to_owned(), token, received, connection })
    }
}

/// The token of the one `Authorization` header.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<String, ApiError> {
    let refused = || {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "A token is needed here.")
            .hint("Send it as `Authorization: Bearer TOKEN`.")
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
    let (scheme, token) = value.and_then(|value| value.split_once(' ')).ok_or_else(refused)?;
    let is_token =
        (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if scheme.eq_ignore_ascii_case("bearer") && is_token { Ok(token.to_owned()) } else { Err(refused()) }
}

/// One connection, over as many WebSockets as it takes.
async fn keep(
    endpoint: Endpoint,
    engine: Engine,
    ended: CancellationToken,
    kept: Option<Duration>,
    attaches: mpsc::Receiver<Attach>,
) -> io::Result<()> {
    let (running, Messages { incoming, outgoing, .. }) = protocol::start(endpoint, engine)?;
    let channel = Channel::new(Side::Server, Limits::default(), kept.is_some(), outgoing, incoming);
    carry(channel.until(ended.clone(), crate::caller::ENDED), kept, attaches, &ended).await;
    // The protocol has read the end of its input now.
    running.end().await
}

/// `kept`: how long a lost connection waits for another WebSocket; `None`: it ends at once.
async fn carry(
    mut channel: Channel,
    kept: Option<Duration>,
    mut attaches: mpsc::Receiver<Attach>,
    ended: &CancellationToken,
) {
    let mut next = None;
    loop {
        let attach = match next.take() {
            Some(attach) => attach,
            None => match next_attach(&channel, kept, &mut attaches, ended).await {
                Some(attach) => attach,
                None => return,
            },
        };
        let Attach { received, reply, upgrade } = attach;
        let _ = reply.send(channel.received());
        let running = async {
            match timeout(UPGRADE_DEADLINE, upgrade).await {
                Ok(Ok(upgraded)) => channel.run(Box::new(TokioIo::new(upgraded)), Vec::new(), received).await,
                Ok(Err(_)) | Err(_) => RunEnd::Cut,
            }
        };
        let end = tokio::select! {
            biased;
            // The client has lost the connection before the server noticed it.
            newer = attaches.recv() => {
                next = newer;
                continue;
            }
            end = running => end,
        };
        let is_over = match end {
            RunEnd::Cut => kept.is_none(),
            RunEnd::Closed | RunEnd::SentAway | RunEnd::Broken => true,
        };
        if is_over {
            return;
        }
    }
}

/// Waits for the client to come or to come back; `None`: it did not in time.
async fn next_attach(
    channel: &Channel,
    kept: Option<Duration>,
    attaches: &mut mpsc::Receiver<Attach>,
    ended: &CancellationToken,
) -> Option<Attach> {
    let wait = match kept {
        // A client whose handshake was cut does not know this connection and never comes back.
        Some(kept) if channel.received() == 0 || channel.is_ended() => kept.min(SHORT_WAIT),
        Some(kept) => kept,
        None => UPGRADE_DEADLINE,
    };
    tokio::select! {
        attach = attaches.recv() => attach,
        () = tokio::time::sleep(wait) => None,
        () = ended.cancelled() => None,
    }
}
