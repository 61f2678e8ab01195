//! The search over the words of messages.
//!
//! The words are made by `store`, so that both stores find the same; the database only compares them.
//! Invariants: a message that is stored is found; a message that is deleted leaves no word in a table.

use domain::store::{SearchHit, SearchQuery};
use store::shared::{decode, excerpt, searchable, words};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::chat::cut;
use crate::error::{Trouble, column, unsigned};
use crate::listing;
use crate::pool::Connection;

/// Chats that a search without a limit returns.
const MOST: usize = 10_000;

/// The columns of a chat as `listing` reads them, then the message.
const SEARCH: &str = "
    SELECT chat.id, chat.title, chat.model, chat.workspace, chat.parent, chat.created, chat.updated, chat.messages,
        chat.newest, chat.key, fact.number, fact.kind, fact.body
    FROM (
        SELECT session, max(number) AS number FROM dragoman.search
        WHERE words @@ ($1::text)::tsquery GROUP BY session
    ) AS found
    JOIN dragoman.sessions AS chat ON chat.key = found.session
    JOIN dragoman.facts AS fact ON fact.session = found.session AND fact.number = found.number
    WHERE $2::text[] IS NULL OR chat.folders && $2
    ORDER BY chat.updated DESC, chat.key DESC LIMIT $3";

/// Chats with a message that has all the words, the newest chat first, each with its newest such message.
pub(crate) async fn search(
    connection: &mut Connection,
    query: &SearchQuery,
) -> Result<Vec<SearchHit>, Trouble> {
    let words = words(&query.text);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let folders: Option<Vec<String>> = query
        .workspace
        .as_ref()
        .map(|folders| folders.iter().map(|folder| folder.to_string_lossy().replace('\0', "")).collect());
    let limit = i64::try_from(query.limit.unwrap_or(MOST).min(MOST)).unwrap_or(i64::MAX);
    let statement = connection.statement(SEARCH, &[Type::TEXT, Type::TEXT_ARRAY, Type::INT8]).await?;
    let rows = connection.client.query(&statement, &[&expression(&words), &folders, &limit]).await?;
    let hit = |row: &Row| {
        let recorded = decode(unsigned(row, 10)?, 0, column(row, 11)?, column(row, 12)?)?;
        let text = searchable(&recorded.fact).unwrap_or_default();
        Ok(SearchHit { chat: listing::summary(row)?, excerpt: excerpt(text, &words) })
    };
    rows.iter().map(hit).collect()
}

/// Every word must occur; the last may be the beginning of one. Words hold letters and digits only.
fn expression(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let mut word = word.clone();
            cut(&mut word);
            format!("'{word}'")
        })
        .collect();
    format!("{}:*", quoted.join(" & "))
}
