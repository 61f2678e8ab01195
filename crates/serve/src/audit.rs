//! The log of who did what: each entry carries a hash over itself and the hash before it.
//!
//! Must not know accounts or commands. Invariants: entries are numbered from 1 without gaps and only added; a log in which
//! an entry was changed, removed or put in does not verify; no entry has the text of a prompt or a token.

use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::store::AUDIT;
use domain::{Failure, Store};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::{Mutex, oneshot};

/// Entries read at a time.
const PAGE: usize = 500;
/// Tries to get a number that no other process took.
const TRIES: usize = 100;
/// The longest detail or id of a chat, in characters.
const LONGEST_DETAIL: usize = 300;

/// Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    store: Arc<dyn Store>,
    waiting: Arc<SyncMutex<Vec<WaitingEntry>>>,
    /// One group of entries of this process is written at a time.
    writing: Arc<Mutex<()>>,
}

/// An entry that will be written with all others that wait: one wait for the disk serves them all.
struct WaitingEntry {
    body: String,
    written: oneshot::Sender<Result<(), Failure>>,
}

/// What is written.
#[derive(Clone, Copy, Default)]
pub struct Act<'a> {
    /// The account, or who is at the machine itself.
    pub who: &'a str,
    pub action: &'a str,
    pub chat: Option<&'a str>,
    pub detail: Option<&'a str>,
}

/// An entry as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    pub number: u64,
    pub hash: String,
    /// `at`, `who`, `action`, `chat`, `detail`.
    pub body: Value,
}

/// What the check of the whole log found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verified {
    /// The count of entries and the hash of the last one: whoever notes it can tell later that nothing was cut off.
    Whole { count: u64, head: String },
    /// The first entry that does not fit.
    Broken { number: u64 },
}

impl Audit {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, waiting: Arc::default(), writing: Arc::default() }
    }

    /// Returns after the entry is stored.
    pub async fn write(&self, act: Act<'_>) -> Result<(), Failure> {
        let cut = |text: &str| text.chars().take(LONGEST_DETAIL).collect::<String>();
        let (chat, detail) = (act.chat.map(cut), act.detail.map(cut));
        // The nonce tells an entry of this process from an equal one of another.
        let nonce = web::random_id().map_err(|error| Failure::internal(error.to_string()))?;
        let body = json!({
            "at": now(), "who": act.who, "action": act.action, "chat": chat, "detail": detail,
            "nonce": nonce.get(..8),
        })
        .to_string();
        let (written, outcome) = oneshot::channel();
        self.lock_waiting().push(WaitingEntry { body, written });
        // A task of its own: a caller that goes away must not take the entries of others along.
        tokio::spawn(self.clone().write_waiting());
        outcome.await.unwrap_or_else(|_| Err(not_written()))
    }

    /// Writes what waits, in the order in which it came. Each caller starts one, so nothing waits for ever.
    async fn write_waiting(self) {
        let _turn = self.writing.lock().await;
        let group: Vec<WaitingEntry> = {
            let mut waiting = self.lock_waiting();
            let count = waiting.len().min(PAGE);
            waiting.drain(..count).collect()
        };
        if group.is_empty() {
            return;
        }
        let bodies: Vec<&str> = group.iter().map(|entry| entry.body.as_str()).collect();
        let outcome = self.insert(&bodies).await;
        for entry in group {
            let _ = entry.written.send(outcome.clone());
        }
    }

    async fn insert(&self, bodies: &[&str]) -> Result<(), Failure> {
        for _ in 0..TRIES {
            let (mut number, mut hash) = match self.store.last_record(AUDIT).await? {
                Some((key, value)) => (key.parse().unwrap_or(0_u64), hash_of(&value).to_owned()),
                None => (0, String::new()),
            };
            let mut records = Vec::with_capacity(bodies.len());
            for body in bodies {
                (number, hash) = (number + 1, chain(&hash, body));
                records.push((key(number), format!("{hash} {body}")));
            }
            let Some((last, value)) = records.last().cloned() else { return Ok(()) };
            // The last one stands for all: none is stored without the others.
            if self.store.insert_all(AUDIT, records).await?
                || self.store.get(AUDIT, &last).await?.is_some_and(|stored| stored == value)
            {
                return Ok(());
            }
        }
        Err(not_written())
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Vec<WaitingEntry>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries after a number, oldest first.
    pub async fn read(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Failure> {
        let records = self.store.records(AUDIT, &key(after), limit.min(PAGE)).await?;
        Ok(records.iter().map(|(key, value)| entry(key, value)).collect())
    }

    pub async fn verify(&self) -> Result<Verified, Failure> {
        let (mut count, mut head) = (0, String::new());
        loop {
            let page = self.store.records(AUDIT, &key(count), PAGE).await?;
            if page.is_empty() {
                return Ok(Verified::Whole { count, head });
            }
            for (found, value) in page {
                let (hash, body) = value.split_once(' ').unwrap_or_default();
                let number = count + 1;
                if found != key(number) || hash != chain(&head, body) {
                    return Ok(Verified::Broken { number });
                }
                (count, head) = (number, hash.to_owned());
            }
        }
    }
}

fn not_written() -> Failure {
    Failure::internal("The audit log could not be written.")
}

fn entry(key: &str, value: &str) -> Entry {
    let body = value.split_once(' ').map_or(value, |(_, body)| body);
    Entry {
        number: key.parse().unwrap_or(0),
        hash: hash_of(value).to_owned(),
        body: serde_json::from_str(body).unwrap_or_default(),
    }
}

/// Keys in the order of their numbers.
fn key(number: u64) -> String {
    format!("{number:020}")
}

fn hash_of(value: &str) -> &str {
    value.split_once(' ').map_or("", |(hash, _)| hash)
}

fn chain(previous: &str, body: &str) -> String {
    hex(digest(&SHA256, format!("{previous}\n{body}").as_bytes()).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
