//! Appends of many chats in one statement, so that they share one commit.
//!
//! Must not decide about an append that did not go through: the ordinary way does. Invariants: a chat is in a group only with
//! the lease and the newest number that its append expects; a group waits for no lock of a lease that another request has, so
//! it can wait for nobody in a circle; chats of a group that failed or left a chat out are appended one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::SessionId;
use store::shared::IndexUpdate;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

use crate::chat::{Page, checksum, plain};
use crate::error::{Trouble, signed, stored_id, unsigned};
use crate::lease::HeldLease;
use crate::pool::{Connection, Pool};

/// Fewer appends at once have a connection each, and need no group.
const MIN_APPENDS: usize = 4;
/// Groups on their way at once: the next one gathers meanwhile.
const MAX_GROUPS: usize = 2;
const MAX_CHATS: usize = 256;
const MAX_BYTES: usize = 1 << 20;

/// An append that waits for its group.
struct Waiting {
    session: SessionId,
    held: Arc<HeldLease>,
    before: u64,
    page: Arc<Page>,
    /// The time of the newest fact; `None`: it was not appended by the group, or nobody knows.
    appended: oneshot::Sender<Option<u64>>,
}

#[derive(Default)]
struct GroupQueue {
    waiting: Vec<Waiting>,
    /// Groups that are being written.
    running: usize,
}

pub(crate) struct Groups {
    pool: Arc<Pool>,
    queue: Mutex<GroupQueue>,
    appends: AtomicUsize,
    attempt: Duration,
}

/// An append that has begun, by whichever way.
pub(crate) struct BegunAppend<'a>(&'a AtomicUsize);

impl Drop for BegunAppend<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Groups {
    pub(crate) fn new(pool: Arc<Pool>, attempt: Duration) -> Self {
        Self { pool, queue: Mutex::default(), appends: AtomicUsize::new(0), attempt }
    }

    /// Counts an append until it ends.
    pub(crate) fn begin(&self) -> BegunAppend<'_> {
        self.appends.fetch_add(1, Ordering::Relaxed);
        BegunAppend(&self.appends)
    }

    /// Appends with others after the fact `before`. Returns the time of the newest fact, or `None` where the ordinary way must
    /// do it or find out whether it is done.
    pub(crate) async fn append(
        self: &Arc<Self>,
        session: &SessionId,
        held: &Arc<HeldLease>,
        before: u64,
        page: &Arc<Page>,
    ) -> Option<u64> {
        if self.appends.load(Ordering::Relaxed) < MIN_APPENDS || !is_simple(held, before, page) {
            return None;
        }
        let (appended, outcome) = oneshot::channel();
        let (session, held, page) = (session.clone(), held.clone(), page.clone());
        {
            let mut queue = self.lock();
            queue.waiting.push(Waiting { session, held, before, page, appended });
            if queue.running < MAX_GROUPS {
                queue.running += 1;
                tokio::spawn(self.clone().write_groups());
            }
        }
        outcome.await.ok().flatten()
    }

    /// Writes what waits until nothing does.
    async fn write_groups(self: Arc<Self>) {
        while let Some(group) = self.next() {
            let chats = &group;
            let mut attempt = |mut connection: Connection| async move {
                let appended = append(&mut connection, chats).await;
                (connection, appended)
            };
            let times = self.pool.once(self.attempt, &mut attempt).await.unwrap_or_else(|trouble| {
                tracing::debug!(?trouble, "a group of appends did not go through");
                Vec::new()
            });
            let mut by_place = vec![None; group.len()];
            for (place, at) in times {
                if let Some(known) = usize::try_from(place).ok().and_then(|place| by_place.get_mut(place)) {
                    *known = Some(at);
                }
            }
            for (waiting, at) in group.into_iter().zip(by_place) {
                let _ = waiting.appended.send(at);
            }
        }
    }

    /// The next group; `None` ends this writer, under the same lock that an append looks for one.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.lock();
        // An append that nobody waits for must not happen later.
        queue.waiting.retain(|waiting| !waiting.appended.is_closed());
        if queue.waiting.is_empty() {
            queue.running -= 1;
            return None;
        }
        let mut size = 0;
        let fit = queue.waiting.iter().take(MAX_CHATS).take_while(|waiting| {
            size += waiting.page.size();
            size <= MAX_BYTES
        });
        let count = fit.count().max(1);
        Some(queue.waiting.drain(..count).collect())
    }

    fn lock(&self) -> MutexGuard<'_, GroupQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Facts of a chat that exists, under a lease that needs no renewal now, which change nothing but their counts.
fn is_simple(held: &HeldLease, before: u64, page: &Page) -> bool {
    let update = IndexUpdate::of(&page.facts);
    before > 0
        && page.has_own_times()
        && !update.replaced
        && update.opened.is_none()
        && held.due_renewal().is_none()
}

