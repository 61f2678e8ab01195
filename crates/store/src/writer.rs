//! The one thread that writes: leases, transactions, and the maintenance of the file while the thread is idle.
//!
//! Must not know what a transaction does. Invariants: jobs take effect in the order of the queue; jobs that wait
//! together share a commit; each gets its reply after the commit; a job that fails does not affect the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::store::Lease;
use domain::{Failure, SessionId};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use crate::database::{Database, OTHERS_TURN, Role};
use crate::error::StoreError;
use crate::files::StoreFiles;
use crate::lease::Leases;
use crate::worker::Reply;
use crate::{deletion, encoded, log, migrations, search};

/// Most jobs of one commit.
const BATCH: usize = 256;

/// The writer looks at the length of the log after about so many bytes of its own.
const LOOK_AFTER: usize = 256 << 10;

/// Bytes that a step of indexing or deleting writes, about.
const MAINTENANCE_SIZE: usize = 128 << 10;

/// So many messages are indexed together.
const INDEX_BATCH: usize = 32;

/// Steps of merging after messages were indexed; a damaged index may never say that it is merged.
const MOST_MERGES: usize = 100_000;

/// The pause between two tries to remove deleted text while another process reads.
const DELETION_RETRY: Duration = Duration::from_secs(5);

/// So long the end of the process may wait for a deletion; the next process does the rest.
const LAST_DELETION: Duration = Duration::from_millis(500);

pub(crate) enum Job {
    /// Opens the file before somebody waits for it.
    Open {
        reply: Reply<()>,
    },
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
    /// With a `session`, the write needs that chat's lease.
    Write {
        session: Option<SessionId>,
        size: usize,
        /// Messages in it that the full-text index will hold.
        messages: usize,
        work: Box<dyn Work>,
    },
}

/// Work inside a transaction, with a reply after the commit.
pub(crate) trait Work: Send {
    fn perform(&mut self, connection: &Connection) -> Result<(), StoreError>;
    fn reply(self: Box<Self>, outcome: Result<(), Failure>);
}

/// `Work` made of a function.
pub(crate) struct Task<T, F> {
    act: F,
    done: Option<T>,
    reply: Reply<T>,
}

