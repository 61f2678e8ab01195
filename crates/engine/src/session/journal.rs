//! From a commit to the disk and then to the audience, in the order of the commits.
//!
//! Must not know what facts mean. Invariants: no fact is published before it is on disk; facts are published in the
//! order of their numbers, and other events between the facts they were published between; after an append failed,
//! nothing more is written, so that the numbers in the store never have a gap.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use domain::event::EventBody;
use domain::{Event, Fact, Failure, Recorded, SessionId, Store};
use tokio::sync::{mpsc, oneshot};

use super::audience::Audience;

/// Appends that wait together share a commit, up to this many.
const BATCH: usize = 64;

pub struct Journal {
    entries: mpsc::UnboundedSender<JournalEntry>,
    status: Arc<Status>,
}

/// Where the writer has come to.
struct Status {
    published: AtomicU64,
    failure: OnceLock<Failure>,
}

enum JournalEntry {
    /// `last` is the number of the last fact.
    Append {
        first: u64,
        last: u64,
        facts: Vec<Fact>,
        done: oneshot::Sender<Result<(), Failure>>,
    },
    Publish(EventBody),
}

/// Facts on their way to the disk. May be dropped: they get there all the same.
pub struct PendingCommit {
    receiver: oneshot::Receiver<Result<(), Failure>>,
    outcome: Option<Result<(), Failure>>,
}

impl Journal {
    /// Writes for a session whose newest fact on disk has the number `newest`.
    pub fn start(session: SessionId, store: Arc<dyn Store>, audience: Audience, newest: u64) -> Self {
        let (entries, receiver) = mpsc::unbounded_channel();
        let status = Arc::new(Status { published: AtomicU64::new(newest), failure: OnceLock::new() });
        let writer = Writer { session, store, audience, status: status.clone() };
        tokio::spawn(writer.run(receiver));
        Self { entries, status }
    }

    /// `first` is the number of the first fact. Without facts it resolves after everything appended before.
    pub fn append(&self, first: u64, facts: Vec<Fact>) -> PendingCommit {
        let (done, receiver) = oneshot::channel();
        // A failed send drops `done`, which the pending commit reports.
        let last = (first + facts.len() as u64).saturating_sub(1);
        let _ = self.entries.send(JournalEntry::Append { first, last, facts, done });
        PendingCommit { receiver, outcome: None }
    }

    pub fn publish(&self, body: EventBody) {
        let _ = self.entries.send(JournalEntry::Publish(body));
    }

    pub fn published(&self) -> u64 {
        self.status.published.load(Ordering::Acquire)
    }

    /// Another process wrote on, up to this number.
    pub fn skip_to(&self, number: u64) {
        self.status.published.fetch_max(number, Ordering::AcqRel);
    }

    pub fn failure(&self) -> Option<Failure> {
        self.status.failure.get().cloned()
    }
}

impl PendingCommit {
    /// How it ended, without waiting; `None` while it is under way.
    pub fn outcome(&mut self) -> Option<&Result<(), Failure>> {
        if self.outcome.is_none() {
            self.outcome = match self.receiver.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(oneshot::error::TryRecvError::Empty) => None,
                Err(oneshot::error::TryRecvError::Closed) => Some(Err(Failure::closed())),
            };
        }
        self.outcome.as_ref()
    }

    /// Waits until the facts are on disk and published.
    pub async fn on_disk(self) -> Result<(), Failure> {
        match self.outcome {
            Some(outcome) => outcome,
            None => self.receiver.await.unwrap_or_else(|_| Err(Failure::closed())),
        }
    }
}

struct Writer {
    session: SessionId,
    store: Arc<dyn Store>,
    audience: Audience,
    status: Arc<Status>,
}

impl Writer {
    async fn run(self, mut receiver: mpsc::UnboundedReceiver<JournalEntry>) {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            let (mut expected, mut facts) = (None, Vec::new());
            for entry in &mut batch {
                if let JournalEntry::Append { first, facts: own, .. } = entry
                    && !own.is_empty()
                {
                    expected.get_or_insert(*first);
                    facts.append(own);
                }
            }
            let written = self.write(expected, facts).await;
            self.settle(batch.drain(..), written);
        }
    }

    /// Publishes what was written, entry by entry, and then answers those that wait.
    fn settle(&self, batch: impl Iterator<Item = JournalEntry>, written: Result<Vec<Recorded>, Failure>) {
        let (mut recorded, outcome) = match written {
            Ok(recorded) => (recorded.into_iter().peekable(), Ok(())),
            Err(failure) => (Vec::new().into_iter().peekable(), Err(failure)),
        };
        let mut waiting = Vec::new();
        for entry in batch {
            match entry {
                JournalEntry::Append { last, done, .. } => {
                    while let Some(fact) = recorded.next_if(|fact| fact.number <= last) {
                        self.audience.publish(Event::fact(self.session.clone(), Arc::new(fact)));
                    }
                    waiting.push(done);
                }
                JournalEntry::Publish(body) => self.publish(body),
            }
        }
        for done in waiting {
            let _ = done.send(outcome.clone());
        }
    }

    async fn write(&self, expected: Option<u64>, facts: Vec<Fact>) -> Result<Vec<Recorded>, Failure> {
        if let Some(failure) = self.status.failure.get() {
            return Err(failure.clone());
        }
        let Some(expected) = expected else { return Ok(Vec::new()) };
        let written = match self.store.append(&self.session, facts).await {
            Ok(recorded) if recorded.first().is_some_and(|first| first.number == expected) => recorded,
            Ok(_) => return Err(self.fail(Failure::internal("Another process wrote to this chat."))),
            Err(failure) => return Err(self.fail(failure)),
        };
        if let Some(last) = written.last() {
            self.status.published.store(last.number, Ordering::Release);
        }
        Ok(written)
    }

    fn fail(&self, failure: Failure) -> Failure {
        tracing::error!(session = %self.session, %failure, "the journal cannot be written");
        let _ = self.status.failure.set(failure.clone());
        self.publish(EventBody::Lost { failure: failure.clone() });
        failure
    }

    fn publish(&self, body: EventBody) {
        self.audience.publish(Event { session: Some(self.session.clone()), body });
    }
}
