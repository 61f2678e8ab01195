//! The one thread that writes: leases, transactions, and the upkeep of the file while nobody waits.
//!
//! Must not know what a transaction does. Invariants: jobs take effect in the order they were queued; those that wait
//! together share a commit; each is answered after the commit; one that fails leaves the others alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::store::Lease;
use domain::{Failure, SessionId};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use crate::database::{Database, Role};
use crate::lease::Leases;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::worker::Reply;
use crate::{chat, erase, migrations, records};

/// Most jobs of one commit.
const BATCH: usize = 256;

/// The write-ahead log is written back after about this many bytes when nobody waits, and at the latest after four
/// times as many.
const LOG: usize = 4 << 20;

/// The record that says that deleted text may still be in the files, whoever deleted it.
const ERASE_DUE: (&str, &str) = ("store", "erase");

/// Between two tries to erase, where another process is in the way.
const ERASE_PAUSE: Duration = Duration::from_secs(5);

pub enum Job {
    Lease {
        session: SessionId,
        reply: Reply<Lease>,
    },
    Release {
        session: SessionId,
        reply: Reply<()>,
    },
    Delete {
        session: SessionId,
        reply: Reply<bool>,
    },
    /// `session`: only with this chat's lease.
    Write {
        session: Option<SessionId>,
        size: usize,
        work: Box<dyn Work>,
    },
}

/// Something to be done inside a transaction, and answered after it.
pub trait Work: Send {
    fn perform(&mut self, connection: &Connection) -> Result<(), Trouble>;
    fn settle(self: Box<Self>, outcome: Result<(), Failure>);
}

/// `Work` made of a function.
pub struct Task<T, F> {
    act: F,
    done: Option<T>,
    reply: Reply<T>,
}

impl<T, F> Task<T, F> {
    pub fn new(reply: Reply<T>, act: F) -> Self {
        Self { act, done: None, reply }
    }
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Trouble> + Send> Work for Task<T, F> {
    fn perform(&mut self, connection: &Connection) -> Result<(), Trouble> {
        self.done = Some((self.act)(connection)?);
        Ok(())
    }

    fn settle(self: Box<Self>, outcome: Result<(), Failure>) {
        let Task { done, reply, .. } = *self;
        // An error means that nobody waits any more: it is done all the same.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(Failure::closed)));
    }
}

pub fn run(place: Arc<Place>, mut inbox: mpsc::Receiver<Job>) {
    let leases = Leases::new(&place);
    let database = Database::new(place, Role::Writer);
    let mut writer = Writer { database, leases, logged: 0, erase_due: false, erase_tried: None };
    let mut jobs = Vec::with_capacity(BATCH);
    while inbox.blocking_recv_many(&mut jobs, BATCH) > 0 {
        writer.take(jobs.drain(..));
        writer.upkeep(inbox.is_empty());
    }
}

struct Writer {
    database: Database,
    leases: Leases,
    /// Bytes written since the log was last written back, about.
    logged: usize,
    erase_due: bool,
    erase_tried: Option<Instant>,
}

impl Writer {
    fn take(&mut self, jobs: impl Iterator<Item = Job>) {
        let mut together: Vec<Box<dyn Work>> = Vec::new();
        for job in jobs {
            match job {
                Job::Lease { session, reply } => drop(reply.send(self.leases.take(&session))),
                Job::Write { session: Some(session), work, .. } if !self.leases.holds(&session) => {
                    work.settle(Err(not_held(&session)));
                }
                Job::Write { size, work, .. } => {
                    // A small change writes a handful of pages.
                    self.logged += size + (16 << 10);
                    together.push(work);
                }
                // The lease may go only when what was written under it is on disk.
                Job::Release { session, reply } => {
                    self.commit(std::mem::take(&mut together));
                    self.leases.release(&session);
                    let _ = reply.send(Ok(()));
                }
                Job::Delete { session, reply } => {
                    self.commit(std::mem::take(&mut together));
                    let _ = reply.send(self.delete(&session));
                }
            }
        }
        self.commit(together);
    }

