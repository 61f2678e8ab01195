//! A full-text index of the messages, and the list of messages that wait to be indexed.
//!
//! The index holds words and no text; a hit's text is read from its fact. Its rows are named by the keys of the facts.
//! Invariants: a message that is stored is found; a message that is deleted leaves no word behind.

use domain::store::{SearchHit, SearchQuery};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::record::decode_fact;
use crate::searchable::searchable;
use crate::{checksum, listing};

/// Characters of a hit's text, around the first word that was found.
const EXCERPT: usize = 160;

/// Messages that are indexed in one transaction, and the bytes of text after which no further one is.
const STEP: usize = 32;
const MOST_TEXT: usize = 16 << 10;

/// Pages of the index that are merged in one transaction.
const MERGE_STEP: usize = 16;

/// Messages that a search reads because they are not indexed yet.
const MOST_READ: usize = 1000;

/// Remembers a message to be indexed: a change of the index writes many pages, a row of this list hardly one.
pub(crate) fn enqueue(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO unindexed (place) VALUES (?1)")?.execute([key])?;
    Ok(())
}

pub(crate) fn queue_length(connection: &Connection) -> rusqlite::Result<usize> {
    connection.prepare_cached("SELECT count(*) FROM unindexed")?.query_row([], |row| row.get(0))
}

/// Indexes some of the messages that wait for it. Must run inside a write transaction.
pub(crate) fn index_some(connection: &Connection) -> Result<(), StoreError> {
    let mut size = 0;
    for (key, text) in waiting(connection, STEP)? {
        if size > MOST_TEXT {
            break;
        }
        if let Some(text) = text {
            size += text.len();
            connection
                .prepare_cached("INSERT INTO search (rowid, text) VALUES (?1, ?2)")?
                .execute((key, text))?;
        }
        connection.prepare_cached("DELETE FROM unindexed WHERE place = ?1")?.execute([key])?;
    }
    Ok(())
}

/// Each transaction adds a part to the index, and a search looks into all parts: this merges some. Returns whether there was
/// something to merge. Must run inside a write transaction.
pub(crate) fn merge_some(connection: &Connection) -> rusqlite::Result<bool> {
    let before = connection.total_changes();
    connection
        .prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?1)")?
        .execute([MERGE_STEP])?;
    // By FTS5's documentation, the statement alone counts as one change.
    Ok(connection.total_changes() - before >= 2)
}

/// Lets the following calls of `merge_some` merge all parts into one. Must run inside a write transaction.
pub(crate) fn begin_whole_merge(connection: &Connection) -> rusqlite::Result<()> {
    let pages = -i64::try_from(MERGE_STEP).unwrap_or(1);
    connection
        .prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?1)")?
        .execute([pages])
        .map(drop)
}

/// What becomes of the words of a deleted message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Removed,
    /// They stay in an index that is damaged and cannot be changed; a repair makes it anew.
    Left,
}

/// Must run before the fact of this key is deleted: only its text says which words go.
pub(crate) fn remove(connection: &Connection, key: i64, words: Words) -> Result<(), StoreError> {
    let waited = connection.prepare_cached("DELETE FROM unindexed WHERE place = ?1")?.execute([key])? > 0;
    if waited || words == Words::Left {
        return Ok(());
    }
    let is_indexed = connection
        .prepare_cached("SELECT 1 FROM search WHERE rowid = ?1")?
        .query_row([key], |_| Ok(()))
        .optional()?
        .is_some();
    if is_indexed && let Some(text) = message(connection, key)? {
        connection
            .prepare_cached("INSERT INTO search (search, rowid, text) VALUES ('delete', ?1, ?2)")?
            .execute((key, text))?;
    }
    Ok(())
}

/// Messages that wait to be indexed, the newest chats first, with their text.
fn waiting(connection: &Connection, limit: usize) -> Result<Vec<(i64, Option<String>)>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT place FROM unindexed ORDER BY place DESC LIMIT ?1")?;
    let keys: Vec<i64> = statement.query_map([limit], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    keys.into_iter().map(|key| Ok((key, message(connection, key)?))).collect()
}

