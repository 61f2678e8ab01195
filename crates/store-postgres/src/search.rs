//! The search over the words of messages.
//!
//! The words are made by `store`, so that both stores find the same; the database only compares them.
//! Invariants: a message that is stored is found; a message that is deleted leaves no word in a table.

use domain::store::{SearchHit, SearchQuery};
use store::shared::{decode, excerpt, searchable, words};
use tokio_postgres::types::Type;

use crate::chat::cut;
use crate::error::{Trouble, column, signed, unsigned};
use crate::listing;
use crate::pool::Connection;

/// Chats that a search without a limit returns.
const MOST: usize = 10_000;

const SEARCH: &str = "
    SELECT found.session, found.number FROM (
        SELECT session, max(number) AS number FROM dragoman.search
        WHERE words @@ ($1::text)::tsquery GROUP BY session
    ) AS found JOIN dragoman.sessions AS chat ON chat.key = found.session
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
    let mut hits = Vec::with_capacity(rows.len());
    for row in &rows {
        let (key, number) = (column::<i64>(row, 0)?, unsigned(row, 1)?);
        let Some(chat) = listing::one(connection, key).await? else { continue };
        let text = message(connection, key, number).await?.unwrap_or_default();
        hits.push(SearchHit { chat, excerpt: excerpt(&text, &words) });
    }
    Ok(hits)
}

async fn message(connection: &mut Connection, key: i64, number: u64) -> Result<Option<String>, Trouble> {
    let statement = connection
        .statement(
            "SELECT kind, body FROM dragoman.facts WHERE session = $1 AND number = $2",
            &[Type::INT8, Type::INT8],
        )
        .await?;
    let row = connection.client.query_opt(&statement, &[&key, &signed(number)]).await?;
    let Some(row) = row else { return Ok(None) };
    let recorded = decode(number, 0, column(&row, 0)?, column(&row, 1)?)?;
    Ok(searchable(&recorded.fact).map(str::to_owned))
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
