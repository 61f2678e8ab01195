//! Lists chats by the index rows, newest first.
//!
//! Must not know facts. Invariant: the cost of a page does not depend on how many chats come before it.

use domain::SessionId;
use domain::store::{ListFilter, ListPosition, SessionSummary};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Trouble, column, loaded_id, signed, stored_id, unsigned};
use crate::pool::Connection;

/// Rows that are read at a time.
const PAGE: i64 = 500;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, title, model, workspace, parent, created, updated, messages, newest, key
             FROM dragoman.sessions WHERE ",
            $rest
        )
    };
}

const LIST: &str = select!(
    "(updated, key) < ($1, $2) AND ($3::text[] IS NULL OR folders && $3) ORDER BY updated DESC, key DESC LIMIT $4"
);
const ONE: &str = select!("id = $1");

pub(crate) async fn list(
    connection: &mut Connection,
    filter: &ListFilter,
) -> Result<Vec<SessionSummary>, Trouble> {
    let text = filter.text.as_deref().map(str::to_lowercase);
    let limit = filter.limit.unwrap_or(usize::MAX);
    let folders: Option<Vec<String>> = filter
        .workspace
        .as_ref()
        .map(|folders| folders.iter().map(|folder| folder.to_string_lossy().replace('\0', "")).collect());
    let mut before = position(connection, filter.after.as_ref()).await?;
    let mut found = Vec::new();
    let statement =
        connection.statement(LIST, &[Type::INT8, Type::INT8, Type::TEXT_ARRAY, Type::INT8]).await?;
    // Titles are compared here, as the other store does it; without that filter one page is enough.
    let page = if text.is_some() { PAGE } else { i64::try_from(limit).unwrap_or(i64::MAX).min(PAGE) };
    while found.len() < limit {
        let rows = connection.client.query(&statement, &[&before.0, &before.1, &folders, &page]).await?;
        for row in &rows {
            let summary = summary(row)?;
            before = (signed(summary.updated_at), column(row, 9)?);
            let title = || summary.title.as_deref().unwrap_or_default().to_lowercase();
            if found.len() < limit && text.as_ref().is_none_or(|text| title().contains(text)) {
                found.push(summary);
            }
        }
        if (rows.len() as i64) < page {
            break;
        }
    }
    Ok(found)
}

pub(crate) async fn one(
    connection: &mut Connection,
    session: &SessionId,
) -> Result<Option<SessionSummary>, Trouble> {
    let statement = connection.statement(ONE, &[Type::TEXT]).await?;
    let row = connection.client.query_opt(&statement, &[&stored_id(session)]).await?;
    row.map(|row| summary(&row)).transpose()
}

/// Time and key of the last chat of the page before.
async fn position(connection: &mut Connection, after: Option<&ListPosition>) -> Result<(i64, i64), Trouble> {
    let Some(after) = after else { return Ok((i64::MAX, i64::MAX)) };
    let statement =
        connection.statement("SELECT key FROM dragoman.sessions WHERE id = $1", &[Type::TEXT]).await?;
    let row = connection.client.query_opt(&statement, &[&stored_id(&after.id)]).await?;
    // A chat that has been deleted since has no key: chats of that very millisecond are left out.
    let key = row.map_or(Ok(0), |row| column(&row, 0))?;
    Ok((signed(after.updated_at), key))
}

pub(crate) fn summary(row: &Row) -> Result<SessionSummary, Trouble> {
    let parent: Option<&str> = column(row, 4)?;
    Ok(SessionSummary {
        id: loaded_id(column(row, 0)?),
        title: column(row, 1)?,
        model: column(row, 2)?,
        workspace: serde_json::from_str(column(row, 3)?).unwrap_or_default(),
        parent: parent.map(loaded_id),
        created_at: unsigned(row, 5)?,
        updated_at: unsigned(row, 6)?,
        message_count: unsigned(row, 7)?,
        newest: unsigned(row, 8)?,
    })
}
