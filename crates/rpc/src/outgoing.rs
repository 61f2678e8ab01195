//! The sending half that front-ends hold: notifications and outgoing requests.
//!
//! It must not know streams. Invariants: sending never waits; a request settles exactly once, by its answer, its
//! deadline or the end of the connection, and is cancelled at the peer when its future is dropped.

use crate::connection::{Connection, Reply};
use crate::errors::{NotSent, RequestError};
use crate::queue::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// Sends to the peer. Cheap to clone; all clones share one queue.
#[derive(Clone)]
pub struct Outgoing {
    connection: Arc<Connection>,
}

/// An outgoing request under way; a future of its result. Dropping it cancels the request at the peer.
#[must_use = "dropping a request cancels it"]
pub struct Request {
    connection: Arc<Connection>,
    id: u64,
    state: RequestState,
}

enum RequestState {
    Refused(Option<RequestError>),
    Waiting(oneshot::Receiver<Reply>, Pin<Box<Sleep>>),
}

impl Outgoing {
    pub(crate) fn new(connection: Arc<Connection>) -> Outgoing {
        Outgoing { connection }
    }

    /// Queues a notification.
    pub fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<(), NotSent> {
        self.connection
            .call(Class::Notification, None, method, |buffer| serde_json::to_writer(buffer, params))
    }

    /// Queues a notification whose params are JSON already.
    pub fn notify_raw(&self, method: &str, params: &RawValue) -> Result<(), NotSent> {
        self.connection.call(Class::Notification, None, method, |buffer| {
            buffer.extend_from_slice(params.get().as_bytes());
            Ok(())
        })
    }

    /// Queues a request at once and returns the future of its result. It is accepted even while notifications are
    /// refused as full, up to twice the limit. Call it within a tokio runtime.
    pub fn request<P: Serialize + ?Sized>(&self, method: &str, params: &P, deadline: Duration) -> Request {
        let connection = self.connection.clone();
        let Some((id, receiver)) = connection.register_request() else {
            return Request { connection, id: 0, state: RequestState::Refused(Some(RequestError::Closed)) };
        };
        let write = |buffer: &mut Vec<u8>| serde_json::to_writer(buffer, params);
        let state = match connection.call(Class::Request, Some(id), method, write) {
            Ok(()) => RequestState::Waiting(receiver, Box::pin(tokio::time::sleep(deadline))),
            Err(error) => {
                connection.remove_request(id);
                RequestState::Refused(Some(error.into()))
            }
        };
        Request { connection, id, state }
    }

    /// Whether a notification would be accepted now.
    pub fn has_room(&self) -> bool {
        self.connection.queue.has_room()
    }

    /// How many messages wait to be written: more than a few mean that the peer is behind.
    pub fn queued(&self) -> usize {
        self.connection.queue.load().messages
    }

    /// Resolves when at least half of the queue is free; [`NotSent::Closed`] if the connection ends.
    pub async fn ready(&self) -> Result<(), NotSent> {
        self.connection.queue.ready().await
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outgoing").field("queued", &self.queued()).finish_non_exhaustive()
    }
}

impl Request {
    /// The id it was sent with; 0 if it was not sent.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The result as `T`.
    pub async fn decode<T: DeserializeOwned>(self) -> Result<T, RequestError> {
        serde_json::from_str(self.await?.get()).map_err(RequestError::Unexpected)
    }

    fn cancel_at_peer(&self) {
        let (RequestState::Waiting(..), Some(cancel)) = (&self.state, self.connection.options.cancel) else {
            self.connection.remove_request(self.id);
            return;
        };
        if self.connection.remove_request(self.id) {
            // If even this is refused the peer is hopelessly behind, and its answer is ignored anyway.
            let _ = self.connection.call(Class::Request, None, cancel.method, |buffer| {
                serde_json::to_writer(
                    buffer,
                    &std::collections::BTreeMap::from([(cancel.parameter, self.id)]),
                )
            });
        }
    }
}

impl Future for Request {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        match &mut self.state {
            RequestState::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(RequestError::Closed))),
            RequestState::Waiting(receiver, deadline) => {
                if let Poll::Ready(reply) = Pin::new(receiver).poll(context) {
                    self.state = RequestState::Refused(None);
                    return Poll::Ready(reply.unwrap_or(Err(RequestError::Closed)));
                }
                if deadline.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.cancel_at_peer();
                Poll::Ready(Err(RequestError::Deadline))
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.cancel_at_peer();
    }
}
