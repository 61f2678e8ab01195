//! `domain::Store` on two threads: one writes, one reads, so that no reader waits for a commit.
//!
//! Must not know SQL. Invariants: opening costs nothing, because each thread opens the database at its first request;
//! dropping a future that waits gives up the reply, not the write.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use domain::store::{
    HeldChat, Lease, ListFilter, Preview, SearchHit, SearchQuery, SessionSummary, check_changeable,
};
use domain::{BoxFuture, Fact, Failure, Recorded, SessionId, Store};
use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::chat;
use crate::database::{Database, Role};
use crate::encoded::EncodedFact;
use crate::error::StoreError;
use crate::files::StoreFiles;
use crate::lease::named_leases;
use crate::worker::{Reply, Worker};
use crate::writer::{self, Task};
use crate::{key_values, listing, search};

/// All chats of a user.
pub struct Journal {
    files: Arc<StoreFiles>,
    // Dropped in this order, as `close` does it.
    reader: Worker<Query>,
    writer: Worker<writer::Job>,
}

type Query = Box<dyn FnOnce(&mut Database) + Send>;

impl Journal {
    /// The store in this folder; the first use creates the folder.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        if !directory.is_absolute() {
            return Err(Failure::config(format!(
                "The data folder {:?} is not an absolute path.",
                directory.display()
            ))
            .hint("Set XDG_DATA_HOME to an absolute path."));
        }
        let files = StoreFiles::new(directory, holder("Dragoman"));
        Ok(Self { files: Arc::new(files), reader: Worker::new(), writer: Worker::new() })
    }

    /// Sets the name that other processes show while this one holds a chat, `dragoman acp` for instance. The process
    /// id is added.
    pub fn named(mut self, name: &str) -> Self {
        Arc::make_mut(&mut self.files).holder = holder(name);
        self
    }

    async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(Reply<T>) -> writer::Job,
    ) -> Result<T, Failure> {
        let files = self.files.clone();
        self.writer.request("store-writer", move |inbox| writer::run(files, inbox), job).await
    }

    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Failure> {
        let files = self.files.clone();
        let job = |reply: Reply<T>| -> Query {
            Box::new(move |database| {
                let result = database.connection().and_then(|connection| query(connection));
                if matches!(result, Err(StoreError::Sqlite(_))) {
                    database.close();
                }
                let _ = reply.send(result.map_err(|error| database.failure(error)));
            })
        };
        self.reader.request("store-reader", move |inbox| run_queries(files, inbox), job).await
    }
}