const APPEND: &str = "
    WITH asked AS (
        SELECT * FROM unnest($1, $2, $4, $5, $6, $7, $8) WITH ORDINALITY
            AS one (session, token, before, count, messages, title, model, place)
    ), held AS (
        SELECT leases.session, leases.followed FROM dragoman.leases
        JOIN asked ON asked.session = leases.session AND asked.token = leases.token
        WHERE leases.owner = $3 FOR UPDATE OF leases SKIP LOCKED
    ), clock AS (
        SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
    ), chat AS (
        UPDATE dragoman.sessions AS one SET newest = one.newest + asked.count,
            messages = one.messages + asked.messages, updated = greatest(one.updated, clock.now),
            title = coalesce(asked.title, one.title), model = coalesce(asked.model, one.model)
        FROM asked, held, clock
        WHERE held.session = asked.session AND one.id = asked.session AND one.newest = asked.before
        RETURNING one.key, one.id, one.updated, asked.before, asked.place
    ), new_facts AS (
        INSERT INTO dragoman.facts (session, number, at, kind, body, sum)
        SELECT chat.key, chat.before + fact.number, chat.updated, fact.kind, fact.body, fact.sum
        FROM unnest($9, $10, $11, $12, $13) AS fact (place, number, kind, body, sum)
        JOIN chat ON chat.place = fact.place
    ), new_words AS (
        INSERT INTO dragoman.search (session, number, words)
        SELECT chat.key, chat.before + fact.number, array_to_tsvector(string_to_array(fact.words, ' '))
        FROM unnest($9, $10, $14) AS fact (place, number, words)
        JOIN chat ON chat.place = fact.place WHERE fact.words <> ''
    )
    SELECT chat.place, chat.updated, (
        SELECT count(pg_notify('dragoman', left(held.session, 500)))
        FROM held WHERE held.session = chat.id AND held.followed > clock_timestamp()
    ) FROM chat";

const TYPES: [Type; 14] = [
    Type::TEXT_ARRAY, // 1: the chats
    Type::INT8_ARRAY, // 2: the tokens of their leases
    Type::TEXT,       // 3: the owner of all of them
    Type::INT8_ARRAY, // 4: the newest number of each so far
    Type::INT8_ARRAY, // 5: facts of each
    Type::INT8_ARRAY, // 6: messages among them
    Type::TEXT_ARRAY, // 7: titles
    Type::TEXT_ARRAY, // 8: models
    Type::INT8_ARRAY, // 9: for each fact the place of its chat, from 1
    Type::INT8_ARRAY, // 10: its number behind the newest
    Type::TEXT_ARRAY, // 11: kinds
    Type::TEXT_ARRAY, // 12: bodies
    Type::INT8_ARRAY, // 13: checksums
    Type::TEXT_ARRAY, // 14: words
];

/// The facts of all chats, one list for each column.
#[derive(Default)]
struct FactColumns<'a> {
    places: Vec<i64>,
    numbers: Vec<i64>,
    kinds: Vec<&'a str>,
    bodies: Vec<&'a str>,
    sums: Vec<i64>,
    words: Vec<&'a str>,
}

impl<'a> FactColumns<'a> {
    fn of(group: &'a [Waiting]) -> Self {
        let mut columns = Self::default();
        for (place, waiting) in (1..).zip(group) {
            for (number, (fact, words)) in (1_u64..).zip(waiting.page.facts.iter().zip(&waiting.page.words)) {
                columns.places.push(place);
                columns.numbers.push(signed(number));
                columns.kinds.push(fact.kind());
                columns.bodies.push(fact.body());
                let number = waiting.before + number;
                columns.sums.push(checksum(&waiting.session, number, fact.kind(), fact.body()));
                columns.words.push(words);
            }
        }
        columns
    }
}

/// The places of the chats that were appended to, from 0, with the time of their newest fact.
async fn append(connection: &mut Connection, group: &[Waiting]) -> Result<Vec<(u64, u64)>, Trouble> {
    let Some(first) = group.first() else { return Ok(Vec::new()) };
    let statement = connection.statement(APPEND, &TYPES).await?;
    let updates: Vec<IndexUpdate<'_>> =
        group.iter().map(|waiting| IndexUpdate::of(&waiting.page.facts)).collect();
    let sessions: Vec<String> =
        group.iter().map(|waiting| stored_id(&waiting.session).into_owned()).collect();
    let tokens: Vec<i64> = group.iter().map(|waiting| waiting.held.token).collect();
    let before: Vec<i64> = group.iter().map(|waiting| signed(waiting.before)).collect();
    let counts: Vec<i64> = group.iter().map(|waiting| signed(waiting.page.facts.len() as u64)).collect();
    let messages: Vec<i64> = updates.iter().map(|update| signed(update.messages)).collect();
    let titles: Vec<Option<String>> =
        updates.iter().map(|update| update.title.map(|text| plain(text))).collect();
    let models: Vec<Option<String>> =
        updates.iter().map(|update| update.model.map(|text| plain(text))).collect();
    let facts = FactColumns::of(group);
    let rows = connection
        .client
        .query(
            &statement,
            &[
                &sessions,
                &tokens,
                &first.held.owner,
                &before,
                &counts,
                &messages,
                &titles,
                &models,
                &facts.places,
                &facts.numbers,
                &facts.kinds,
                &facts.bodies,
                &facts.sums,
                &facts.words,
            ],
        )
        .await?;
    rows.iter().map(|row| Ok((unsigned(row, 0)?.saturating_sub(1), unsigned(row, 1)?))).collect()
}