/// Chats with a message that has all the words, the newest chat first, each with its newest such message.
pub(crate) fn search(connection: &Connection, query: &SearchQuery) -> Result<Vec<SearchHit>, StoreError> {
    let words = words(&query.text);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let unindexed: Vec<String> = waiting(connection, MOST_READ)?
        .into_iter()
        .filter(|(_, text)| text.as_ref().is_some_and(|text| has_all(text, &words)))
        .map(|(key, _)| key.to_string())
        .collect();
    let mut statement = connection.prepare_cached(
        "SELECT session.id, max(found.place) FROM
             (SELECT rowid AS place FROM search WHERE search MATCH ?1
              UNION ALL SELECT value FROM json_each(?2)) AS found
             JOIN sessions AS session ON session.key = found.place >> 32
         GROUP BY session.key ORDER BY session.updated DESC, session.key DESC",
    )?;
    let mut rows = statement.query((match_expression(&words), format!("[{}]", unindexed.join(","))))?;
    let mut hits = Vec::new();
    while hits.len() < query.limit.unwrap_or(usize::MAX)
        && let Some(row) = rows.next()?
    {
        let id = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        let Some(chat) = listing::one(connection, id)? else { continue };
        let folders = query.workspace.as_ref();
        if folders.is_some_and(|folders| !chat.workspace.iter().any(|one| folders.contains(one))) {
            continue;
        }
        let text = message(connection, row.get(1)?)?.unwrap_or_default();
        hits.push(SearchHit { chat, excerpt: excerpt(&text, &words) });
    }
    Ok(hits)
}

fn message(connection: &Connection, key: i64) -> Result<Option<String>, StoreError> {
    let stored = connection
        .prepare_cached("SELECT kind, body, at, sum FROM facts WHERE place = ?1")?
        .query_row([key], |row| Ok(whole_fact(key, row)))
        .optional()?;
    let fact = stored.flatten().and_then(|(kind, body)| decode_fact(&kind, &body).ok());
    Ok(fact.and_then(|fact| searchable(&fact).map(str::to_owned)))
}

/// Kind and body of a fact, where its checksum matches: nothing is found in a damaged one.
fn whole_fact(key: i64, row: &Row<'_>) -> Option<(String, String)> {
    let (kind, body) = (row.get::<_, String>(0).ok()?, row.get::<_, String>(1).ok()?);
    let (at, sum) = (row.get::<_, u64>(2).ok()?, row.get::<_, Option<i64>>(3).ok()?);
    let is_whole = sum.is_none_or(|sum| sum == checksum::of_fact(&key.to_le_bytes(), at, &kind, &body));
    is_whole.then_some((kind, body))
}

/// The words of a text in lower case: runs of letters and digits.
pub fn words(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The rule of `match_expression`, for a text that is not indexed yet.
fn has_all(text: &str, wanted: &[String]) -> bool {
    let Some((last, others)) = wanted.split_last() else { return false };
    let words = words(text);
    words.iter().any(|word| word.starts_with(last)) && others.iter().all(|other| words.contains(other))
}

/// Every word must occur; the last may be the beginning of one, as it is while a person types.
fn match_expression(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("{}*", quoted.join(" "))
}

/// One line of the text around the first of the words.
pub fn excerpt(text: &str, words: &[String]) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let chars: Vec<char> = line.chars().collect();
    let lower: Vec<char> = chars.iter().map(|char| char.to_lowercase().next().unwrap_or(*char)).collect();
    let first = words
        .iter()
        .filter_map(|word| {
            let word: Vec<char> = word.chars().collect();
            lower.windows(word.len()).position(|window| window == word)
        })
        .min()
        .unwrap_or(0);
    let start = first.saturating_sub(EXCERPT / 4);
    let end = (start + EXCERPT).min(chars.len());
    let text: String = chars[start..end].iter().collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
    format!("{before}{}{after}", text.trim())
}
