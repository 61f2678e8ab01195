//! One server over HTTP: the session with it, and the outcome of each POST and GET.
//!
//! Invariants: a session that the server has forgotten is renewed once for all waiting requests, and each request is sent at
//! most twice; bodies and events are bounded; a stream that breaks is resumed where the server numbers its events.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::CancellationToken;
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use rpc::sse::SseParser;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::message::{StatelessHeaders, error_response, is_response_to, split_batch};
use super::response::{Cursor, ExchangeError, failed, is_stream, read_body};
use super::{ParamHeader, Refusal};
use crate::auth::Authorization;
use crate::text::single_line;
use crate::wire::MAX_MESSAGE_BYTES;

pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// The code of errors that the bridge reports itself.
const OWN_ERROR: i64 = -32000;

/// For messages that have no answer, and for the last one.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);
const RENEW_TIMEOUT: Duration = Duration::from_secs(30);

/// Of a body that only explains an error.
const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_REASON_LENGTH: usize = 500;

/// How often a stream is resumed without a sign of life.
const MAX_RESUMPTIONS: u32 = 5;
/// A stream that lasted so long was alive, even if it said nothing.
const ALIVE_AFTER: Duration = Duration::from_secs(10);

pub(super) struct Exchange {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    session: Mutex<HttpSession>,
    /// The handshake as the peer sent it, for a new session.
    initialize: Mutex<Option<(u64, Bytes)>>,
    /// Held during a renewal, so that other requests that lost the session wait for it. Always under a deadline.
    renewal: tokio::sync::Mutex<()>,
    pub(super) authorization: Option<Authorization>,
    /// Cancelled when the server refuses requests because they need a login.
    pub(super) login_required: CancellationToken,
    pub(super) refusal: Arc<Mutex<Option<Refusal>>>,
    /// The last request found no server, or a gateway without one.
    pub(super) is_unreachable: AtomicBool,
    pub(super) param_headers: Mutex<HashMap<String, Vec<ParamHeader>>>,
    /// The status of a refused handshake is one that servers of the old transport give.
    looks_old: AtomicBool,
    old: Mutex<Option<OldTransport>>,
    /// Cancelled when the stream of the old transport has ended.
    ended: CancellationToken,
    /// To the peer.
    lines: mpsc::Sender<Vec<u8>>,
}

/// An open stream of the old transport.
pub(super) struct OldTransport {
    pub(super) endpoint: Url,
    pub(super) _reader: AbortOnDropHandle<()>,
}

#[derive(Clone, Default)]
pub(super) struct HttpSession {
    pub(super) id: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    /// Counts renewals.
    number: u64,
    /// Of one request of the stateless era; a stream of it cannot be resumed.
    pub(super) stateless: Option<StatelessHeaders>,
}

impl HttpSession {
    fn stateless(headers: StatelessHeaders) -> Self {
        let version = HeaderValue::try_from(headers.version.as_str()).ok();
        Self { version, stateless: Some(headers), ..Self::default() }
    }
}

