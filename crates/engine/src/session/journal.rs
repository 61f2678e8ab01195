//! The one way a fact leaves the engine: into the store, then to the audience, in the order it was recorded.
//!
//! Invariant: nobody is told a fact before it is on disk, facts are told in the order of their numbers, and what is said
//! between two facts is heard between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::event::EventBody;
use domain::{Event, Fact, Failure, Recorded, SessionId, Store};
use tokio::sync::{mpsc, oneshot};

use crate::session::audience::Audience;

/// Appends that wait together share a commit, up to this many.
const BATCH: usize = 64;

#[derive(Clone)]
pub struct Journal {
    entries: mpsc::UnboundedSender<JournalEntry>,
    newest: Arc<AtomicU64>,
}

#[derive(Default)]
struct JournalEntry {
    facts: Vec<Fact>,
    /// Told after the facts, and not kept.
    said: Option<EventBody>,
    done: Option<oneshot::Sender<Result<(), Failure>>>,
}

/// Resolves when the facts are on disk and told.
pub struct Recording {
    receiver: oneshot::Receiver<Result<(), Failure>>,
    over: bool,
}

impl Journal {
    pub fn start(session: SessionId, store: Arc<dyn Store>, audience: Audience, newest: u64) -> Self {
        let (entries, receiver) = mpsc::unbounded_channel();
        let newest = Arc::new(AtomicU64::new(newest));
        let writer = Writer { session, store, audience, newest: newest.clone() };
        tokio::spawn(writer.run(receiver));
        Self { entries, newest }
    }

    /// Records facts together. The recording may be awaited or dropped; the order of calls is the order of facts.
    pub fn record(&self, facts: Vec<Fact>) -> Recording {
        let (done, receiver) = oneshot::channel();
        // A failed send drops `done`, which the recording reports.
        let _ = self.entries.send(JournalEntry { facts, done: Some(done), said: None });
        Recording { receiver, over: false }
    }

    /// Records without anybody waiting.
    pub fn note(&self, fact: Fact) {
        let _ = self.entries.send(JournalEntry { facts: vec![fact], ..JournalEntry::default() });
    }

    /// Tells without keeping it, after everything that was recorded before.
    pub fn publish(&self, body: EventBody) {
        let _ = self.entries.send(JournalEntry { said: Some(body), ..JournalEntry::default() });
    }

    /// Everything recorded before is on disk.
    pub async fn flush(&self) -> Result<(), Failure> {
        self.record(Vec::new()).done().await
    }

    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    pub fn set_newest(&self, number: u64) {
        self.newest.fetch_max(number, Ordering::AcqRel);
    }
}

impl Recording {
    /// Without waiting.
    pub fn is_done(&mut self) -> bool {
        self.over =
            self.over || !matches!(self.receiver.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        self.over
    }

    pub async fn done(self) -> Result<(), Failure> {
        if self.over {
            return Ok(());
        }
        self.receiver.await.unwrap_or_else(|_| Err(Failure::closed()))
    }
}

struct Writer {
    session: SessionId,
    store: Arc<dyn Store>,
    audience: Audience,
    newest: Arc<AtomicU64>,
}

impl Writer {
    async fn run(self, mut receiver: mpsc::UnboundedReceiver<JournalEntry>) {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            let sizes: Vec<usize> = batch.iter().map(|entry| entry.facts.len()).collect();
            let facts: Vec<Fact> =
                batch.iter_mut().flat_map(|entry| std::mem::take(&mut entry.facts)).collect();
            let (recorded, outcome) = match self.write(facts).await {
                Ok(recorded) => (recorded, Ok(())),
                Err(failure) => (Vec::new(), Err(failure)),
            };
            let mut recorded = recorded.into_iter();
            for (entry, size) in batch.iter_mut().zip(sizes) {
                for fact in recorded.by_ref().take(size) {
                    self.audience.publish(Event::fact(self.session.clone(), Arc::new(fact)));
                }
                if let Some(body) = entry.said.take() {
                    self.audience.publish(Event { session: Some(self.session.clone()), body });
                }
            }
            for done in batch.drain(..).filter_map(|entry| entry.done) {
                let _ = done.send(outcome.clone());
            }
        }
    }

    async fn write(&self, facts: Vec<Fact>) -> Result<Vec<Recorded>, Failure> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        match self.store.append(&self.session, facts).await {
            Ok(recorded) => {
                if let Some(last) = recorded.last() {
                    self.newest.store(last.number, Ordering::Release);
                }
                Ok(recorded)
            }
            Err(failure) => {
                tracing::error!(session = %self.session, %failure, "the journal cannot be written");
                // Told each time: whoever attached since must learn of it too.
                let body = EventBody::Lost { failure: failure.clone() };
                self.audience.publish(Event { session: Some(self.session.clone()), body });
                Err(failure)
            }
        }
    }
}
