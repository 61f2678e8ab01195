//! Lists chats by the index rows, newest first.
//!
//! Must not know facts. Invariant: the cost of a page does not depend on how many chats come before it, and a page of a
//! folder costs no more than the chats of that folder or the page itself.

use domain::SessionId;
use domain::store::{ListFilter, ListPosition, SessionSummary};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::StoreError;
use crate::record::to_json;

/// Up to this many chats of a folder are read by folder and then sorted; more are found fast in the order of time.
const FEW: usize = 500;

const COLUMNS: &str = "id, title, model, workspace, parent, created, updated, messages, newest, key";

/// The same words as in the index `sessions_of_several_folders`, or SQLite does not use it.
const SEVERAL_FOLDERS: &str = "workspace LIKE '%\",\"%'";

pub(crate) fn list(connection: &Connection, filter: &ListFilter) -> Result<Vec<SessionSummary>, StoreError> {
    let before = position(connection, filter.after.as_ref())?;
    if let Some(mut rows) = rows_of_few(connection, filter)? {
        rows.retain(|(key, summary)| (summary.updated_at.cast_signed(), *key) < before);
        rows.sort_unstable_by_key(|(key, summary)| std::cmp::Reverse((summary.updated_at, *key)));
        rows.dedup_by_key(|(key, _)| *key);
        return Ok(take(rows.into_iter().map(|(_, summary)| Ok(summary)), filter)?);
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE (updated, key) < (?1, ?2) ORDER BY updated DESC, key DESC"
    ))?;
    let rows = statement.query_map(params![before.0, before.1], summary)?;
    Ok(take(rows, filter)?)
}

pub(crate) fn one(connection: &Connection, id: &str) -> Result<Option<SessionSummary>, StoreError> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
    Ok(statement.query_row([id], summary).optional()?)
}

/// Time and key of the last chat of the page before.
fn position(connection: &Connection, after: Option<&ListPosition>) -> Result<(i64, i64), StoreError> {
    let Some(after) = after else { return Ok((i64::MAX, i64::MAX)) };
    let key = connection
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([after.id.as_str()], |row| row.get(0))
        .optional()?;
    // A chat that has been deleted since has no key: chats of that very millisecond are left out.
    Ok((i64::try_from(after.updated_at).unwrap_or(i64::MAX), key.unwrap_or(0)))
}

/// The chats of the filter's folders in any order, unless there are many.
fn rows_of_few(
    connection: &Connection,
    filter: &ListFilter,
) -> Result<Option<Vec<(i64, SessionSummary)>>, StoreError> {
    let Some(folders) = &filter.workspace else { return Ok(None) };
    let mut found = Vec::new();
    let mut by_folder = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE workspace = ?1 LIMIT {}", FEW + 1))?;
    for folder in folders {
        let rows = by_folder.query_map([to_json(&[folder])?], |row| Ok((row.get(9)?, summary(row)?)))?;
        for row in rows {
            found.push(row?);
        }
    }
    let mut of_several = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE {SEVERAL_FOLDERS} LIMIT {}",
        FEW + 1
    ))?;
    for row in of_several.query_map([], |row| Ok((row.get(9)?, summary(row)?)))? {
        found.push(row?);
    }
    Ok((found.len() <= FEW).then_some(found))
}

/// The rows that match, up to the limit.
fn take(
    rows: impl Iterator<Item = rusqlite::Result<SessionSummary>>,
    filter: &ListFilter,
) -> rusqlite::Result<Vec<SessionSummary>> {
    let text = filter.text.as_deref().map(str::to_lowercase);
    let matching = rows.filter(|row| match row {
        Ok(summary) => matches(summary, filter, text.as_deref()),
        Err(_) => true,
    });
    matching.take(filter.limit.unwrap_or(usize::MAX)).collect()
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let workspace = row.get_ref(3)?.as_str()?;
    Ok(SessionSummary {
        id: SessionId::new(row.get::<_, String>(0)?),
        title: row.get(1)?,
        model: row.get(2)?,
        workspace: serde_json::from_str(workspace).unwrap_or_default(),
        parent: row.get::<_, Option<String>>(4)?.map(SessionId::new),
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        message_count: row.get(7)?,
        newest: row.get(8)?,
    })
}

/// `text` is in lower case already.
fn matches(summary: &SessionSummary, filter: &ListFilter, text: Option<&str>) -> bool {
    let in_workspace = filter
        .workspace
        .as_ref()
        .is_none_or(|folders| summary.workspace.iter().any(|one| folders.contains(one)));
    let title = || summary.title.as_deref().unwrap_or_default().to_lowercase();
    in_workspace && text.is_none_or(|text| title().contains(text))
}