impl Exchange {
    pub(super) fn new(
        client: Client,
        url: &str,
        headers: HeaderMap,
        authorization: Option<Authorization>,
        lines: mpsc::Sender<Vec<u8>>,
    ) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("Its url cannot be read: {error}."))?;
        Ok(Self {
            client,
            url,
            headers,
            session: Mutex::default(),
            initialize: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            authorization,
            login_required: CancellationToken::new(),
            refusal: Arc::default(),
            is_unreachable: AtomicBool::new(false),
            param_headers: Mutex::default(),
            looks_old: AtomicBool::new(false),
            old: Mutex::default(),
            ended: CancellationToken::new(),
            lines,
        })
    }

    pub(super) fn login_required(&self) -> &CancellationToken {
        &self.login_required
    }

    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// The address for messages that a server of the old transport names, if it is at the same origin.
    pub(super) fn endpoint_at(&self, path: &str) -> Option<Url> {
        self.url.join(path.trim()).ok().filter(|endpoint| endpoint.origin() == self.url.origin())
    }

    pub(super) fn old_endpoint(&self) -> Option<Url> {
        lock(&self.old).as_ref().map(|old| old.endpoint.clone())
    }

    /// Posts a request and hands the answer, or an error response, to the peer.
    pub(super) async fn request(
        self: &Arc<Self>,
        id: u64,
        initialize: bool,
        stateless: Option<StatelessHeaders>,
        body: Bytes,
    ) {
        let outcome = match stateless {
            Some(headers) => self.send_in_session(id, body, &HttpSession::stateless(headers)).await.map(Some),
            None if initialize => self.initialize(id, body).await,
            None if self.old_endpoint().is_some() => self.post(body).await.map(|()| None),
            None => self.send_request(id, body).await.map(Some),
        };
        let answer = match outcome {
            Ok(Some(answer)) => answer,
            // It comes by the stream of the old transport.
            Ok(None) => return,
            Err(ExchangeError::SessionLost) => {
                let reason = "It knows neither the session nor a new one.";
                error_response(id, OWN_ERROR, reason, None)
            }
            Err(ExchangeError::Reason(reason, code, data)) => {
                error_response(id, code.unwrap_or(OWN_ERROR), &reason, data)
            }
        };
        self.deliver(answer).await;
    }

    /// Posts a message that has no answer.
    pub(super) async fn notify(&self, body: Bytes) {
        let session = self.session().clone();
        let sent =
            tokio::time::timeout(NOTIFY_TIMEOUT, self.send(Method::POST, &session, Some(body), None)).await;
        match sent {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => tracing::debug!(status = response.status().as_u16(), "a notice was refused"),
            Ok(Err(ExchangeError::Reason(reason, ..))) => tracing::debug!(reason, "a notice did not arrive"),
            Ok(Err(ExchangeError::SessionLost)) | Err(_) => {
                tracing::debug!("a notice did not arrive in time")
            }
        }
    }

    /// Ends the session at the server, if it will have it.
    pub(super) async fn delete_session(&self) {
        *lock(&self.old) = None;
        let session = self.session().clone();
        if session.id.is_some() {
            let last = self.send(Method::DELETE, &session, None, None);
            let _ = tokio::time::timeout(DELETE_TIMEOUT, last).await;
        }
    }

    async fn initialize(self: &Arc<Self>, id: u64, body: Bytes) -> Result<Option<Vec<u8>>, ExchangeError> {
        *lock(&self.initialize) = Some((id, body.clone()));
        let refused = match self.handshake(id, body.clone(), 0).await {
            Err(error) if self.looks_old.load(Ordering::Relaxed) => error,
            outcome => return outcome.map(Some),
        };
        let Some(old) = self.open_old_stream().await else { return Err(refused) };
        *lock(&self.old) = Some(old);
        self.post(body).await.map(|()| None)
    }

    /// Posts a message whose answer, if any, comes by the stream.
    async fn post(&self, body: Bytes) -> Result<(), ExchangeError> {
        let session = HttpSession::default();
        let response = self.send(Method::POST, &session, Some(body), None).await?;
        self.check_status(response, &session).await.map(drop)
    }

    async fn handshake(&self, id: u64, body: Bytes, number: u64) -> Result<Vec<u8>, ExchangeError> {
        let fresh = HttpSession { number, ..HttpSession::default() };
        let response = self.send(Method::POST, &fresh, Some(body), None).await?;
        let response = self.check_status(response, &fresh).await?;
        let begun = HttpSession { id: response.headers().get(SESSION_HEADER).cloned(), ..fresh };
        let answer = self.receive(id, response, &begun).await?;
        let welcome: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let version = welcome["result"]["protocolVersion"].as_str();
        let version = version.and_then(|version| HeaderValue::try_from(version).ok());
        *self.session() = HttpSession { version, ..begun };
        Ok(answer)
    }

    async fn send_request(&self, id: u64, body: Bytes) -> Result<Vec<u8>, ExchangeError> {
        let session = self.session().clone();
        match self.send_in_session(id, body.clone(), &session).await {
            Err(ExchangeError::SessionLost) => {
                let renewed = tokio::time::timeout(RENEW_TIMEOUT, self.renew(session.number)).await;
                let late = |_| Err(failed("It knows the session no more and gives no new one."));
                let session = renewed.unwrap_or_else(late)?;
                self.send_in_session(id, body, &session).await
            }
            outcome => outcome,
        }
    }

    async fn send_in_session(
        &self,
        id: u64,
        body: Bytes,
        session: &HttpSession,
    ) -> Result<Vec<u8>, ExchangeError> {
        let response = self.send(Method::POST, session, Some(body), None).await?;
        let response = self.check_status(response, session).await?;
        self.receive(id, response, session).await
    }

    /// A new session in place of the one with this number, unless another request has already made one.
    async fn renew(&self, number: u64) -> Result<HttpSession, ExchangeError> {
        let _renewal = self.renewal.lock().await;
        let current = self.session().clone();
        if current.number != number {
            return Ok(current);
        }
        let initialize = lock(&self.initialize).clone();
        let Some((id, body)) = initialize else { return Err(ExchangeError::SessionLost) };
        self.handshake(id, body, number + 1).await?;
        self.notify(Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)).await;
        // A new session may offer something else.
        for list in ["tools", "prompts", "resources"] {
            let notice = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
            self.deliver(notice.into_bytes()).await;
        }
        Ok(self.session().clone())
    }

    /// The response, if it is a good one.
    async fn check_status(
        &self,
        response: Response,
        session: &HttpSession,
    ) -> Result<Response, ExchangeError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let to =
                response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("another address");
            return Err(failed(&format!("It is at {} now. Set that as its url.", single_line(to, 200))));
        }
        let body = read_body(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        let error = serde_json::from_slice::<Value>(&body).unwrap_or_default()["error"].take();
        let said = error["message"]
            .as_str()
            .map_or_else(|| String::from_utf8_lossy(&body).into_owned(), str::to_owned);
        let said = single_line(&self.mask(said), MAX_REASON_LENGTH);
        let named = session.id.is_some();
        // Many servers answer 400 where the protocol has 404.
        if named
            && (status == StatusCode::NOT_FOUND
                || status == StatusCode::BAD_REQUEST && said.to_lowercase().contains("session"))
        {
            return Err(ExchangeError::SessionLost);
        }
        let old = session.version.is_none()
            && matches!(
                status,
                StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
            );
        self.looks_old.store(old, Ordering::Relaxed);
        let hint = if old {
            " Check its url: neither streamable HTTP nor the older HTTP+SSE transport is served there."
        } else {
            ""
        };
        let (code, data) = (error["code"].as_i64(), error.get("data").cloned());
        Err(ExchangeError::Reason(format!("HTTP {status}. {said}{hint}"), code, data))
    }

    /// The answer to a request from its response; other messages in it go to the peer.
    async fn receive(
        &self,
        id: u64,
        response: Response,
        session: &HttpSession,
    ) -> Result<Vec<u8>, ExchangeError> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.receive_events(id, response, session).await;
        }
        if !kind.starts_with("application/json") {
            return Err(failed(&format!("It answered with {} instead of JSON.", single_line(kind, 100))));
        }
        let body = read_body(response, MAX_MESSAGE_BYTES).await?;
        match self.route_messages(&body, Some(id)).await {
            Some(answer) => Ok(answer),
            None => Err(failed("It gave no answer.")),
        }
    }

    async fn receive_events(
        &self,
        id: u64,
        first: Response,
        session: &HttpSession,
    ) -> Result<Vec<u8>, ExchangeError> {
        let mut cursor = Cursor::default();
        let mut response = Some(first);
        let mut idle = 0;
        loop {
            let before = cursor.events;
            if let Some(response) = response.take()
                && let Some(answer) = self.forward_events(response, Some(id), &mut cursor).await?
            {
                return Ok(answer);
            }
            idle = if cursor.events > before { 0 } else { idle + 1 };
            let can_resume = idle < MAX_RESUMPTIONS && session.stateless.is_none();
            let Some(last) = cursor.last.clone().filter(|_| can_resume) else {
                return Err(failed("It ended the stream before the answer."));
            };
            tokio::time::sleep(cursor.pause(idle)).await;
            if let Ok(resumed) = self.send(Method::GET, session, None, Some(&last)).await
                && is_stream(&resumed)
            {
                response = Some(resumed);
            }
        }
    }

    /// Hands the messages of a stream to the peer until the answer to `id` comes or the stream ends.
    async fn forward_events(
        &self,
        response: Response,
        id: Option<u64>,
        cursor: &mut Cursor,
    ) -> Result<Option<Vec<u8>>, ExchangeError> {
        let mut stream = response.bytes_stream();
        let mut parser = SseParser::with_limit(MAX_MESSAGE_BYTES);
        // A stream that breaks is like one that ends: it may be resumed.
        while let Some(Ok(chunk)) = stream.next().await {
            parser.push(&chunk).map_err(|_| failed("It sent an event that is too large."))?;
            while let Some(event) = parser.next_event() {
                cursor.events += 1;
                let is_message = event.name.is_empty() || event.name == "message";
                let data = if is_message { event.data } else { "" };
                if let Some(answer) = self.route_messages(data.as_bytes(), id).await {
                    return Ok(Some(answer));
                }
            }
            cursor.record(&parser);
        }
        Ok(None)
    }

    /// Hands messages to the peer, except the answer to `id`, which is returned.
    pub(super) async fn route_messages(&self, text: &[u8], id: Option<u64>) -> Option<Vec<u8>> {
        let mut answer = None;
        for message in split_batch(text) {
            if id.is_some_and(|id| is_response_to(&message, id)) {
                answer = Some(message);
            } else {
                self.deliver(message).await;
            }
        }
        answer
    }

    async fn deliver(&self, line: Vec<u8>) {
        // The send fails only when the peer has ended.
        let _ = self.lines.send(line).await;
    }

    fn session(&self) -> MutexGuard<'_, HttpSession> {
        lock(&self.session)
    }
}

/// Reads what the server says by itself, where it offers that, in the current session and those that follow it.
pub(super) async fn listen(exchange: Arc<Exchange>) {
    if exchange.old_endpoint().is_some() {
        return;
    }
    let mut cursor = Cursor::default();
    let mut known = exchange.session().number;
    let mut idle = 0;
    while idle < MAX_RESUMPTIONS {
        let session = exchange.session().clone();
        if std::mem::replace(&mut known, session.number) != session.number {
            cursor = Cursor::default();
        }
        let began = Instant::now();
        let before = cursor.events;
        match exchange.send(Method::GET, &session, None, cursor.last.as_deref()).await {
            Ok(response) if is_stream(&response) => {
                drop(exchange.forward_events(response, None, &mut cursor).await)
            }
            // It offers none, which is its right; a lost session is found out by the next request.
            Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
            _ => {}
        }
        let alive = cursor.events > before || began.elapsed() > ALIVE_AFTER;
        idle = if alive { 0 } else { idle + 1 };
        tokio::time::sleep(cursor.pause(idle).max(Duration::from_secs(1))).await;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
