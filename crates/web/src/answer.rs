//! Requests and answers of routes: JSON in and out, errors with a next step, streams of events.
//!
//! Invariant: no answer is kept by the browser, and its type is never guessed.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How often a quiet stream shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Why a request was not done, in words that a page can show.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub status: StatusCode,
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
    pub data: Option<Box<Value>>,
}

impl ApiError {
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), hint: None, data: None }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "notFound", message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
            .hint("Open a new link: press Enter where the command runs, or start it again.")
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// As it is in an answer.
    pub fn to_value(&self) -> Value {
        let mut error = json!({"kind": self.kind, "message": self.message});
        if let Some(hint) = &self.hint {
            error["hint"] = json!(hint);
        }
        if let Some(data) = &self.data {
            error["data"] = (**data).clone();
        }
        error
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, json(&json!({"error": self.to_value()}))).into_response()
    }
}

/// The JSON body of a request; unknown members are ignored.
pub struct Input<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Input<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        // The guard has read the body within its limit.
        let bytes = axum::body::to_bytes(request.into_body(), usize::MAX)
            .await
            .map_err(|_| ApiError::invalid("The body of the request could not be read."))?;
        serde_json::from_slice(&bytes)
            .map(Input)
            .map_err(|error| ApiError::invalid(format!("The body of the request cannot be used: {error}.")))
    }
}

pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => file(bytes.into(), "application/json"),
        Err(_) => ApiError::internal("The answer could not be written.").into_response(),
    }
}

pub fn html(text: impl Into<Bytes>) -> Response {
    file(text.into(), "text/html; charset=utf-8")
}

pub fn file(bytes: Bytes, content_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    set(&mut response, header::CONTENT_TYPE, content_type);
    response
}

/// A stream of server-sent events, each a name and its JSON, until the stream ends.
pub fn events(stream: impl Stream<Item = (&'static str, String)> + Send + 'static) -> Response {
    let stream = Box::pin(stream);
    let pieces = futures_util::stream::unfold(stream, |mut stream| async move {
        let piece = match tokio::time::timeout(HEARTBEAT, stream.next()).await {
            Ok(Some((name, data))) => format!("event: {name}\ndata: {data}\n\n"),
            Ok(None) => return None,
            Err(_) => ":\n\n".to_owned(),
        };
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(piece)), stream))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    set(&mut response, header::CONTENT_TYPE, "text/event-stream");
    response
}

pub fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
