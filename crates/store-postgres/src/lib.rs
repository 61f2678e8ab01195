//! The durable journal of all chats in a PostgreSQL database, for users and teams who have outgrown one machine.
//!
//! The second implementation of `domain::Store`: the same facts, in the same stored form, with the same list and search as
//! `store` has them. Must not know the engine or settings files.
//! Invariants: an append returns after its transaction is committed; it is committed only under the newest lease of its
//! chat; a lost connection neither loses nor repeats a fact; every wait has a deadline; no message holds a password.

mod address;
mod chat;
mod error;
mod groups;
mod key_values;
mod lease;
mod listen;
mod listing;
mod pool;
mod schema;
mod search;
mod task_id;
mod tasks;
mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::store::{Lease, ListFilter, Preview, SearchHit, SearchQuery, SessionSummary, check_changeable};
use domain::{BoxFuture, Fact, Failure, Recorded, SessionId, Store};

pub use address::{Address, is_address};
use chat::Page;
use error::Trouble;
use groups::Groups;
use lease::Leases;
use listen::Listener;
use pool::{AddressSource, Connection, Pool, RetryTimes};
pub use task_id::TaskId;
pub use tasks::{Claim, NewTask, Renewal, Task, TaskQueue, TaskState};

/// A wire that is slower than this is not used.
const BYTES_PER_SECOND: usize = 128 << 10;

/// How long the store waits and how long its leases last.
#[derive(Clone, Debug)]
pub struct Timing {
    /// A lease ends so long after its last renewal, by the clock of the database.
    pub lease: Duration,
    /// An append of a running turn is tried again for so long while the database is away.
    pub write_timeout: Duration,
    /// Everything else is tried again for so long.
    pub read_timeout: Duration,
    /// One try may take so long; then its connection counts as dead.
    pub attempt: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            write_timeout: Duration::from_secs(15 * 60),
            read_timeout: Duration::from_secs(15),
            attempt: Duration::from_secs(10),
        }
    }
}

/// Looks the address up; it may come from a program of the user.
pub trait AddressLookup:
    Fn() -> BoxFuture<'static, Result<Address, Failure>> + Send + Sync + 'static
{
}

impl<F: Fn() -> BoxFuture<'static, Result<Address, Failure>> + Send + Sync + 'static> AddressLookup for F {}

fn fixed(address: Address) -> AddressSource {
    Box::new(move || {
        let address = address.clone();
        Box::pin(async move { Ok(address) })
    })
}

/// All chats of a user, in a PostgreSQL database.
pub struct PostgresStore {
    pool: Arc<Pool>,
    leases: Arc<Leases>,
    groups: Arc<Groups>,
    listener: Listener,
    timing: Timing,
}

impl PostgresStore {
    /// Looks the address up and connects at the first use.
    pub fn new(source: impl AddressLookup) -> Self {
        Self::with_source(Box::new(source), Timing::default())
    }

    pub fn with_timing(address: Address, timing: Timing) -> Self {
        Self::with_source(fixed(address), timing)
    }

    fn with_source(source: AddressSource, timing: Timing) -> Self {
        let pool = Arc::new(Pool::new(source));
        let leases = Arc::new(Leases::new(pool.clone(), timing.lease));
        let groups = Arc::new(Groups::new(pool.clone(), timing.attempt));
        Self { listener: Listener::new(pool.clone()), pool, leases, groups, timing }
    }

    fn reading(&self) -> RetryTimes {
        RetryTimes { all: self.timing.read_timeout, one: self.timing.attempt }
    }

    /// Large facts take their time over a slow wire.
    fn writing(&self, size: usize) -> RetryTimes {
        let sending = Duration::from_secs((size / BYTES_PER_SECOND) as u64);
        RetryTimes { all: self.timing.write_timeout, one: self.timing.attempt + sending }
    }

    async fn read_patiently<T, F>(&self, attempt: impl FnMut(Connection) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = (Connection, Result<T, Trouble>)> + Send,
    {
        self.pool.with_retries(self.reading(), attempt).await
    }

    /// Returns the number of the first fact and the time of all.
    async fn append_all(&self, session: &SessionId, page: Page) -> Result<(u64, u64), Failure> {
        let held = self.leases.get(session).ok_or_else(|| store::shared::not_held(session))?;
        // One append at a time: the store knows the newest number, and a repeated try finds out whether the first one
        // was committed.
        let mut known = held.newest.lock().await;
        // Unknown again if this future is dropped on the way.
        let before = match known.take() {
            Some(before) => before,
            None => self.newest_of(session).await?.unwrap_or(0),
        };
        let (page, held) = (&Arc::new(page), &held);
        let _begun = self.groups.begin();
        if let Some(at) = self.groups.append(session, held, before, page).await {
            *known = Some(before + page.facts.len() as u64);
            return Ok((before + 1, at));
        }
        let at = self
            .pool
            .with_retries(self.writing(page.size()), |mut connection| async move {
                let outcome = chat::append(&mut connection, session, held, before, page).await;
                (connection, outcome)
            })
            .await;
        if let Err(failure) = &at
            && failure.kind == domain::FailureKind::Taken
        {
            self.leases.lose(session, held);
        }
        let at = at?;
        *known = Some(before + page.facts.len() as u64);
        Ok((before + 1, at))
    }

    async fn newest_of(&self, session: &SessionId) -> Result<Option<u64>, Failure> {
        self.read_patiently(|mut connection| async move {
            let newest = chat::newest(&mut connection, session).await;
            (connection, newest)
        })
        .await
    }
}

impl Store for PostgresStore {
    fn trouble(&self) -> Option<String> {
        self.pool.trouble()
    }

