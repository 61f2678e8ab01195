//! The one outgoing queue of a connection: frames in call order, bounded in messages and bytes, one writer.
//!
//! It must not know what a frame means. Invariants: a push never waits; what was handed to the writer counts until it is
//! written; small frames lie one after another in two buffers that are swapped, so that sending allocates nothing.

use crate::errors::NotSent;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

pub(crate) struct Queue {
    limit: Load,
    state: Mutex<QueueState>,
    /// Notified when the load falls under a mark, and at the end.
    load_fell: Notify,
}

/// How firmly a frame is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// From the limit on.
    Notification,
    /// From twice the limit on.
    Request,
    /// Never: the peer is not read meanwhile.
    Answer,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Load {
    pub messages: usize,
    pub bytes: usize,
}

#[derive(Default)]
struct QueueState {
    waiting: Batch,
    /// Waiting frames and those with the writer.
    load: Load,
    closed: bool,
    writer: Option<Waker>,
}

/// Frames to be written, each in one write.
#[derive(Default)]
pub(crate) struct Batch {
    small: Vec<u8>,
    frames: Vec<Queued>,
}

enum Queued {
    /// The next so many bytes of `small`.
    Small(usize),
    /// A frame of its own buffer, from this index on.
    Large(Vec<u8>, usize),
}

const LARGE: usize = 16 << 10;
const KEPT: usize = 256 << 10;

impl Load {
    fn fits(self, limit: Load) -> bool {
        self.messages < limit.messages && self.bytes < limit.bytes
    }

    fn twice(self) -> Load {
        Load { messages: self.messages.saturating_mul(2), bytes: self.bytes.saturating_mul(2) }
    }

    fn half(self) -> Load {
        Load { messages: self.messages.div_ceil(2), bytes: self.bytes.div_ceil(2) }
    }
}

impl Queue {
    pub(crate) fn new(messages: usize, bytes: usize) -> Queue {
        let limit = Load { messages: messages.max(1), bytes: bytes.max(1) };
        Queue { limit, state: Mutex::default(), load_fell: Notify::new() }
    }

    /// Queues the frame that lies in `buffer` from `start` on. A large one takes the buffer with it.
    pub(crate) fn push(&self, class: Class, buffer: &mut Vec<u8>, start: usize) -> Result<(), NotSent> {
        let length = buffer.len() - start;
        if length > LARGE {
            buffer.shrink_to_fit();
        }
        let mut state = self.state();
        if state.closed {
            return Err(NotSent::Closed);
        }
        let refused = match class {
            Class::Notification => !state.load.fits(self.limit),
            Class::Request => !state.load.fits(self.limit.twice()),
            Class::Answer => false,
        };
        if refused {
            return Err(NotSent::Full);
        }
        state.load.messages += 1;
        state.load.bytes += length;
        if length > LARGE {
            state.waiting.frames.push(Queued::Large(std::mem::take(buffer), start));
        } else {
            state.waiting.small.extend_from_slice(&buffer[start..]);
            state.waiting.frames.push(Queued::Small(length));
        }
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(())
    }

    /// For the writer: swaps everything that waits into the empty `batch`. `false`: closed and nothing is left.
    pub(crate) fn poll_batch(&self, context: &mut Context<'_>, batch: &mut Batch) -> Poll<bool> {
        let mut state = self.state();
        if !state.waiting.frames.is_empty() {
            std::mem::swap(&mut state.waiting, batch);
            return Poll::Ready(true);
        }
        if state.closed {
            return Poll::Ready(false);
        }
        state.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// For the writer: these frames are out.
    pub(crate) fn written(&self, written: Load) {
        let mut state = self.state();
        let before = state.load;
        state.load.messages = before.messages.saturating_sub(written.messages);
        state.load.bytes = before.bytes.saturating_sub(written.bytes);
        let after = state.load;
        drop(state);
        let crossed = |mark: Load| !before.fits(mark) && after.fits(mark);
        if crossed(self.limit.half()) || crossed(self.limit.twice()) {
            self.load_fell.notify_waiters();
        }
    }

    pub(crate) fn load(&self) -> Load {
        self.state().load
    }

    pub(crate) fn has_room(&self) -> bool {
        self.load().fits(self.limit)
    }

    pub(crate) fn is_overloaded(&self) -> bool {
        !self.load().fits(self.limit.twice())
    }

    /// Resolves when half of the queue is free again; `Err` once it is closed.
    pub(crate) async fn ready(&self) -> Result<(), NotSent> {
        self.until(self.limit.half()).await
    }

    /// Resolves when the peer may be read again, or at the end.
    pub(crate) async fn until_not_overloaded(&self) {
        let _ = self.until(self.limit.twice()).await;
    }

    /// Takes nothing more; what waits is still written.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let writer = state.writer.take();
        drop(state);
        self.load_fell.notify_waiters();
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Closes and forgets what waits.
    pub(crate) fn discard(&self) {
        self.state().waiting = Batch::default();
        self.close();
    }

    async fn until(&self, mark: Load) -> Result<(), NotSent> {
        loop {
            let mut load_fell = std::pin::pin!(self.load_fell.notified());
            load_fell.as_mut().enable();
            {
                let state = self.state();
                if state.closed {
                    return Err(NotSent::Closed);
                }
                if state.load.fits(mark) {
                    return Ok(());
                }
            }
            load_fell.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// The frames in order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        self.frames.iter().map(move |frame| match frame {
            Queued::Small(length) => {
                at += length;
                &self.small[at - length..at]
            }
            Queued::Large(buffer, start) => &buffer[*start..],
        })
    }

    /// Empties it, keeping only a modest buffer.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.small.clear();
        self.small.shrink_to(KEPT);
        self.frames.shrink_to(KEPT / size_of::<Queued>());
    }
}
