//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Must not know threads, files or leases. Invariants: the index changes only together with the facts it is made of;
//! numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::store::{Preview, SessionSummary};
use domain::{Failure, Recorded, SessionId};
use rusqlite::{Connection, OptionalExtension};

use crate::encoded::{self, EncodedFact, IndexUpdate, MessageCount, PAGE, decode};
use crate::error::StoreError;
use crate::{listing, search};

/// Milliseconds; lists find a chat by this part of its time. See `migrations`.
pub(crate) const QUARTER: u64 = 250;

/// The number and time that an append gave to its facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// The number of the first fact.
    pub(crate) first: u64,
    pub(crate) at: u64,
}

/// Must run inside a write transaction. `now`: milliseconds since 1970.
pub(crate) fn append(
    connection: &Connection,
    session: &SessionId,
    facts: &[EncodedFact],
    now: u64,
) -> Result<Stamp, StoreError> {
    let (key, newest, updated) = match index_row(connection, session)? {
        Some(row) => row,
        None => (open(connection, session, facts.first(), now)?, 0, 0),
    };
    let stamp = Stamp { first: newest + 1, at: now.max(updated) };
    let mut insert =
        connection.prepare_cached("INSERT INTO facts (place, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, fact) in (stamp.first..).zip(facts) {
        let key = fact_key(key, number)?;
        insert.execute((key, stamp.at, fact.kind(), fact.body()))?;
        if fact.is_searchable() {
            search::enqueue(connection, key)?;
        }
    }
    update_index(connection, key, facts, newest + facts.len() as u64, stamp.at)?;
    if stamp.at / QUARTER != updated / QUARTER {
        connection
            .prepare_cached("UPDATE sessions SET quarter = ?2 WHERE key = ?1")?
            .execute((key, stamp.at / QUARTER))?;
    }
    Ok(stamp)
}

/// Key, newest number and time of a chat.
fn index_row(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, u64, u64)>> {
    let mut statement =
        connection.prepare_cached("SELECT key, newest, updated FROM sessions WHERE id = ?1")?;
    statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
}

fn open(
    connection: &Connection,
    session: &SessionId,
    first: Option<&EncodedFact>,
    now: u64,
) -> Result<i64, StoreError> {
    if !first.is_some_and(EncodedFact::opens) {
        return Err(encoded::no_chat(session).into());
    }
    connection
        .prepare_cached(
            "INSERT INTO sessions (key, id, workspace, created, updated, messages, newest) VALUES (
                 1 + max(coalesce((SELECT max(key) FROM sessions), 0), (SELECT key FROM last_deleted)),
                 ?1, '[]', ?2, ?2, 0, 0)",
        )?
        .execute((session.as_str(), now))?;
    Ok(connection.last_insert_rowid())
}

fn update_index(
    connection: &Connection,
    key: i64,
    facts: &[EncodedFact],
    newest: u64,
    at: u64,
) -> Result<(), StoreError> {
    let IndexUpdate { title, model, opened, messages, replaced } = IndexUpdate::of(facts);
    if let Some((workspace, parent)) = opened {
        let mut statement =
            connection.prepare_cached("UPDATE sessions SET workspace = ?2, parent = ?3 WHERE key = ?1")?;
        statement.execute((key, workspace, parent))?;
    }
    let recounted = if replaced { Some(count_messages(connection, key)?) } else { None };
    connection
        .prepare_cached(
            "UPDATE sessions SET newest = ?2, updated = ?3, messages = coalesce(?4, messages + ?5),
                 title = coalesce(?6, title), model = coalesce(?7, model)
             WHERE key = ?1",
        )?
        .execute((key, newest, at, recounted, messages, title, model))?;
    Ok(())
}

/// Counts the messages that remain after a rollback; only the facts say which do.
fn count_messages(connection: &Connection, key: i64) -> Result<u64, StoreError> {
    let mut statement = connection.prepare(
        "SELECT number, kind, body FROM facts
         WHERE place BETWEEN ?1 AND ?2 AND kind IN ('itemStarted', 'itemEnded', 'historyReplaced') ORDER BY place",
    )?;
    let mut rows = statement.query((fact_key(key, 0)?, fact_key(key, MOST_FACTS)?))?;
    let mut count = MessageCount::default();
    while let Some(row) = rows.next()? {
        let kind = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let body = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        count.observe(row.get(0)?, kind, body)?;
    }
    Ok(count.total())
}

/// Makes the chat disappear at a cost that does not depend on its length; `delete_some` does the rest. Returns whether it
/// existed. Must run inside a write transaction.
pub(crate) fn hide(connection: &Connection, session: &SessionId) -> Result<bool, StoreError> {
    let Some((key, ..)) = index_row(connection, session)? else { return Ok(false) };
    connection.execute("INSERT INTO deleted (key) VALUES (?1)", [key])?;
    connection.execute("UPDATE last_deleted SET key = max(key, ?1)", [key])?;
    connection.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
    Ok(true)
}

/// Deletes up to `limit` facts of a hidden chat and returns how many there were. Must run inside a write transaction.
pub(crate) fn delete_some(connection: &Connection, key: i64, limit: usize) -> Result<usize, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT place FROM facts WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3")?;
    let facts = (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?, limit);
    let places: Vec<i64> = statement.query_map(facts, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for place in &places {
        search::remove(connection, *place)?;
        connection.prepare_cached("DELETE FROM facts WHERE place = ?1")?.execute([place])?;
    }
    Ok(places.len())
}

pub(crate) fn newest(connection: &Connection, session: &SessionId) -> Result<Option<u64>, StoreError> {
    Ok(index_row(connection, session)?.map(|(_, newest, _)| newest))
}

pub(crate) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    let Some((key, newest, _)) = index_row(connection, session)? else { return Ok(Vec::new()) };
    if after >= newest {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT number, at, kind, body FROM facts WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((fact_key(key, after)?, fact_key(key, MOST_FACTS)?, limit))?;
    let mut page = Vec::new();
    let mut size = 0;
    while size < PAGE
        && let Some(row) = rows.next()?
    {
        let kind = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let body = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
        page.push(decode(row.get(0)?, row.get(1)?, kind, body)?);
        size += body.len();
    }
    Ok(page)
}

pub(crate) fn preview(
    connection: &Connection,
    session: &SessionId,
    limit: usize,
) -> Result<Option<Preview>, StoreError> {
    let Some(SessionSummary { title, newest, .. }) = listing::one(connection, session.as_str())? else {
        return Ok(None);
    };
    let mut facts: Vec<Recorded> = Vec::new();
    loop {
        let after = facts.last().map_or(newest.saturating_sub(limit as u64), |last| last.number);
        let page = read(connection, session, after, limit)?;
        if page.is_empty() {
            return Ok(Some(Preview { title, facts }));
        }
        facts.extend(page);
    }
}

const MOST_FACTS: u64 = u32::MAX as u64;

/// A fact's primary key: the chat's key and the fact's number in one integer.
fn fact_key(key: i64, number: u64) -> Result<i64, StoreError> {
    match i64::try_from(number) {
        Ok(low) if number <= MOST_FACTS => Ok(key << 32 | low),
        _ => Err(Failure::user("This chat is full.").hint("Fork it or start a new one.").into()),
    }
}