impl<T, F> Task<T, F> {
    pub(crate) fn new(reply: Reply<T>, act: F) -> Self {
        Self { act, done: None, reply }
    }
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, StoreError> + Send> Work for Task<T, F> {
    fn perform(&mut self, connection: &Connection) -> Result<(), StoreError> {
        self.done = Some((self.act)(connection)?);
        Ok(())
    }

    fn reply(self: Box<Self>, outcome: Result<(), Failure>) {
        let Task { done, reply, .. } = *self;
        // An error means that the caller has gone; the write is kept all the same.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(Failure::closed)));
    }
}

pub(crate) fn run(files: Arc<StoreFiles>, mut inbox: mpsc::Receiver<Job>) {
    let leases = Leases::new(&files);
    let database = Database::new(files, Role::Writer);
    let mut writer = Writer {
        database,
        leases,
        // The log may be long already.
        unmeasured: LOOK_AFTER,
        deletion: None,
        deleted: Vec::new(),
        deletion_blocked_at: None,
        unindexed: 0,
        merges: 0,
        is_examined: false,
    };
    let mut jobs = Vec::with_capacity(BATCH);
    while receive(&mut inbox, &mut jobs, writer.has_work()) {
        writer.run_jobs(jobs.drain(..));
        writer.deletion_step();
        writer.index_step();
        writer.maintain(inbox.is_empty());
        writer.open_early(inbox.is_empty());
    }
    writer.close();
}

/// Waits for jobs unless there is other work. Returns false when no more jobs can come.
fn receive(inbox: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>, has_work: bool) -> bool {
    if !has_work {
        return inbox.blocking_recv_many(jobs, BATCH) > 0;
    }
    while jobs.len() < BATCH {
        match inbox.try_recv() {
            Ok(job) => jobs.push(job),
            Err(mpsc::error::TryRecvError::Empty) => return true,
            Err(mpsc::error::TryRecvError::Disconnected) => return !jobs.is_empty(),
        }
    }
    true
}

struct Writer {
    database: Database,
    leases: Leases,
    /// Bytes written since the last look at the length of the log, about.
    unmeasured: usize,
    /// What is to be done next for the chats that were deleted.
    deletion: Option<deletion::Step>,
    /// Deletions that get their reply when the text is gone.
    deleted: Vec<Reply<bool>>,
    /// Messages that wait for the full-text index, about.
    unindexed: usize,
    /// Steps of merging that the index may need.
    merges: usize,
    /// When deleted text could last not be removed: somebody was reading from the log, or an error.
    deletion_blocked_at: Option<Instant>,
    /// It is known what the open file has left to do.
    is_examined: bool,
}

impl Writer {
    fn run_jobs(&mut self, jobs: impl Iterator<Item = Job>) {
        let mut together: Vec<Box<dyn Work>> = Vec::new();
        for job in jobs {
            match job {
                Job::Open { reply } => {
                    let opened = self.database.connection().map(|_| ());
                    let _ = reply.send(opened.map_err(|error| self.database.failure(error)));
                }
                Job::Lease { session, reply } => drop(reply.send(self.leases.acquire(&session))),
                Job::Write { session: Some(session), work, .. } if !self.leases.is_held(&session) => {
                    work.reply(Err(encoded::not_held(&session)));
                }
                Job::Write { size, messages, work, .. } => {
                    self.unindexed += messages;
                    // A small change writes a handful of pages.
                    self.unmeasured += size + (16 << 10);
                    together.push(work);
                }
                // Everything written under the lease must be on disk before its release.
                Job::Release { session, reply } => {
                    self.commit(std::mem::take(&mut together));
                    self.leases.release(&session);
                    let _ = reply.send(Ok(()));
                }
                Job::Delete { session, reply } => {
                    self.commit(std::mem::take(&mut together));
                    self.delete(&session, reply);
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
                    work.reply(outcome);
                }
            }
            Err(error) => {
                // A connection with an open transaction must not disturb the next try.
                self.database.close();
                let failure = self.database.failure(error);
                for work in together {
                    work.reply(Err(failure.clone()));
                }
            }
        }
    }

    /// Performs all in one transaction; returns the outcome of each.
    fn transact(&mut self, together: &mut [Box<dyn Work>]) -> Result<Vec<Result<(), Failure>>, StoreError> {
        self.is_examined &= !self.database.is_closed();
        let path = self.database.path();
        let mut outcomes = Vec::with_capacity(together.len());
        let connection = self.database.connection()?;
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        migrations::still_current(&transaction)?;
        if !self.is_examined {
            self.is_examined = true;
            self.unindexed = search::queue_length(&transaction)?;
            if deletion::is_due(&transaction)? && self.deletion_blocked_at.is_none() {
                self.deletion.get_or_insert(deletion::Step::FIRST);
            }
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
            outcomes.push(outcome.map_err(|error| error.into_failure(&path)));
        }
        transaction.commit()?;
        Ok(outcomes)
    }

    fn delete(&mut self, session: &SessionId, reply: Reply<bool>) {
        match self.delete_held(session) {
            // The steps begin again with this chat.
            Ok(true) => {
                self.deletion = Some(deletion::Step::FIRST);
                self.deleted.push(reply);
            }
            outcome => drop(reply.send(outcome)),
        }
    }

    fn delete_held(&mut self, session: &SessionId) -> Result<bool, Failure> {
        if let Lease::HeldBy { holder, .. } = self.leases.acquire(session)? {
            return Err(Failure::taken(format!("The chat {session} is in use by {holder}."))
                .hint("Close it there, then delete it."));
        }
        let hidden = self.database.connection().and_then(|connection| deletion::hide(connection, session));
        self.leases.release(session);
        hidden.map_err(|error| self.database.failure(error))
    }

    fn has_work(&self) -> bool {
        self.deletion.is_some() || self.merges > 0 || self.unindexed >= INDEX_BATCH
    }

