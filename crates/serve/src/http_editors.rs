//! Editors at other places by plain requests: the streamable HTTP half of ACP's remote transport (docs/protocols/acp.md).
//!
//! Invariants: nothing is served before the token is accepted; a connection is used by its own caller only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use remote::CONNECTION_ID;
use serde_json::{Value, json};
use web::ApiError;

use crate::http_connection::{HttpConnection, Route};
use crate::protocol::{self, Endpoint};
use crate::sockets::{Sockets, bearer};

const SESSION_ID: &str = "acp-session-id";
const INITIALIZE: &str = "initialize";
/// Its response goes to the connection, although it names a session.
const LOAD: &str = "session/load";
const EVENT_STREAM: &str = "text/event-stream";
/// A prompt may carry pictures.
pub(crate) const LARGEST_MESSAGE: usize = 16 << 20;
/// Longest id of a connection, session or request.
const LONGEST_ID: usize = 1024;

type Place = State<(Sockets, Endpoint)>;

/// Whether a `GET` asks for a stream of events, and not for a WebSocket.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    !headers.contains_key(header::UPGRADE) && accepts.to_ascii_lowercase().contains(EVENT_STREAM)
}

/// A message of the client.
pub(crate) async fn post(State((sockets, endpoint)): Place, request: Request) -> Response {
    let posted = async {
        let (head, body) = request.into_parts();
        let headers = head.headers;
        // Nothing is read for a program without a token.
        let entrance = sockets.admit(bearer(&headers)?).await?;
        let kind =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(ApiError::new(status, "invalid", "The message is not application/json."));
        }
        let body = axum::body::to_bytes(body, LARGEST_MESSAGE).await;
        let body = body.map_err(|_| {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "tooLarge", "The message is too large.")
        })?;
        let message: Value =
            serde_json::from_slice(&body).map_err(|_| ApiError::invalid("The message is not JSON."))?;
        if message.is_array() {
            let error = json!({"code": -32600, "message": "Batches are not supported."});
            let mut response = web::json(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return Ok(response);
        }
        if !message.is_object() {
            return Err(ApiError::invalid("The message is no object."));
        }
        match (one(&headers, CONNECTION_ID)?, message["method"] == INITIALIZE) {
            (None, true) => initialize(&sockets, endpoint, entrance, &message).await,
            (Some(_), true) => Err(ApiError::invalid("This connection is initialized already.")),
            (None, false) => Err(ApiError::invalid("The header Acp-Connection-Id is missing.")),
            (Some(id), false) => {
                let connection = find(&sockets, endpoint, &id, &entrance.caller)?;
                let route = route_of(&connection, &message, one(&headers, SESSION_ID)?)?;
                connection.send(&message, route).await.map_err(|_| gone())?;
                Ok(StatusCode::ACCEPTED.into_response())
            }
        }
    };
    posted.await.unwrap_or_else(IntoResponse::into_response)
}

/// The messages of the connection, or of one of its sessions, as they come.
pub(crate) async fn events(State((sockets, endpoint)): Place, headers: HeaderMap) -> Response {
    let opened = async {
        let entrance = sockets.admit(bearer(&headers)?).await?;
        let id = one(&headers, CONNECTION_ID)?;
        let id = id.ok_or_else(|| ApiError::invalid("The header Acp-Connection-Id is missing."))?;
        let connection = find(&sockets, endpoint, &id, &entrance.caller)?;
        let reader = connection.read(one(&headers, SESSION_ID)?).ok_or_else(|| {
            ApiError::new(StatusCode::CONFLICT, "taken", "This stream has a reader already.")
        })?;
        let messages = futures_util::stream::unfold(reader, |reader| async move {
            let message = reader.next().await?;
            Some((("message", message), reader))
        });
        let mut response = web::events(messages);
        web::set(&mut response, header::CACHE_CONTROL, "no-cache");
        Ok(response)
    };
    opened.await.unwrap_or_else(|error: ApiError| error.into_response())
}

/// The client is done.
pub(crate) async fn delete(State((sockets, endpoint)): Place, headers: HeaderMap) -> Response {
    let ended = async {
        let entrance = sockets.admit(bearer(&headers)?).await?;
        let id = one(&headers, CONNECTION_ID)?;
        let id = id.ok_or_else(|| ApiError::invalid("The header Acp-Connection-Id is missing."))?;
        find(&sockets, endpoint, &id, &entrance.caller)?.end();
        Ok(StatusCode::ACCEPTED.into_response())
    };
    ended.await.unwrap_or_else(|error: ApiError| error.into_response())
}

/// Opens a connection; the answer to `initialize` is the body of the response.
async fn initialize(
    sockets: &Sockets,
    endpoint: Endpoint,
    entrance: crate::sockets::Entrance,
    message: &Value,
) -> Result<Response, ApiError> {
    if message.get("id").is_none_or(Value::is_null) {
        return Err(ApiError::invalid("`initialize` needs an id."));
    }
    let failed = |error: std::io::Error| ApiError::internal(format!("The protocol did not answer: {error}."));
    let (running, messages) = protocol::start(endpoint, entrance.engine).map_err(failed)?;
    let opened = HttpConnection::open(running, messages, entrance.ended, message.to_string());
    let (connection, answer) = opened.await.map_err(failed)?;
    let id = match sockets.add_http(entrance.caller, endpoint.path, connection.clone()) {
        Ok(id) => id,
        Err(error) => {
            connection.end();
            return Err(error);
        }
    };
    let mut response = web::file(answer.into(), "application/json");
    web::set(&mut response, HeaderName::from_static(CONNECTION_ID), &id);
    Ok(response)
}

fn find(
    sockets: &Sockets,
    endpoint: Endpoint,
    id: &str,
    caller: &str,
) -> Result<Arc<HttpConnection>, ApiError> {
    sockets.find_http(id, caller, endpoint.path).ok_or_else(gone)
}

fn gone() -> ApiError {
    ApiError::not_found("There is no such connection.").hint("Send `initialize` without its id.")
}

/// A header that may be there once.
fn one(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.len() <= LONGEST_ID && !text.is_empty());
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text.to_owned())),
        _ => Err(ApiError::invalid(format!("The header {name} cannot be used."))),
    }
}

/// Where the answer to a message goes. A message about a session names it in the header too.
fn route_of(connection: &HttpConnection, message: &Value, header: Option<String>) -> Result<Route, ApiError> {
    let named = match message.get("method") {
        Some(_) => message["params"]["sessionId"].as_str().map(str::to_owned),
        None => connection.session_of_response(&message["id"]).flatten(),
    };
    if let Some(named) = named {
        match &header {
            None => return Err(ApiError::invalid("The header Acp-Session-Id is missing.")),
            Some(header) if *header != named => {
                return Err(ApiError::invalid("The header Acp-Session-Id names another session."));
            }
            Some(_) => {}
        }
    }
    Ok(header.filter(|_| message["method"] != LOAD))
}
