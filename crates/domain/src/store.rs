//! What the engine needs of a durable store. The journal is the truth; the index is made from it.
//!
//! Invariants: facts of a session are numbered from 1 without gaps; only the holder of a session's lease appends;
//! a lease dies with its process, or soon after it; a deleted session is erased.

use std::path::PathBuf;

use crate::BoxFuture;
use crate::event::{Fact, Recorded};
use crate::failure::Failure;
use crate::ids::SessionId;

pub trait Store: Send + Sync {
    /// Does now what the first use would wait for.
    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    /// Why the store makes its callers wait at this moment, as a sentence for the user.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Takes the right to append, or says who has it. Held until `release`, until this process ends, or until another
    /// process took it because this one could not renew it.
    fn lease<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>>;

    /// The leases that are taken from now on name this address, where other processes reach this one.
    fn announce(&self, _address: &str) {}

    /// The chats that processes of this machine hold, and those that they held when they died: an address that nobody
    /// listens at tells them apart.
    fn held(&self) -> BoxFuture<'_, Result<Vec<HeldChat>, Failure>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn release<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>>;

    /// Appends in one transaction and returns after it is on disk. Several calls may share a commit.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        facts: Vec<Fact>,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>>;

    /// Appends facts with the times that another store gave them. They follow on the newest fact.
    fn adopt<'a>(
        &'a self,
        _session: &'a SessionId,
        _records: Vec<Recorded>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Err(Failure::internal("This store takes no chats of another one.")) })
    }

    /// Facts with a number greater than `after`, oldest first, at most `limit` of them and about 1 MiB.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>>;

    /// The end of a chat: at most `limit` of its newest facts; `None` where there is no such session.
    fn preview<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>>;

    /// The number of the newest fact; `None` where there is no such session.
    fn newest<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>>;

    /// Newest first.
    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>>;

    /// Chats in which one message has all the words of the query, newest chat first.
    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>>;

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>>;

    /// Small records beside the chats (spending of a day, shared rate-limit resets), by kind and key.
    fn get<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>>;

    /// Adds to a number atomically across processes and returns the sum; `amount` may be 0 to read.
    fn add<'a>(&'a self, kind: &'a str, key: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>>;

    fn put<'a>(&'a self, kind: &'a str, key: &'a str, value: String) -> BoxFuture<'a, Result<(), Failure>>;

    /// Keeps a record where none of this kind and key is; says whether it did. No record is ever overwritten by it.
    fn insert<'a>(
        &'a self,
        _kind: &'a str,
        _key: &'a str,
        _value: String,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async { Err(no_records()) })
    }

    /// Keeps several records, all or none: none where one of the keys is taken. Says whether it did.
    fn insert_all<'a>(
        &'a self,
        _kind: &'a str,
        _records: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async { Err(no_records()) })
    }

    /// Says whether there was one.
    fn remove<'a>(&'a self, _kind: &'a str, _key: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async { Err(no_records()) })
    }

    /// Keys and values of a kind, in the order of the bytes of their keys, at most `limit` of those behind `after`.
    fn records<'a>(
        &'a self,
        _kind: &'a str,
        _after: &'a str,
        _limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Failure>> {
        Box::pin(async { Err(no_records()) })
    }

    /// The record of a kind with the greatest key.
    fn last_record<'a>(&'a self, _kind: &'a str) -> BoxFuture<'a, Result<Option<(String, String)>, Failure>> {
        Box::pin(async { Err(no_records()) })
    }

    /// Finishes what was asked for and leaves the files as the next process likes to find them; waits at most a few seconds. Every
    /// later request fails.
    fn close(&self) {}

    /// Whether a lease may end while its process lives.
    fn leases_end(&self) -> bool {
        false
    }

    /// Resolves when the lease may end before it can be renewed: programs that run under it must stop now. Never, where a
    /// lease lasts as long as its process.
    fn lease_at_risk<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    /// Resolves when another process may have appended. It only wakes: a reader polls all the same.
    fn changed<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}

/// The kind of records that are added and never changed or removed: the log of who did what on a server.
pub const AUDIT: &str = "serve.audit";

/// Fails for a change or a removal of a record of a kind that only grows.
pub fn check_changeable(kind: &str) -> Result<(), Failure> {
    if kind == AUDIT {
        return Err(Failure::user(
            "The audit log is append-only: its entries are neither changed nor removed.",
        ));
    }
    Ok(())
}

fn no_records() -> Failure {
    Failure::internal("This store keeps no lists of records.")
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lease {
    Held,
    HeldBy {
        /// For people: program and process id of the holder.
        holder: String,
        /// Where the holder lets other processes attach; `None`: it does not.
        address: Option<String>,
    },
}

/// The end of a stored chat, which is there long before the whole chat is loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct Preview {
    pub title: Option<String>,
    /// Oldest first.
    pub facts: Vec<Recorded>,
}

/// A chat that a process holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldChat {
    pub session: SessionId,
    /// For people: program and process id.
    pub holder: String,
    pub address: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListFilter {
    /// Only chats opened in one of these folders.
    pub workspace: Option<Vec<PathBuf>>,
    /// Only chats whose title contains this, case-insensitive.
    pub text: Option<String>,
    pub limit: Option<usize>,
    /// Only chats that come after this one in the list.
    pub after: Option<ListPosition>,
}

/// A place in the list of chats. It stays where it is when other chats move up or go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPosition {
    pub updated_at: u64,
    pub id: SessionId,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchQuery {
    /// The last word may be the beginning of one.
    pub text: String,
    /// Only chats opened in one of these folders.
    pub workspace: Option<Vec<PathBuf>>,
    pub limit: Option<usize>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct SearchHit {
    pub chat: SessionSummary,
    /// A line of the newest message that matches.
    pub excerpt: String,
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionSummary {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: Option<String>,
    pub workspace: Vec<PathBuf>,
    pub parent: Option<SessionId>,
    /// Milliseconds since 1970.
    pub created_at: u64,
    pub updated_at: u64,
    /// User and agent messages.
    pub message_count: u64,
    /// Number of the newest fact.
    pub newest: u64,
}

impl SessionSummary {
    pub fn position(&self) -> ListPosition {
        ListPosition { updated_at: self.updated_at, id: self.id.clone() }
    }
}
