//! One request to the child, from the queue to its answer, and the error that it may end with.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::method::Method;
use super::policy;

/// Requests that may wait; the next one is refused with -32004.
pub const MOST_WAITING: usize = 100;

const RATE_LIMITED: i64 = -32004;
const INTERNAL: i64 = -32603;

/// A part of generated code. Index 0 begins anew, also after a retry.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    pub index: u64,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CliError {
    pub kind: CliErrorKind,
    pub message: String,
    pub data: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliErrorKind {
    /// The child answered with this code, or the queue was full (-32004).
    Code(i64),
    TimedOut,
    Crashed,
    Unavailable,
}

impl CliError {
    pub(crate) fn new(kind: CliErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(CliErrorKind::Unavailable, message)
    }

    pub(crate) fn queue_full() -> Self {
        let message = format!("{MOST_WAITING} requests wait already; try again when some are done.");
        Self::new(CliErrorKind::Code(RATE_LIMITED), message)
    }

    pub fn code(&self) -> Option<i64> {
        match self.kind {
            CliErrorKind::Code(code) => Some(code),
            CliErrorKind::TimedOut | CliErrorKind::Crashed | CliErrorKind::Unavailable => None,
        }
    }

    /// Whether another try may succeed.
    fn is_passing(&self) -> bool {
        matches!(self.kind, CliErrorKind::TimedOut | CliErrorKind::Code(RATE_LIMITED | INTERNAL))
    }

    /// The error member of an answer.
    pub(crate) fn from_answer(error: &Value) -> Self {
        let code = error["code"].as_i64().unwrap_or(INTERNAL);
        let message = error["message"].as_str().unwrap_or("The request failed.").to_owned();
        Self { kind: CliErrorKind::Code(code), message, data: error.get("data").cloned() }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

pub(crate) struct Request {
    pub method: Method,
    pub params: Value,
    pub chunks: Option<mpsc::UnboundedSender<Chunk>>,
    answer: Option<oneshot::Sender<Result<Value, CliError>>>,
    tries: usize,
    /// It was in a child that crashed.
    was_resent: bool,
    pub next_chunk: u64,
}

impl Request {
    pub(crate) fn new(
        method: Method,
        params: Value,
        chunks: Option<mpsc::UnboundedSender<Chunk>>,
        answer: oneshot::Sender<Result<Value, CliError>>,
    ) -> Self {
        Self { answer: Some(answer), ..Self::unanswered(method, params, chunks) }
    }

    /// A request of the client itself.
    pub(crate) fn unanswered(
        method: Method,
        params: Value,
        chunks: Option<mpsc::UnboundedSender<Chunk>>,
    ) -> Self {
        Self { method, params, chunks, answer: None, tries: 0, was_resent: false, next_chunk: 0 }
    }

    /// Nobody waits any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    pub(crate) fn finish(mut self, outcome: Result<Value, CliError>) {
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(outcome);
        }
    }

    /// The pause before the next try, if there is one more.
    pub(crate) fn pause_before_retry(&mut self, error: &CliError) -> Option<Duration> {
        let pause = *policy::of(self.method).pauses.get(self.tries).filter(|_| error.is_passing())?;
        self.tries += 1;
        self.next_chunk = 0;
        Some(pause)
    }

    /// Whether it may be sent to the child after the one that crashed.
    pub(crate) fn may_be_resent(&mut self) -> bool {
        self.next_chunk = 0;
        !std::mem::replace(&mut self.was_resent, true)
    }
}
