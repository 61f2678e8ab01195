//! Reading a response: its body within a limit, the place where a stream can be resumed, errors as sentences.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use rpc::sse::SseParser;
use serde_json::Value;

use crate::text::single_line;

const MIN_RETRY_WAIT: Duration = Duration::from_millis(100);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);

/// Why there is no answer.
pub(super) enum ExchangeError {
    SessionLost,
    /// A sentence, and the code and data that the server gave with it.
    Reason(String, Option<i64>, Option<Value>),
}

/// Where a stream is to be resumed.
#[derive(Default)]
pub(super) struct Cursor {
    pub last: Option<String>,
    pub retry: Option<Duration>,
    /// Events seen so far.
    pub events: u64,
}

impl Cursor {
    pub(super) fn record(&mut self, parser: &SseParser) {
        if let Some(id) = parser.last_event_id() {
            self.last = Some(id.to_owned());
        }
        if let Some(millis) = parser.retry() {
            self.retry = Some(Duration::from_millis(millis).min(MAX_RETRY_WAIT));
        }
    }

    /// The wait that the server asked for, doubled for each attempt without an event.
    pub(super) fn pause(&self, idle: u32) -> Duration {
        let pause = self.retry.unwrap_or(MIN_RETRY_WAIT) * 2u32.pow(idle.min(8));
        pause.clamp(MIN_RETRY_WAIT, MAX_RETRY_WAIT)
    }
}

pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

pub(super) async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, ExchangeError> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk =
            chunk.map_err(|error| failed(&format!("Its answer broke off: {}.", root_cause(&error))))?;
        if body.len() + chunk.len() > limit {
            return Err(failed("Its answer is too large."));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The same with the reason as a sentence.
pub(crate) async fn read_limited(response: Response, limit: usize) -> Result<Vec<u8>, String> {
    read_body(response, limit).await.map_err(|error| match error {
        ExchangeError::Reason(reason, ..) => reason,
        ExchangeError::SessionLost => String::new(),
    })
}

pub(super) fn failed(reason: &str) -> ExchangeError {
    ExchangeError::Reason(reason.to_owned(), None, None)
}

/// The innermost cause, which is the one that helps; never the address, which may hold a key.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if cause.is::<reqwest::Error>() {
        "the request failed".to_owned()
    } else {
        single_line(&cause.to_string(), 200)
    }
}