    /// Indexes a batch of messages after their replies, so that no prompt waits for it, or merges what was indexed.
    fn index_step(&mut self) {
        let indexes = self.unindexed >= INDEX_BATCH;
        if self.deletion.is_some() || !indexes && self.merges == 0 {
            return;
        }
        self.unmeasured += MAINTENANCE_SIZE;
        let merges = self.merges;
        let outcome = self.database.connection().and_then(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            migrations::still_current(&transaction)?;
            let merges = if indexes {
                search::index_some(&transaction)?;
                MOST_MERGES
            } else if search::merge_some(&transaction)? {
                merges - 1
            } else {
                0
            };
            let left = search::queue_length(&transaction)?;
            transaction.commit()?;
            Ok((left, merges))
        });
        (self.unindexed, self.merges) = outcome.unwrap_or_else(|error| {
            self.database.close();
            let failure = self.database.failure(error);
            tracing::warn!(%failure, "messages are not indexed for the search yet");
            (0, 0)
        });
        std::thread::sleep(OTHERS_TURN);
    }

    /// One short step, so that other jobs never wait long.
    fn deletion_step(&mut self) {
        let Some(step) = self.deletion.take() else { return };
        self.unmeasured += MAINTENANCE_SIZE;
        let outcome = self.database.connection().and_then(|connection| deletion::advance(connection, step));
        self.deletion_blocked_at = match outcome {
            Ok(deletion::Outcome::Next(step)) => {
                self.deletion = Some(step);
                std::thread::sleep(OTHERS_TURN);
                return;
            }
            Ok(deletion::Outcome::Done) => {
                // Pages in the memory of this connection may hold copies of deleted rows, and would bring them into the log again.
                self.database.close();
                None
            }
            Ok(deletion::Outcome::Blocked) => Some(Instant::now()),
            Err(error) => {
                self.database.close();
                let failure = self.database.failure(error);
                tracing::warn!(%failure, "a deleted chat is not erased from the disk yet");
                Some(Instant::now())
            }
        };
        for reply in self.deleted.drain(..) {
            let _ = reply.send(Ok(true));
        }
    }

    /// Who holds a chat is about to write: the file is opened, or made, while the prompt is prepared.
    fn open_early(&mut self, idle: bool) {
        if idle && self.database.is_closed() && self.leases.has_any() {
            self.is_examined = false;
            // An error is that of the first write, which tries it again.
            let _ = self.database.connection();
        }
    }

    /// Runs after all replies.
    fn maintain(&mut self, idle: bool) {
        if idle && self.deletion_blocked_at.is_some_and(|blocked| blocked.elapsed() > DELETION_RETRY) {
            self.deletion_blocked_at = None;
            self.deletion.get_or_insert(deletion::Step::FIRST);
        }
        if self.unmeasured < LOOK_AFTER || self.database.is_closed() {
            return;
        }
        self.unmeasured = 0;
        let limit = if idle { log::LIMIT_IDLE } else { log::LIMIT };
        let outcome = self.database.connection().and_then(|connection| match log::length(connection)? {
            frames if frames < limit => Ok(()),
            _ => log::write_back(connection),
        });
        if let Err(error) = outcome {
            // After a fault of the disk SQLite may have gone on without a log: a new connection begins with one again.
            self.database.close();
            let failure = self.database.failure(error);
            tracing::warn!(%failure, "the write-ahead log cannot be written back");
        }
    }

    /// Leaves everything in the database file. If nobody else has it open, SQLite removes the log when the connection closes.
    fn close(mut self) {
        if self.deletion_blocked_at.is_some() {
            self.deletion.get_or_insert(deletion::Step::FIRST);
        }
        let start = Instant::now();
        while self.deletion.is_some() && start.elapsed() < LAST_DELETION {
            self.deletion_step();
        }
        if !self.database.is_closed()
            && let Ok(connection) = self.database.connection()
        {
            let _ = log::write_back(connection);
        }
    }
}