impl Store for Journal {
    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.write(|reply| writer::Job::Open { reply }).await?;
            self.query(|_| Ok(())).await
        })
    }

    fn lease<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Lease, Failure>> {
        let session = session.clone();
        Box::pin(self.write(|reply| writer::Job::Lease { session, reply }))
    }

    fn announce(&self, address: &str) {
        self.files.set_address(address);
    }

    fn held(&self) -> BoxFuture<'_, Result<Vec<HeldChat>, Failure>> {
        let files = self.files.clone();
        Box::pin(async move {
            let listed = tokio::task::spawn_blocking(move || named_leases(&files)).await;
            Ok(listed.unwrap_or_default())
        })
    }

    fn release<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<(), Failure>> {
        let session = session.clone();
        Box::pin(self.write(|reply| writer::Job::Release { session, reply }))
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
            let encoded = facts.iter().map(EncodedFact::new).collect::<Result<Vec<_>, _>>()?;
            let size = encoded.iter().map(EncodedFact::size).sum();
            let messages = encoded.iter().filter(|fact| fact.is_searchable()).count();
            let id = session.clone();
            let job = |reply| {
                let append = move |connection: &Connection| chat::append(connection, &id, &encoded, now());
                writer::Job::Write {
                    session: Some(session.clone()),
                    size,
                    messages,
                    work: Box::new(Task::new(reply, append)),
                }
            };
            let stamp = self.write(job).await?;
            let numbered = (stamp.first..).zip(facts);
            Ok(numbered.map(|(number, fact)| Recorded { number, at: stamp.at, fact }).collect())
        })
    }

    fn adopt<'a>(
        &'a self,
        session: &'a SessionId,
        records: Vec<Recorded>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            // Facts of one time are one append.
            let mut runs: Vec<(u64, Vec<EncodedFact>)> = Vec::new();
            for recorded in &records {
                let fact = EncodedFact::new(&recorded.fact)?;
                match runs.last_mut() {
                    Some((at, facts)) if *at == recorded.at => facts.push(fact),
                    _ => runs.push((recorded.at, vec![fact])),
                }
            }
            let encoded = || runs.iter().flat_map(|(_, facts)| facts);
            let (size, messages) = (
                encoded().map(EncodedFact::size).sum(),
                encoded().filter(|fact| fact.is_searchable()).count(),
            );
            let id = session.clone();
            let job = |reply| {
                let adopt = move |connection: &Connection| {
                    runs.iter()
                        .try_for_each(|(at, facts)| chat::append(connection, &id, facts, *at).map(drop))
                };
                let work = Box::new(Task::new(reply, adopt));
                writer::Job::Write { session: Some(session.clone()), size, messages, work }
            };
            self.write(job).await
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Recorded>, Failure>> {
        let session = session.clone();
        Box::pin(self.query(move |connection| chat::read(connection, &session, after, limit)))
    }

    fn preview<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Preview>, Failure>> {
        let session = session.clone();
        Box::pin(self.query(move |connection| chat::preview(connection, &session, limit)))
    }

    fn newest<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<u64>, Failure>> {
        let session = session.clone();
        Box::pin(self.query(move |connection| chat::newest(connection, &session)))
    }

    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<SessionSummary>, Failure>> {
        Box::pin(self.query(move |connection| listing::list(connection, &filter)))
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<Vec<SearchHit>, Failure>> {
        Box::pin(self.query(move |connection| search::search(connection, &query)))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<bool, Failure>> {
        let session = session.clone();
        Box::pin(self.write(|reply| writer::Job::Delete { session, reply }))
    }

    fn get<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        Box::pin(self.query(move |connection| key_values::get(connection, &kind, &key)))
    }

    fn add<'a>(&'a self, kind: &'a str, key: &'a str, amount: f64) -> BoxFuture<'a, Result<f64, Failure>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        if amount == 0.0 {
            return Box::pin(self.query(move |connection| key_values::sum(connection, &kind, &key)));
        }
        let add = move |connection: &Connection| {
            check_changeable(&kind)?;
            key_values::add(connection, &kind, &key, amount)
        };
        Box::pin(self.write(|reply| write_value(Task::new(reply, add))))
    }

    fn put<'a>(&'a self, kind: &'a str, key: &'a str, value: String) -> BoxFuture<'a, Result<(), Failure>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        let put = move |connection: &Connection| {
            check_changeable(&kind)?;
            key_values::put(connection, &kind, &key, &value)
        };
        Box::pin(self.write(|reply| write_value(Task::new(reply, put))))
    }

    fn insert<'a>(
        &'a self,
        kind: &'a str,
        key: &'a str,
        value: String,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        let insert = move |connection: &Connection| key_values::insert(connection, &kind, &key, &value);
        Box::pin(self.write(|reply| write_value(Task::new(reply, insert))))
    }

    fn insert_all<'a>(
        &'a self,
        kind: &'a str,
        records: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        let kind = kind.to_owned();
        let insert = move |connection: &Connection| key_values::insert_all(connection, &kind, &records);
        Box::pin(self.write(|reply| write_value(Task::new(reply, insert))))
    }

    fn remove<'a>(&'a self, kind: &'a str, key: &'a str) -> BoxFuture<'a, Result<bool, Failure>> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        let remove = move |connection: &Connection| {
            check_changeable(&kind)?;
            key_values::remove(connection, &kind, &key)
        };
        Box::pin(self.write(|reply| write_value(Task::new(reply, remove))))
    }

    fn records<'a>(
        &'a self,
        kind: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Failure>> {
        let (kind, after) = (kind.to_owned(), after.to_owned());
        Box::pin(self.query(move |connection| key_values::list(connection, &kind, &after, limit)))
    }

    /// The reader first: the writer then is the last connection of this process, and leaves one tidy file.
    fn close(&self) {
        self.reader.close();
        self.writer.close();
    }

    fn last_record<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Option<(String, String)>, Failure>> {
        let kind = kind.to_owned();
        Box::pin(self.query(move |connection| key_values::last(connection, &kind)))
    }
}

fn write_value(work: impl writer::Work + 'static) -> writer::Job {
    writer::Job::Write { session: None, size: 0, messages: 0, work: Box::new(work) }
}

fn run_queries(files: Arc<StoreFiles>, mut inbox: mpsc::Receiver<Query>) {
    let mut database = Database::new(files, Role::Reader);
    while let Some(query) = inbox.blocking_recv() {
        query(&mut database);
    }
}

fn holder(name: &str) -> String {
    format!("{name} (process {})", std::process::id())
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
