//! Lists chats by the index rows, newest first.
//!
//! Must not know facts. Invariant: the cost of a page depends neither on how many chats come before it nor on how many
//! there are, also in a folder, unless titles are searched. Only chats of several folders are all looked at.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::iter::Peekable;

use domain::store::{ListFilter, ListPosition, SessionSummary};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::index_row::{COLUMNS, IndexRow, QUARTER};
use crate::record::to_json;
use crate::scan;

/// The same words as in the index `sessions_of_several_folders`, or SQLite does not use it.
const SEVERAL_FOLDERS: &str = "workspace LIKE '%\",\"%'";

pub(crate) fn list(connection: &Connection, filter: &ListFilter) -> Result<Vec<SessionSummary>, StoreError> {
    match list_by_indexes(connection, filter) {
        Err(error) if error.is_damage() => Ok(list_readable(connection, filter)),
        listed => listed,
    }
}

/// Where the table or its indexes are damaged: the rows that can be read, and the ids of the others.
fn list_readable(connection: &Connection, filter: &ListFilter) -> Vec<SessionSummary> {
    let mut rows = IndexRow::readable(connection);
    scan::scan(connection, scan::IDS, |row| {
        if let (Ok(key), Ok(id)) = (row.get::<_, i64>(0), row.get::<_, String>(1)) {
            rows.entry(id.clone()).or_insert_with(|| IndexRow::lost(key, id));
        }
    });
    let last = filter.after.as_ref().map(|after| {
        let key = rows.get(after.id.as_str()).map_or(0, |row| row.key);
        (after.updated_at, key)
    });
    let mut rows: Vec<IndexRow> = rows.into_values().collect();
    rows.retain(|row| last.is_none_or(|last| (row.updated, row.key) < last));
    rows.sort_by_key(|row| Reverse((row.updated, row.key)));
    let text = filter.text.as_deref().map(str::to_lowercase);
    // Nobody knows the folder of a damaged one.
    let listed = rows.into_iter().map(|row| (row.is_whole(), row.into_summary()));
    let listed = listed.filter(|(is_whole, row)| !is_whole || matches(row, filter, text.as_deref()));
    listed.map(|(_, summary)| summary).take(filter.limit.unwrap_or(usize::MAX)).collect()
}

fn list_by_indexes(connection: &Connection, filter: &ListFilter) -> Result<Vec<SessionSummary>, StoreError> {
    let (updated, key) = position(connection, filter.after.as_ref())?;
    let query = |condition: &str, workspace: Option<String>| -> Result<_, StoreError> {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions
             WHERE {condition} AND quarter <= ?1 / {QUARTER} AND (updated, key) < (?1, ?2)
             ORDER BY quarter DESC, updated DESC, key DESC"
        ))?;
        statement.raw_bind_parameter(1, updated)?;
        statement.raw_bind_parameter(2, key)?;
        if let Some(workspace) = workspace {
            statement.raw_bind_parameter(3, workspace)?;
        }
        Ok(statement)
    };
    let mut queries = Vec::new();
    match &filter.workspace {
        None => queries.push(query("TRUE", None)?),
        Some(folders) => {
            for folder in folders.iter().collect::<HashSet<_>>() {
                queries.push(query("workspace = ?3", Some(to_json(&[folder])?))?);
            }
            queries.push(query(SEVERAL_FOLDERS, None)?);
        }
    }
    let text = filter.text.as_deref().map(str::to_lowercase);
    let mut rows: Vec<_> =
        queries.iter_mut().map(|query| query.raw_query().mapped(keyed_summary).peekable()).collect();
    let mut found = Vec::new();
    while found.len() < filter.limit.unwrap_or(usize::MAX)
        && let Some(newest) = newest_of(&mut rows)
    {
        let (_, summary) = newest?;
        if matches(&summary, filter, text.as_deref()) {
            found.push(summary);
        }
    }
    Ok(found)
}

/// Takes the newest of the next rows of all queries; each query gives its rows newest first. Errors come first.
fn newest_of<I: Iterator<Item = rusqlite::Result<(i64, SessionSummary)>>>(
    queries: &mut [Peekable<I>],
) -> Option<I::Item> {
    let place = |row: &I::Item| match row {
        Ok((key, summary)) => (summary.updated_at, *key),
        Err(_) => (u64::MAX, i64::MAX),
    };
    let next = queries.iter_mut().filter_map(|query| Some((query.peek().map(place)?, query)));
    next.max_by_key(|(place, _)| *place)?.1.next()
}

pub(crate) fn one(connection: &Connection, id: &str) -> Result<Option<SessionSummary>, StoreError> {
    Ok(IndexRow::find(connection, id)?.map(IndexRow::into_summary))
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

fn keyed_summary(row: &Row<'_>) -> rusqlite::Result<(i64, SessionSummary)> {
    let row = IndexRow::read(row);
    Ok((row.key, row.into_summary()))
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