    fn commit(&mut self, mut together: Vec<Box<dyn Work>>) {
        if together.is_empty() {
            return;
        }
        match self.transact(&mut together) {
            Ok(outcomes) => {
                for (work, outcome) in together.into_iter().zip(outcomes) {
                    work.settle(outcome);
                }
            }
            Err(trouble) => {
                // What was not written must not be in the way of the next try.
                self.database.close();
                let failure = self.database.tell(trouble);
                for work in together {
                    work.settle(Err(failure.clone()));
                }
            }
        }
    }

    /// One transaction for all; the outcome of each.
    fn transact(&mut self, together: &mut [Box<dyn Work>]) -> Result<Vec<Result<(), Failure>>, Trouble> {
        let fresh = self.database.is_closed();
        let path = self.database.path();
        let mut outcomes = Vec::with_capacity(together.len());
        let connection = self.database.connection()?;
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        migrations::still_current(&transaction)?;
        if fresh {
            self.erase_due |= records::get(&transaction, ERASE_DUE.0, ERASE_DUE.1)?.is_some();
        }
        for work in together {
            let mut savepoint = transaction.savepoint()?;
            let outcome = work.perform(&savepoint);
            if outcome.is_ok() {
                savepoint.commit()?;
            } else if savepoint.rollback().and_then(|()| savepoint.commit()).is_err() {
                // SQLite has given up the whole transaction: the disk is full, for instance.
                return outcome.map(|()| Vec::new());
            }
            outcomes.push(outcome.map_err(|trouble| trouble.tell(&path)));
        }
        transaction.commit()?;
        Ok(outcomes)
    }

    fn delete(&mut self, session: &SessionId) -> Result<bool, Failure> {
        if let Lease::HeldBy { holder } = self.leases.take(session)? {
            return Err(Failure::taken(format!("The chat {session} is in use by {holder}."))
                .hint("Close it there, then delete it."));
        }
        let deleted = self.delete_rows(session).map_err(|trouble| self.database.tell(trouble));
        self.leases.release(session);
        if matches!(deleted, Ok(true)) {
            self.erase_due = true;
            self.erase();
        }
        deleted
    }

    fn delete_rows(&mut self, session: &SessionId) -> Result<bool, Trouble> {
        let connection = self.database.connection()?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        migrations::still_current(&transaction)?;
        let existed = chat::delete(&transaction, session)?;
        if existed {
            // Should this process die before it has erased the rest, the next one does it.
            records::put(&transaction, ERASE_DUE.0, ERASE_DUE.1, "due")?;
        }
        transaction.commit()?;
        Ok(existed)
    }

    fn erase(&mut self) {
        self.erase_tried = Some(Instant::now());
        let outcome = self.database.connection().and_then(|connection| {
            let done = erase::erase(connection)?;
            if done {
                records::remove(connection, ERASE_DUE.0, ERASE_DUE.1)?;
            }
            Ok(done)
        });
        match outcome {
            Ok(done) => self.erase_due = !done,
            Err(trouble) => {
                let failure = self.database.tell(trouble);
                tracing::warn!(%failure, "a deleted chat is not erased from the disk yet");
            }
        }
    }

    /// After everybody has been answered.
    fn upkeep(&mut self, idle: bool) {
        if idle && self.erase_due && self.erase_tried.is_none_or(|tried| tried.elapsed() > ERASE_PAUSE) {
            self.erase();
        }
        if self.logged > 4 * LOG || idle && self.logged > LOG {
            self.logged = 0;
            let written_back = self
                .database
                .connection()
                .and_then(|connection| Ok(connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?));
            if let Err(trouble) = written_back {
                let failure = self.database.tell(trouble);
                tracing::warn!(%failure, "the write-ahead log cannot be written back");
            }
        }
    }
}

fn not_held(session: &SessionId) -> Failure {
    Failure::internal(format!("The chat {session} cannot be written without its lease."))
        .hint("Open the chat again, or fork it.")
}
