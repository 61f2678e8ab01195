//! Small values beside the chats, by kind and key: the cost of a day, the end of a rate limit.
//!
//! Must not know what a kind means. Invariant: no process loses the addition of another, and none is made twice.

use std::sync::{Mutex, PoisonError};

use domain::Failure;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error::{Trouble, column};
use crate::pool::Connection;

pub(crate) async fn get(
    connection: &mut Connection,
    kind: &str,
    key: &str,
) -> Result<Option<String>, Trouble> {
    let statement = connection
        .statement(
            "SELECT value FROM dragoman.records WHERE kind = $1 AND key = $2",
            &[Type::TEXT, Type::TEXT],
        )
        .await?;
    let row = connection.client.query_opt(&statement, &[&kind, &key]).await?;
    row.map(|row| column(&row, 0)).transpose()
}

pub(crate) async fn put(
    connection: &mut Connection,
    kind: &str,
    key: &str,
    value: &str,
) -> Result<(), Trouble> {
    let statement = connection
        .statement(
            "INSERT INTO dragoman.records (kind, key, value) VALUES ($1, $2, $3)
             ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
            &[Type::TEXT, Type::TEXT, Type::TEXT],
        )
        .await?;
    connection.client.execute(&statement, &[&kind, &key, &value]).await?;
    Ok(())
}

/// Says whether there was no record of this kind and key before. After a lost answer a second try may say no although the
/// first one did it: the caller compares what is there.
pub(crate) async fn insert(
    connection: &mut Connection,
    kind: &str,
    key: &str,
    value: &str,
) -> Result<bool, Trouble> {
    let statement = connection
        .statement(
            "INSERT INTO dragoman.records (kind, key, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            &[Type::TEXT, Type::TEXT, Type::TEXT],
        )
        .await?;
    Ok(connection.client.execute(&statement, &[&kind, &key, &value]).await? == 1)
}

/// All or none, because it is one statement. A second try after a lost answer may say no, as with `insert`.
pub(crate) async fn insert_all(
    connection: &mut Connection,
    kind: &str,
    records: &[(String, String)],
) -> Result<bool, Trouble> {
    let statement = connection
        .statement(
            "INSERT INTO dragoman.records (kind, key, value)
             SELECT $1, one.key, one.value FROM unnest($2, $3) AS one (key, value)",
            &[Type::TEXT, Type::TEXT_ARRAY, Type::TEXT_ARRAY],
        )
        .await?;
    let (keys, values): (Vec<&str>, Vec<&str>) =
        records.iter().map(|(key, value)| (key.as_str(), value.as_str())).unzip();
    match connection.client.execute(&statement, &[&kind, &keys, &values]).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Says whether there was one.
pub(crate) async fn remove(connection: &mut Connection, kind: &str, key: &str) -> Result<bool, Trouble> {
    let statement = connection
        .statement("DELETE FROM dragoman.records WHERE kind = $1 AND key = $2", &[Type::TEXT, Type::TEXT])
        .await?;
    Ok(connection.client.execute(&statement, &[&kind, &key]).await? == 1)
}

/// The records of a kind behind a key, in the order of the bytes of their keys.
pub(crate) async fn list(
    connection: &mut Connection,
    kind: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<(String, String)>, Trouble> {
    let statement = connection
        .statement(
            "SELECT key, value FROM dragoman.records WHERE kind = $1 AND key COLLATE \"C\" > $2
             ORDER BY key COLLATE \"C\" LIMIT $3",
            &[Type::TEXT, Type::TEXT, Type::INT8],
        )
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.client.query(&statement, &[&kind, &after, &limit]).await?;
    rows.iter().map(|row| Ok((column(row, 0)?, column(row, 1)?))).collect()
}

pub(crate) async fn last(
    connection: &mut Connection,
    kind: &str,
) -> Result<Option<(String, String)>, Trouble> {
    let statement = connection
        .statement(
            "SELECT key, value FROM dragoman.records WHERE kind = $1 ORDER BY key COLLATE \"C\" DESC LIMIT 1",
            &[Type::TEXT],
        )
        .await?;
    let row = connection.client.query_opt(&statement, &[&kind]).await?;
    row.map(|row| Ok((column(&row, 0)?, column(&row, 1)?))).transpose()
}

/// `unknown` keeps the transaction of a try whose outcome is not known, and the sum that it made.
pub(crate) async fn add(
    connection: &mut Connection,
    kind: &str,
    key: &str,
    amount: f64,
    unknown: &Mutex<Option<(String, f64)>>,
) -> Result<f64, Trouble> {
    if amount == 0.0 {
        return get(connection, kind, key).await?.map_or(Ok(0.0), |text| parse(kind, key, &text));
    }
    let earlier = unknown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((transaction, sum)) = earlier
        && is_committed(connection, &transaction).await?
    {
        return Ok(sum);
    }
    let transaction = connection.client.transaction().await?;
    transaction
        .execute(
            "INSERT INTO dragoman.records (kind, key, value) VALUES ($1, $2, '0') ON CONFLICT DO NOTHING",
            &[&kind, &key],
        )
        .await?;
    let row = transaction
        .query_one(
            "SELECT value, pg_current_xact_id()::text FROM dragoman.records
             WHERE kind = $1 AND key = $2 FOR UPDATE",
            &[&kind, &key],
        )
        .await?;
    let sum = parse(kind, key, column(&row, 0)?)? + amount;
    if !sum.is_finite() {
        return Err(Failure::user(format!("{amount} cannot be added to the record {kind}/{key}.")).into());
    }
    // Rust writes the shortest text that reads back as the same number.
    let value = sum.to_string();
    transaction
        .execute(
            "UPDATE dragoman.records SET value = $3 WHERE kind = $1 AND key = $2",
            &[&kind, &key, &value],
        )
        .await?;
    let id: String = column(&row, 1)?;
    *unknown.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, sum));
    transaction.commit().await?;
    Ok(sum)
}

fn parse(kind: &str, key: &str, text: &str) -> Result<f64, Trouble> {
    text.parse().map_err(|_| {
        Failure::internal(format!(
            "The stored record {kind}/{key} is not a number, so nothing can be added to it."
        ))
        .into()
    })
}

async fn is_committed(connection: &mut Connection, transaction: &str) -> Result<bool, Trouble> {
    let row = connection.client.query_one("SELECT pg_xact_status($1::text::xid8)", &[&transaction]).await?;
    let status: Option<String> = column(&row, 0)?;
    match status.as_deref() {
        Some("in progress") => Err(Trouble::Away("an earlier request is not finished".to_owned())),
        status => Ok(status == Some("committed")),
    }
}
