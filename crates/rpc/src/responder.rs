//! The duty to answer one request of the peer, and its cancellation.
//!
//! Invariant: exactly one answer per request, also when a task is aborted or panics.

use crate::cancellation::Cancellation;
use crate::connection::Connection;
use crate::message::{Fault, Id};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Answers one request, once, from anywhere. Dropped unanswered it answers -32603.
#[must_use = "a dropped responder answers with an internal error"]
pub struct Responder {
    connection: Arc<Connection>,
    id: Id,
    cancellation: Cancellation,
    answered: bool,
}

impl Responder {
    pub(crate) fn new(connection: Arc<Connection>, id: Id) -> Responder {
        let cancellation = connection.begin_request(&id);
        Responder { connection, id, cancellation, answered: false }
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Answers with a result; `()` is written as null.
    pub fn succeed<T: Serialize + ?Sized>(self, result: &T) {
        self.answer(Ok(result));
    }

    pub fn fail(self, fault: Fault) {
        self.answer::<()>(Err(&fault));
    }

    pub fn respond<T: Serialize>(self, outcome: Result<T, Fault>) {
        self.answer(outcome.as_ref());
    }

    pub fn method_not_found(self, method: &str) {
        self.fail(Fault::method_not_found(method));
    }

    /// Resolves when the peer cancelled the request or the connection is gone. The answer is still owed.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// The same as a value, for the task that does the work.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    fn answer<T: Serialize + ?Sized>(mut self, outcome: Result<&T, &Fault>) {
        self.connection.answer(Some(&self.id), outcome);
        // After it is queued: should serializing panic, the drop still answers.
        self.answered = true;
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Responder").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            self.connection
                .answer_error(Some(&self.id), &Fault::internal("The request ended without an answer."));
        }
        self.connection.finish_request(&self.id, &self.cancellation);
    }
}