    fn lease<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>> {
        Box::pin(self.leases.acquire(session, self.reading()))
    }

    fn release<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.leases.release(session))
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        facts: Vec<Fact>,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(async move {
            if facts.is_empty() {
                return Ok(Vec::new());
            }
            let page = Page::new(&facts, None)?;
            let (first, at) = self.append_all(session, page).await?;
            let numbered = (first..).zip(facts);
            Ok(numbered.map(|(number, fact)| Recorded { number, at, fact }).collect())
        })
    }

    fn adopt<'a>(
        &'a self,
        session: &'a SessionId,
        records: Vec<Recorded>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            if records.is_empty() {
                return Ok(());
            }
            let (times, facts): (Vec<u64>, Vec<Fact>) =
                records.into_iter().map(|recorded| (recorded.at, recorded.fact)).unzip();
            self.append_all(session, Page::new(&facts, Some(times))?).await.map(drop)
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        Box::pin(self.read_patiently(move |mut connection| async move {
            let page = chat::read(&mut connection, session, after, limit).await;
            (connection, page)
        }))
    }

    fn preview<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>> {
        Box::pin(async move {
            let summary = self
                .read_patiently(|mut connection| async move {
                    let summary = listing::one(&mut connection, session).await;
                    (connection, summary)
                })
                .await?;
            let Some(SessionSummary { title, newest, .. }) = summary else { return Ok(None) };
            let mut facts: Vec<Recorded> = Vec::new();
            loop {
                let after = facts.last().map_or(newest.saturating_sub(limit as u64), |last| last.number);
                let page = self.read(session, after, limit).await?;
                if page.is_empty() {
                    return Ok(Some(Preview { title, facts }));
                }
                facts.extend(page);
            }
        })
    }

    fn newest<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>> {
        Box::pin(self.newest_of(session))
    }

    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>> {
        Box::pin(async move {
            let filter = &filter;
            self.read_patiently(|mut connection| async move {
                let listed = listing::list(&mut connection, filter).await;
                (connection, listed)
            })
            .await
        })
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>> {
        Box::pin(async move {
            let query = &query;
            self.read_patiently(|mut connection| async move {
                let hits = search::search(&mut connection, query).await;
                (connection, hits)
            })
            .await
        })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            if let Lease::HeldBy { holder, .. } = self.leases.acquire(session, self.reading()).await? {
                return Err(Failure::taken(format!("The chat {session} is in use by {holder}."))
                    .hint("Close it there, then delete it."));
            }
            let held = self.leases.get(session).ok_or_else(|| store::shared::not_held(session))?;
            let held = &held;
            let deleted = self
                .read_patiently(|mut connection| async move {
                    let deleted = chat::delete(&mut connection, session, held).await;
                    (connection, deleted)
                })
                .await;
            self.leases.release(session).await?;
            deleted
        })
    }

    fn get<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        Box::pin(self.read_patiently(move |mut connection| async move {
            let value = key_values::get(&mut connection, kind, key).await;
            (connection, value)
        }))
    }

    fn add<'a>(&'a self, kind: &'a str, key: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>> {
        Box::pin(async move {
            check_changeable(kind)?;
            // The transaction of a try whose outcome is not known.
            let unknown = std::sync::Mutex::new(None);
            let unknown = &unknown;
            self.read_patiently(move |mut connection| async move {
                let sum = key_values::add(&mut connection, kind, key, amount, unknown).await;
                (connection, sum)
            })
            .await
        })
    }

    fn put<'a>(&'a self, kind: &'a str, key: &'a str, value: String) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            check_changeable(kind)?;
            let value = value.as_str();
            self.read_patiently(move |mut connection| async move {
                let put = key_values::put(&mut connection, kind, key, value).await;
                (connection, put)
            })
            .await
        })
    }

    fn insert<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: String,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let value = value.as_str();
            self.read_patiently(move |mut connection| async move {
                let inserted = key_values::insert(&mut connection, kind, key, value).await;
                (connection, inserted)
            })
            .await
        })
    }

    fn insert_all<'a>(
        &'a self,
        kind: &'a str,
        records: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let records = records.as_slice();
            self.read_patiently(move |mut connection| async move {
                let inserted = key_values::insert_all(&mut connection, kind, records).await;
                (connection, inserted)
            })
            .await
        })
    }

    fn remove<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            check_changeable(kind)?;
            self.read_patiently(move |mut connection| async move {
                let removed = key_values::remove(&mut connection, kind, key).await;
                (connection, removed)
            })
            .await
        })
    }

    fn records<'a>(
        &'a self,
        kind: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Failure>> {
        Box::pin(self.read_patiently(move |mut connection| async move {
            let found = key_values::list(&mut connection, kind, after, limit).await;
            (connection, found)
        }))
    }

    fn last_record<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Option<(String, String)>, Failure>> {
        Box::pin(self.read_patiently(move |mut connection| async move {
            let found = key_values::last(&mut connection, kind).await;
            (connection, found)
        }))
    }

    fn leases_end(&self) -> bool {
        true
    }

    fn lease_at_risk<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(self.leases.at_risk(session))
    }

    fn changed<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(self.listener.changed(session))
    }
}
