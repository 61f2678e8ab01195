//! Small values beside the chats, by kind and key: the cost of a day, the end of a rate limit.
//!
//! Must not know what a kind means. Invariant: additions run inside a write transaction, so no process loses the
//! addition of another.

use domain::Failure;
use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;

pub(crate) fn get(connection: &Connection, kind: &str, key: &str) -> Result<Option<String>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM records WHERE kind = ?1 AND key = ?2")?;
    Ok(statement.query_row([kind, key], |row| row.get(0)).optional()?)
}

pub(crate) fn put(connection: &Connection, kind: &str, key: &str, value: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO records (kind, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET value = excluded.value",
    )?;
    statement.execute([kind, key, value])?;
    Ok(())
}

/// Says whether there was no record of this kind and key before.
pub(crate) fn insert(
    connection: &Connection,
    kind: &str,
    key: &str,
    value: &str,
) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO records (kind, key, value) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    Ok(statement.execute([kind, key, value])? == 1)
}

/// All or none. It runs inside a write transaction, so no other process can take a key after the look.
pub(crate) fn insert_all(
    connection: &Connection,
    kind: &str,
    records: &[(String, String)],
) -> Result<bool, StoreError> {
    for (key, _) in records {
        if get(connection, kind, key)?.is_some() {
            return Ok(false);
        }
    }
    for (key, value) in records {
        insert(connection, kind, key, value)?;
    }
    Ok(true)
}

/// Says whether there was one.
pub(crate) fn remove(connection: &Connection, kind: &str, key: &str) -> Result<bool, StoreError> {
    Ok(connection.execute("DELETE FROM records WHERE kind = ?1 AND key = ?2", [kind, key])? == 1)
}

/// The records of a kind behind a key, in the order of their keys.
pub(crate) fn list(
    connection: &Connection,
    kind: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<(String, String)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT key, value FROM records WHERE kind = ?1 AND key > ?2 ORDER BY key LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        statement.query_map(rusqlite::params![kind, after, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn last(connection: &Connection, kind: &str) -> Result<Option<(String, String)>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT key, value FROM records WHERE kind = ?1 ORDER BY key DESC LIMIT 1")?;
    Ok(statement.query_row([kind], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// The number that is stored; 0 where there is none.
pub(crate) fn sum(connection: &Connection, kind: &str, key: &str) -> Result<f64, StoreError> {
    let Some(text) = get(connection, kind, key)? else { return Ok(0.0) };
    text.parse().map_err(|_| {
        Failure::internal(format!(
            "The stored record {kind}/{key} is not a number, so nothing can be added to it."
        ))
        .into()
    })
}

/// Must run inside a write transaction.
pub(crate) fn add(connection: &Connection, kind: &str, key: &str, amount: f64) -> Result<f64, StoreError> {
    let sum = sum(connection, kind, key)? + amount;
    if !sum.is_finite() {
        return Err(Failure::user(format!("{amount} cannot be added to the record {kind}/{key}.")).into());
    }
    // Rust writes the shortest text that reads back as the same number.
    put(connection, kind, key, &sum.to_string())?;
    Ok(sum)
}
