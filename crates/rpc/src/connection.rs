//! The state that the reader, the writer, every `Outgoing` and every `Responder` of one connection share.
//!
//! It must not read or write streams. Invariants: no lock is held while another is taken or while foreign code runs;
//! the first reason of an end stays, except that a mere end of input may be followed by a final one.

use crate::cancellation::Cancellation;
use crate::errors::{NotSent, RequestError};
use crate::message::{Fault, Id};
use crate::options::PeerOptions;
use crate::queue::{Class, Queue};
use serde::Serialize;
use serde_json::value::RawValue;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed its side. What is queued can still be written: [`Peer::close`](crate::Peer::close).
    Input,
    /// Reading or writing failed.
    Broken(std::io::ErrorKind),
    /// The peer sent requests and did not read the answers for the stall limit.
    Stalled,
    /// This side closed it.
    Closed,
}

pub(crate) type Reply = Result<Box<RawValue>, RequestError>;

pub(crate) struct Connection {
    pub options: PeerOptions,
    pub queue: Queue,
    pub ended: watch::Sender<Option<End>>,
    /// How many requests of the peer are unanswered.
    pub unanswered: watch::Sender<usize>,
    running: Mutex<HashMap<Id, Cancellation>>,
    /// Outgoing requests; `None` once no answer can come.
    pending: Mutex<Option<HashMap<u64, oneshot::Sender<Reply>>>>,
    last_request: AtomicU64,
}

thread_local! {
    /// Where messages are serialized before they are copied into the queue.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

const SCRATCH_KEPT: usize = 64 << 10;

impl Connection {
    pub(crate) fn new(options: PeerOptions) -> Connection {
        Connection {
            queue: Queue::new(options.queue_messages, options.queue_bytes),
            options,
            ended: watch::Sender::new(None),
            unanswered: watch::Sender::new(0),
            running: Mutex::default(),
            pending: Mutex::new(Some(HashMap::new())),
            last_request: AtomicU64::new(0),
        }
    }

    /// Queues a notification, or a request if there is an id. `params` writes their JSON.
    pub(crate) fn call(
        &self,
        class: Class,
        id: Option<u64>,
        method: &str,
        params: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<(), NotSent> {
        self.send(class, |buffer| {
            if let Some(id) = id {
                buffer.extend_from_slice(b"\"id\":");
                serde_json::to_writer(&mut *buffer, &id)?;
                buffer.push(b',');
            }
            buffer.extend_from_slice(b"\"method\":");
            serde_json::to_writer(&mut *buffer, method)?;
            let before = buffer.len();
            buffer.extend_from_slice(b",\"params\":");
            let start = buffer.len();
            params(buffer)?;
            // JSON-RPC 2.0 has no null params; the protocol without a version member always writes them.
            if self.options.version_member && &buffer[start..] == b"null" {
                buffer.truncate(before);
            }
            Ok(())
        })
    }

    /// Queues an answer. One that cannot be serialized becomes -32603.
    pub(crate) fn answer<T: Serialize + ?Sized>(&self, id: Option<&Id>, outcome: Result<&T, &Fault>) {
        let sent = self.send(Class::Answer, |buffer| {
            buffer.extend_from_slice(b"\"id\":");
            buffer.extend_from_slice(id.map_or("null", Id::as_json).as_bytes());
            match outcome {
                Ok(result) => {
                    buffer.extend_from_slice(b",\"result\":");
                    serde_json::to_writer(buffer, result)
                }
                Err(fault) => {
                    buffer.extend_from_slice(b",\"error\":");
                    serde_json::to_writer(buffer, fault)
                }
            }
        });
        if let (Err(NotSent::Unserializable(error)), Ok(_)) = (sent, outcome) {
            self.answer_error(
                id,
                &Fault::internal(format!("The result could not be written as JSON: {error}")),
            );
        }
    }

    pub(crate) fn answer_error(&self, id: Option<&Id>, fault: &Fault) {
        self.answer::<()>(id, Err(fault));
    }

    fn send(
        &self,
        class: Class,
        members: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<(), NotSent> {
        // Taken, not borrowed: a Serialize implementation may itself send.
        let mut buffer = SCRATCH.take();
        let framing = self.options.framing;
        framing.open(&mut buffer);
        buffer.extend_from_slice(if self.options.version_member { b"{\"jsonrpc\":\"2.0\"," } else { b"{" });
        let sent = members(&mut buffer).map_err(NotSent::Unserializable).and_then(|()| {
            buffer.push(b'}');
            let start = framing.close(&mut buffer);
            self.queue.push(class, &mut buffer, start)
        });
        if buffer.capacity() <= SCRATCH_KEPT {
            SCRATCH.set(buffer);
        }
        sent
    }

    /// Registers an outgoing request and gives the receiver of its reply; `None` if a reply can no longer come.
    pub(crate) fn register_request(&self) -> Option<(u64, oneshot::Receiver<Reply>)> {
        let (sender, receiver) = oneshot::channel();
        let id = self.last_request.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.pending).as_mut()?.insert(id, sender);
        Some((id, receiver))
    }

    /// Removes an outgoing request; whether it was still pending.
    pub(crate) fn remove_request(&self, id: u64) -> bool {
        lock(&self.pending).as_mut().is_some_and(|pending| pending.remove(&id).is_some())
    }

    /// Completes the outgoing request with this id; whether there was one. Ids that came back as strings count too.
    pub(crate) fn complete_request(&self, id: &Id, reply: impl FnOnce() -> Reply) -> bool {
        let number = id.as_json().trim_matches('"').parse::<u64>();
        let sender = number.ok().and_then(|number| lock(&self.pending).as_mut()?.remove(&number));
        // The receiver may have been dropped.
        sender.map(|sender| sender.send(reply())).is_some()
    }

    pub(crate) fn begin_request(&self, id: &Id) -> Cancellation {
        let cancellation = Cancellation::new();
        self.unanswered.send_modify(|count| *count += 1);
        lock(&self.running).insert(id.clone(), cancellation.clone());
        cancellation
    }

    /// Called once for each `begin`.
    pub(crate) fn finish_request(&self, id: &Id, cancellation: &Cancellation) {
        {
            let mut running = lock(&self.running);
            // A careless peer may have used the id twice; the other one is still running then.
            if running.get(id).is_some_and(|current| current.is_same(cancellation)) {
                running.remove(id);
            }
        }
        self.unanswered.send_modify(|count| *count = count.saturating_sub(1));
    }

    pub(crate) fn cancel(&self, id: &Id) {
        let cancellation = lock(&self.running).get(id).cloned();
        if let Some(cancellation) = cancellation {
            cancellation.cancel();
        }
    }

    /// Records the end. After anything but an end of input nothing more is read or written.
    pub(crate) fn end(&self, end: End) {
        let changed = self.ended.send_if_modified(|current| {
            let changes = current.is_none_or(|current| current == End::Input && end != End::Input);
            if changes {
                *current = Some(end);
            }
            changes
        });
        if !changed {
            return;
        }
        drop(lock(&self.pending).take());
        if end != End::Input {
            self.queue.discard();
            let running = std::mem::take(&mut *lock(&self.running));
            running.values().for_each(Cancellation::cancel);
        }
    }

    /// Resolves when nothing more is to be read or written.
    pub(crate) async fn stopped(&self) {
        let mut ended = self.ended.subscribe();
        // It fails only if the sender is gone, and `self` holds it.
        let _ = ended.wait_for(|end| end.is_some_and(|end| end != End::Input)).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
