//! Sending in order while the peer does not read: the queue of a connection refuses notifications when it is full, and
//! then everything waits here.
//!
//! It must not know what messages mean. Invariant: no message overtakes an earlier one. The caller takes no more
//! events while [`Backlog::wait_for_room`] gives a future, and a peer that does not read is soon not read either: that bounds it.

use crate::{Fault, NotSent, Outgoing, Responder};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Sends notifications and answers in the order of the calls.
pub struct Backlog {
    outgoing: Outgoing,
    waiting: VecDeque<Waiting>,
}

enum Waiting {
    Notification(&'static str, Box<RawValue>),
    Answer(Responder, Result<Box<RawValue>, Fault>),
    Marker(oneshot::Sender<()>),
}

impl Backlog {
    pub fn new(outgoing: Outgoing) -> Backlog {
        Backlog { outgoing, waiting: VecDeque::new() }
    }

    /// For requests, which are accepted even while notifications are refused, and so may overtake.
    pub fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// Sends a notification; an error if the params cannot be written as JSON.
    pub fn notify<P: Serialize + ?Sized>(
        &mut self,
        method: &'static str,
        params: &P,
    ) -> Result<(), serde_json::Error> {
        if self.waiting.is_empty() {
            match self.outgoing.notify(method, params) {
                Ok(()) | Err(NotSent::Closed) => return Ok(()),
                Err(NotSent::Unserializable(error)) => return Err(error),
                Err(NotSent::Full) => {}
            }
        }
        self.waiting.push_back(Waiting::Notification(method, to_raw_value(params)?));
        Ok(())
    }

    /// Answers a request of the peer.
    pub fn respond<T: Serialize>(&mut self, responder: Responder, outcome: Result<T, Fault>) {
        if self.waiting.is_empty() {
            return responder.respond(outcome);
        }
        let written = outcome.and_then(|result| {
            to_raw_value(&result)
                .map_err(|error| Fault::internal(format!("The result could not be written as JSON: {error}")))
        });
        self.waiting.push_back(Waiting::Answer(responder, written));
    }

    /// Resolves when every earlier message has been sent; [`NotSent::Closed`] if that will not happen.
    pub fn flushed(&mut self) -> impl Future<Output = Result<(), NotSent>> + Send + use<> {
        let marker = (!self.waiting.is_empty()).then(|| {
            let (sender, marker) = oneshot::channel();
            self.waiting.push_back(Waiting::Marker(sender));
            marker
        });
        async move {
            match marker {
                Some(marker) => marker.await.map_err(|_| NotSent::Closed),
                None => Ok(()),
            }
        }
    }

    /// While the peer does not read: resolves when it is time to [`Backlog::drain`].
    pub fn wait_for_room(&self) -> Option<impl Future<Output = Result<(), NotSent>>> {
        let is_full = !self.waiting.is_empty() || !self.outgoing.has_room();
        is_full.then(|| self.outgoing.ready())
    }

    /// Sends what waits, as far as the peer reads.
    pub fn drain(&mut self) {
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting {
                Waiting::Answer(responder, outcome) => responder.respond(outcome),
                // The receiver may have been dropped.
                Waiting::Marker(marker) => drop(marker.send(())),
                Waiting::Notification(method, params) => {
                    if let Err(NotSent::Full) = self.outgoing.notify_raw(method, &params) {
                        self.waiting.push_front(Waiting::Notification(method, params));
                        return;
                    }
                }
            }
        }
    }
}
