//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Must not know threads, files or leases. Invariants: the index changes only together with the facts it is made of;
//! numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::store::Preview;
use domain::{Failure, Recorded, SessionId};
use rusqlite::{Connection, Row};

use crate::encoded::{self, EncodedFact, FactOrder, IndexUpdate, MessageCount, PAGE, damaged_chat, decode};
use crate::error::StoreError;
use crate::fact_place::{MOST_FACTS, fact_key};
use crate::index_row::{IndexRow, QUARTER};
use crate::search::Words;
use crate::{checksum, search};

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
    let mut row = match IndexRow::find(connection, session.as_str())? {
        Some(row) => {
            row.check()?;
            row
        }
        None if facts.first().is_some_and(EncodedFact::opens) => {
            IndexRow::insert(connection, session.as_str(), now)?
        }
        None => return Err(encoded::no_chat(session).into()),
    };
    let updated = row.updated;
    let stamp = Stamp { first: row.newest + 1, at: now.max(updated) };
    let mut insert = connection
        .prepare_cached("INSERT INTO facts (place, at, kind, body, sum) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (number, fact) in (stamp.first..).zip(facts) {
        let place = fact_key(row.key, number)?;
        let sum = checksum::of_fact(&place.to_le_bytes(), stamp.at, fact.kind(), fact.body());
        insert.execute((place, stamp.at, fact.kind(), fact.body(), sum))?;
        if fact.is_searchable() {
            search::enqueue(connection, place)?;
        }
    }
    let update = IndexUpdate::of(facts);
    row.newest += facts.len() as u64;
    row.updated = stamp.at;
    row.messages += update.messages;
    row.update(connection, &update)?;
    if update.replaced {
        row.messages = count_messages(connection, row.key)?;
    }
    row.save(connection)?;
    if stamp.at / QUARTER != updated / QUARTER {
        connection
            .prepare_cached("UPDATE sessions SET quarter = ?2 WHERE key = ?1")?
            .execute((row.key, stamp.at / QUARTER))?;
    }
    Ok(stamp)
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
    let Some(IndexRow { key, .. }) = IndexRow::find(connection, session.as_str())? else { return Ok(false) };
    connection.execute("INSERT INTO deleted (key) VALUES (?1)", [key])?;
    connection.execute("UPDATE last_deleted SET key = max(key, ?1)", [key])?;
    connection.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
    Ok(true)
}

/// Deletes up to `limit` facts of a hidden chat and returns how many there were. Must run inside a write transaction.
pub(crate) fn delete_some(
    connection: &Connection,
    key: i64,
    limit: usize,
    words: Words,
) -> Result<usize, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT place FROM facts WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3")?;
    let facts = (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?, limit);
    let places: Vec<i64> = statement.query_map(facts, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for place in &places {
        search::remove(connection, *place, words)?;
        connection.prepare_cached("DELETE FROM facts WHERE place = ?1")?.execute([place])?;
    }
    Ok(places.len())
}

/// Gives up to `limit` facts after a place their checksums, where they have none. Returns the place of the last one; none where
/// none was left. Must run inside a write transaction.
pub(crate) fn sum_some(connection: &Connection, after: i64, limit: usize) -> Result<Option<i64>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT place, at, kind, body FROM facts WHERE place > ?1 AND sum IS NULL ORDER BY place LIMIT ?2",
    )?;
    let mut rows = select.query((after, limit))?;
    let (mut sums, mut last, mut size) = (Vec::new(), None, 0);
    while size < PAGE
        && let Some(row) = rows.next()?
    {
        let place: i64 = row.get(0)?;
        last = Some(place);
        // A damaged one stays as it is.
        if let (Ok(at), Ok(kind), Ok(body)) =
            (row.get::<_, u64>(1), row.get::<_, String>(2), row.get::<_, String>(3))
        {
            sums.push((place, checksum::of_fact(&place.to_le_bytes(), at, &kind, &body)));
            size += body.len();
        }
    }
    let mut update = connection.prepare_cached("UPDATE facts SET sum = ?2 WHERE place = ?1")?;
    sums.iter().try_for_each(|sum| update.execute(*sum).map(drop))?;
    Ok(last)
}

pub(crate) fn newest(connection: &Connection, session: &SessionId) -> Result<Option<u64>, StoreError> {
    let Some(row) = IndexRow::find(connection, session.as_str())? else { return Ok(None) };
    row.check()?;
    Ok(Some(row.newest))
}

pub(crate) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    // The row and the facts are those of one state of the file.
    let snapshot = connection.unchecked_transaction()?;
    let Some(row) = IndexRow::find(&snapshot, session.as_str())? else { return Ok(Vec::new()) };
    row.check()?;
    read_page(&snapshot, &row, after, limit).map_err(|error| error.of_chat(&row.name()))
}

fn read_page(
    connection: &Connection,
    row: &IndexRow,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    if after >= row.newest {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT place, at, kind, body, sum FROM facts WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((fact_key(row.key, after)?, fact_key(row.key, MOST_FACTS)?, most))?;
    let mut page = Vec::new();
    let mut order = FactOrder::new(after, row.newest);
    let mut size = 0;
    while size < PAGE {
        let Some(found) = rows.next()? else {
            if page.len() < limit {
                order.check_end(&row.name())?;
            }
            break;
        };
        let place: i64 = found.get(0)?;
        order.check_next(&row.name(), place.cast_unsigned() & MOST_FACTS)?;
        let (fact, length) = read_fact(row, place, found)?;
        page.push(fact);
        size += length;
    }
    Ok(page)
}

/// The fact and the length of its body, where its checksum matches.
fn read_fact(row: &IndexRow, place: i64, found: &Row<'_>) -> Result<(Recorded, usize), StoreError> {
    let number = place.cast_unsigned() & MOST_FACTS;
    let changed = || damaged_chat(&row.name(), &format!("its fact {number} was changed"));
    let (Ok(at), Ok(kind), Ok(body), Ok(sum)) = (
        found.get::<_, u64>(1),
        found.get_ref(2)?.as_str(),
        found.get_ref(3)?.as_str(),
        found.get::<_, Option<i64>>(4),
    ) else {
        return Err(changed().into());
    };
    let is_whole = match sum {
        Some(sum) => sum == checksum::of_fact(&place.to_le_bytes(), at, kind, body),
        None => number <= row.unsummed,
    };
    if !is_whole {
        return Err(changed().into());
    }
    match decode(number, at, kind, body) {
        Ok(fact) => Ok((fact, body.len())),
        // Without a checksum it is more likely damage than a fact of a newer build.
        Err(_) if sum.is_none() => Err(changed().into()),
        Err(failure) => {
            let message = failure.message.replace("this chat", &format!("the chat {}", row.name()));
            Err(Failure { message, ..failure }.into())
        }
    }
}

pub(crate) fn preview(
    connection: &Connection,
    session: &SessionId,
    limit: usize,
) -> Result<Option<Preview>, StoreError> {
    let Some(row) = IndexRow::find(connection, session.as_str())? else { return Ok(None) };
    row.check()?;
    let mut facts: Vec<Recorded> = Vec::new();
    loop {
        let after = facts.last().map_or(row.newest.saturating_sub(limit as u64), |last| last.number);
        let page = read(connection, session, after, limit)?;
        if page.is_empty() {
            return Ok(Some(Preview { title: row.title, facts }));
        }
        facts.extend(page);
    }
}
