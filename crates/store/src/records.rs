//! Small values beside the chats, by kind and key: what a day has cost, when a rate limit ends.
//!
//! Must not know what a kind means. Invariant: a sum is added up inside a write transaction, so no addition of
//! another process is lost.

use domain::Failure;
use rusqlite::{Connection, OptionalExtension};

use crate::trouble::Trouble;

pub fn get(connection: &Connection, kind: &str, key: &str) -> Result<Option<String>, Trouble> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM records WHERE kind = ?1 AND key = ?2")?;
    Ok(statement.query_row([kind, key], |row| row.get(0)).optional()?)
}

pub fn put(connection: &Connection, kind: &str, key: &str, value: &str) -> Result<(), Trouble> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO records (kind, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET value = excluded.value",
    )?;
    statement.execute([kind, key, value])?;
    Ok(())
}

pub fn remove(connection: &Connection, kind: &str, key: &str) -> Result<(), Trouble> {
    connection.execute("DELETE FROM records WHERE kind = ?1 AND key = ?2", [kind, key])?;
    Ok(())
}

/// The number that is stored; 0 where there is none.
pub fn sum(connection: &Connection, kind: &str, key: &str) -> Result<f64, Trouble> {
    let Some(text) = get(connection, kind, key)? else { return Ok(0.0) };
    text.parse().map_err(|_| {
        Failure::internal(format!(
            "The stored record {kind}/{key} is not a number, so nothing can be added to it."
        ))
        .into()
    })
}

/// Must run inside a write transaction.
pub fn add(connection: &Connection, kind: &str, key: &str, amount: f64) -> Result<f64, Trouble> {
    let sum = sum(connection, kind, key)? + amount;
    if !sum.is_finite() {
        return Err(Failure::user(format!("{amount} cannot be added to the record {kind}/{key}.")).into());
    }
    // Rust writes the shortest text that reads back as the same number.
    put(connection, kind, key, &sum.to_string())?;
    Ok(sum)
}
