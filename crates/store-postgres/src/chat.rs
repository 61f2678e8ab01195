//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Invariants: an append is one statement, so one transaction: it locks the lease, checks its token, and changes the index
//! together with the facts; numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::{Fact, Failure, Recorded, SessionId};
use store::shared::{
    EncodedFact, FactOrder, IndexUpdate, MessageCount, PAGE, checksum_of_fact, damaged_chat, decode, no_chat,
    searchable, words,
};
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Statement};

use crate::error::{Trouble, column, signed, stored_id, unsigned};
use crate::lease::{self, HeldLease};
use crate::pool::Connection;

/// Longer words are cut, in bytes; the database takes at most 2 KiB.
const LONGEST_WORD: usize = 200;
/// Words of one message, in bytes; the database takes at most 1 MiB.
const MOST_WORDS: usize = 600 << 10;
/// Facts that are read at a time to count messages.
const COUNT_PAGE: i64 = 1000;

/// Facts that are appended together, in the form of the tables.
pub(crate) struct Page {
    pub(crate) facts: Vec<EncodedFact>,
    /// The words of each fact that can be searched, else an empty text.
    pub(crate) words: Vec<String>,
    /// The time of each fact, where another store gave it.
    times: Vec<Option<i64>>,
}

impl Page {
    pub(crate) fn new(facts: &[Fact], times: Option<Vec<u64>>) -> Result<Self, Failure> {
        let words = facts.iter().map(|fact| searchable(fact).map(joined_words).unwrap_or_default()).collect();
        let times = match times {
            Some(times) => times.into_iter().map(|at| Some(signed(at))).collect(),
            None => vec![None; facts.len()],
        };
        let facts = facts.iter().map(EncodedFact::new).collect::<Result<_, _>>()?;
        Ok(Self { facts, words, times })
    }

    /// The database gives the facts their time.
    pub(crate) fn has_own_times(&self) -> bool {
        self.times.iter().all(Option::is_none)
    }

    pub(crate) fn size(&self) -> usize {
        self.facts.iter().map(EncodedFact::size).chain(self.words.iter().map(String::len)).sum()
    }
}

/// The words of a text, each once, separated by spaces.
fn joined_words(text: &str) -> String {
    let mut words = words(text);
    words.iter_mut().for_each(cut);
    words.sort_unstable();
    words.dedup();
    let mut size = 0;
    words.retain(|word| {
        size += word.len() + 1;
        size < MOST_WORDS
    });
    words.join(" ")
}

pub(crate) fn cut(word: &mut String) {
    if word.len() > LONGEST_WORD {
        word.truncate(word.floor_char_boundary(LONGEST_WORD));
    }
}

/// The parameters of both statements below, in their order.
const TYPES: [Type; 15] = [
    Type::TEXT,       // 1: the chat
    Type::INT8,       // 2: the token of its lease
    Type::TEXT,       // 3: the owner of the lease
    Type::INT8,       // 4: the newest number so far
    Type::TEXT_ARRAY, // 5: kinds
    Type::TEXT_ARRAY, // 6: bodies
    Type::TEXT_ARRAY, // 7: words
    Type::INT8_ARRAY, // 8: times
    Type::TEXT,       // 9: title
    Type::TEXT,       // 10: model
    Type::INT8,       // 11: messages
    Type::TEXT,       // 12: folders as JSON
    Type::TEXT,       // 13: the parent chat
    Type::FLOAT8,     // 14: seconds until the lease ends, where it is renewed
    Type::INT8_ARRAY, // 15: checksums
];

/// An append as one statement. `$held` locks the lease and checks its token, `$chat` makes or changes the index row.
macro_rules! append {
    ($held:literal, $chat:literal) => {
        concat!(
            "WITH held AS (",
            $held,
            "), clock AS (
                SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
             ), chat AS (",
            $chat,
            "), new_facts AS (
                INSERT INTO dragoman.facts (session, number, at, kind, body, sum)
                SELECT chat.key, $4 + one.place, coalesce(one.at, chat.updated), one.kind, one.body, one.sum
                FROM chat, unnest($5, $6, $8, $15) WITH ORDINALITY AS one (kind, body, at, sum, place)
             ), new_words AS (
                INSERT INTO dragoman.search (session, number, words)
                SELECT chat.key, $4 + one.place, array_to_tsvector(string_to_array(one.words, ' '))
                FROM chat, unnest($7) WITH ORDINALITY AS one (words, place) WHERE one.words <> ''
             )
             SELECT chat.updated, chat.key, (
                SELECT count(pg_notify('dragoman', left($1, 500)))
                FROM held WHERE held.followed > clock_timestamp()
             ) FROM chat"
        )
    };
}

macro_rules! locked {
    ($chat:literal) => {
        append!(
            "SELECT followed FROM dragoman.leases
             WHERE session = $1 AND token = $2 AND owner = $3 AND $14::float8 IS NULL FOR UPDATE",
            $chat
        )
    };
}

macro_rules! renewed {
    ($chat:literal) => {
        append!(
            "UPDATE dragoman.leases SET ends = clock_timestamp() + make_interval(secs => $14)
             WHERE session = $1 AND token = $2 AND owner = $3 RETURNING followed",
            $chat
        )
    };
}

macro_rules! change {
    ($held:ident) => {
        $held!(
            "UPDATE dragoman.sessions SET newest = newest + cardinality($5), messages = messages + $11,
                updated = greatest(updated, coalesce($8[cardinality($8)], (SELECT now FROM clock))),
                title = coalesce($9, title), model = coalesce($10, model)
             WHERE id = $1 AND newest = $4 AND EXISTS (SELECT FROM held) RETURNING key, updated"
        )
    };
}

macro_rules! open {
    ($held:ident) => {
        $held!(
            "INSERT INTO dragoman.sessions
                (id, title, model, workspace, folders, parent, created, updated, messages, newest)
             SELECT $1, $9, $10, $12, ARRAY(SELECT jsonb_array_elements_text($12::jsonb)), $13,
                coalesce($8[1], clock.now), coalesce($8[cardinality($8)], clock.now), $11, cardinality($5)
             FROM held, clock ON CONFLICT (id) DO NOTHING RETURNING key, updated"
        )
    };
}

const CHANGE: &str = change!(locked);
const CHANGE_AND_RENEW: &str = change!(renewed);
const OPEN: &str = open!(locked);
const OPEN_AND_RENEW: &str = open!(renewed);

/// Appends after the fact `before`, or finds that an earlier try did. Returns the time of the newest fact.
pub(crate) async fn append(
    connection: &mut Connection,
    session: &SessionId,
    held: &HeldLease,
    before: u64,
    page: &Page,
) -> Result<u64, Trouble> {
    let opens = before == 0;
    if opens && !page.facts.first().is_some_and(EncodedFact::opens) {
        return Err(no_chat(session).into());
    }
    let renewal = held.due_renewal();
    let text = match (opens, renewal.is_some()) {
        (false, false) => CHANGE,
        (false, true) => CHANGE_AND_RENEW,
        (true, false) => OPEN,
        (true, true) => OPEN_AND_RENEW,
    };
    let statement = connection.statement(text, &TYPES).await?;
    let ends_in = renewal.as_ref().map(|_| held.length.as_secs_f64());
    let parameters = (session, held, before, page, ends_in);
    let at = if IndexUpdate::of(&page.facts).replaced {
        let transaction = connection.client.transaction().await?;
        let appended = append_once(&transaction, &statement, parameters).await?;
        if let Some((_, key)) = appended {
            recount(&transaction, key).await?;
        }
        transaction.commit().await?;
        appended
    } else {
        append_once(&connection.client, &statement, parameters).await?
    };
    let at = match at {
        Some((at, _)) => at,
        None => find_earlier_try(connection, session, held, before, page).await?,
    };
    if let Some(sent) = renewal {
        held.was_renewed(sent);
    }
    Ok(at)
}

/// The time of the newest fact and the key of the chat; `None` where the lease or the newest number is another one.
async fn append_once(
    client: &(impl GenericClient + Sync),
    statement: &Statement,
    (session, held, before, page, ends_in): (&SessionId, &HeldLease, u64, &Page, Option<f64>),
) -> Result<Option<(u64, i64)>, Trouble> {
    let kinds: Vec<&str> = page.facts.iter().map(EncodedFact::kind).collect();
    let bodies: Vec<&str> = page.facts.iter().map(EncodedFact::body).collect();
    let sums: Vec<i64> = (before + 1..)
        .zip(&page.facts)
        .map(|(number, fact)| checksum(session, number, fact.kind(), fact.body()))
        .collect();
    let update = IndexUpdate::of(&page.facts);
    let (title, model) = (update.title.map(|text| plain(text)), update.model.map(|text| plain(text)));
    let (folders, parent) = update.opened.unwrap_or(("[]", None));
    let parent = parent.map(|parent| stored_id(&SessionId::new(parent)).into_owned());
    let row = client
        .query_opt(
            statement,
            &[
                &stored_id(session),
                &held.token,
                &held.owner,
                &signed(before),
                &kinds,
                &bodies,
                &page.words,
                &page.times,
                &title,
                &model,
                &signed(update.messages),
                &folders,
                &parent,
                &ends_in,
                &sums,
            ],
        )
        .await?;
    row.map(|row| Ok((unsigned(&row, 0)?, column(&row, 1)?))).transpose()
}

/// The checksum of a fact. The database gives a fact its time, so the time is not part of it.
pub(crate) fn checksum(session: &SessionId, number: u64, kind: &str, body: &str) -> i64 {
    let place = [session.as_str().as_bytes(), &number.to_le_bytes()].concat();
    checksum_of_fact(&place, 0, kind, body)
}

/// PostgreSQL stores no NUL in a text; the facts have it as a JSON escape.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Nothing was appended: another process has the lease, the chat is gone, or an earlier try was committed although its
/// answer was lost. The renewal is a commit of its own, so that what was found is as durable as that.
async fn find_earlier_try(
    connection: &mut Connection,
    session: &SessionId,
    held: &HeldLease,
    before: u64,
    page: &Page,
) -> Result<u64, Trouble> {
    if !lease::renew_one(connection, session, held).await? {
        return Err(lease::taken_over(session).into());
    }
    const FOUND: &str = "
        SELECT chat.updated, array_agg(fact.body ORDER BY fact.number) FROM dragoman.sessions AS chat
        LEFT JOIN dragoman.facts AS fact ON fact.session = chat.key AND fact.number > $2
        WHERE chat.id = $1 GROUP BY chat.key";
    let statement = connection.statement(FOUND, &[Type::TEXT, Type::INT8]).await?;
    let row = connection.client.query_opt(&statement, &[&stored_id(session), &signed(before)]).await?;
    let row = row.ok_or_else(|| no_chat(session))?;
    let found: Vec<Option<&str>> = column(&row, 1)?;
    if found.into_iter().eq(page.facts.iter().map(|fact| Some(fact.body()))) {
        return unsigned(&row, 0);
    }
    Err(Failure::internal(format!("The chat {session} has other facts than this process knows."))
        .hint("Open the chat again.")
        .into())
}

/// Counts the messages that remain after a rollback.
async fn recount(client: &(impl GenericClient + Sync), key: i64) -> Result<(), Trouble> {
    let mut count = MessageCount::default();
    let mut after = 0_u64;
    loop {
        let rows = client
            .query(
                "SELECT number, kind, body FROM dragoman.facts WHERE session = $1 AND number > $2
                    AND kind IN ('itemStarted', 'itemEnded', 'historyReplaced') ORDER BY number LIMIT $3",
                &[&key, &signed(after), &COUNT_PAGE],
            )
            .await?;
        for row in &rows {
            after = unsigned(row, 0)?;
            count.observe(after, column(row, 1)?, column(row, 2)?)?;
        }
        if rows.is_empty() {
            break;
        }
    }
    let count = signed(count.total());
    client.execute("UPDATE dragoman.sessions SET messages = $2 WHERE key = $1", &[&key, &count]).await?;
    Ok(())
}

pub(crate) async fn newest(connection: &mut Connection, session: &SessionId) -> Result<Option<u64>, Trouble> {
    let statement =
        connection.statement("SELECT newest FROM dragoman.sessions WHERE id = $1", &[Type::TEXT]).await?;
    let row = connection.client.query_opt(&statement, &[&stored_id(session)]).await?;
    row.map(|row| unsigned(&row, 0)).transpose()
}

pub(crate) async fn read(
    connection: &mut Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Trouble> {
    const READ: &str = "
        SELECT number, at, kind, body, sum, newest FROM (
            SELECT page.*, chat.newest,
                sum(octet_length(page.body)) OVER (ORDER BY page.number) - octet_length(page.body) AS size_before
            FROM (SELECT key, newest FROM dragoman.sessions WHERE id = $1) AS chat LEFT JOIN LATERAL (
                SELECT number, at, kind, body, sum FROM dragoman.facts
                WHERE session = chat.key AND number > $2 ORDER BY number LIMIT $3
            ) AS page ON true
        ) AS sized WHERE number IS NULL OR size_before < $4 ORDER BY number";
    let statement = connection.statement(READ, &[Type::TEXT, Type::INT8, Type::INT8, Type::INT8]).await?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&stored_id(session), &signed(after), &most, &(PAGE as i64)];
    let rows = connection.client.query(&statement, &parameters).await?;
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let mut order = FactOrder::new(after, unsigned(first, 5)?);
    let mut facts = Vec::with_capacity(rows.len());
    let mut size = 0;
    // One row without a number: the chat has no further fact.
    for row in rows.iter().filter(|row| matches!(column::<Option<i64>>(row, 0), Ok(Some(_)))) {
        let (number, body): (u64, &str) = (unsigned(row, 0)?, column(row, 3)?);
        order.check_next(session.as_str(), number)?;
        facts.push(read_fact(session, number, row)?);
        size += body.len();
    }
    if facts.len() < limit && size < PAGE {
        order.check_end(session.as_str())?;
    }
    Ok(facts)
}

fn read_fact(session: &SessionId, number: u64, row: &tokio_postgres::Row) -> Result<Recorded, Trouble> {
    let (kind, body): (&str, &str) = (column(row, 2)?, column(row, 3)?);
    let sum: Option<i64> = column(row, 4)?;
    // Facts that an earlier build stored have none.
    if sum.is_some_and(|sum| sum != checksum(session, number, kind, body)) {
        return Err(damaged_chat(session.as_str(), &format!("its fact {number} was changed")).into());
    }
    Ok(decode(number, unsigned(row, 1)?, kind, body)?)
}

/// Returns whether the chat existed.
pub(crate) async fn delete(
    connection: &mut Connection,
    session: &SessionId,
    held: &HeldLease,
) -> Result<bool, Trouble> {
    let id = stored_id(session);
    let transaction = connection.client.transaction().await?;
    let lease = transaction
        .query_opt(
            "SELECT 1 FROM dragoman.leases WHERE session = $1 AND token = $2 AND owner = $3 FOR UPDATE",
            &[&id, &held.token, &held.owner],
        )
        .await?;
    if lease.is_none() {
        return Err(lease::taken_over(session).into());
    }
    let chat =
        transaction.query_opt("DELETE FROM dragoman.sessions WHERE id = $1 RETURNING key", &[&id]).await?;
    let Some(chat) = chat else { return Ok(false) };
    let key: i64 = column(&chat, 0)?;
    transaction.execute("DELETE FROM dragoman.facts WHERE session = $1", &[&key]).await?;
    transaction.execute("DELETE FROM dragoman.search WHERE session = $1", &[&key]).await?;
    transaction.commit().await?;
    Ok(true)
}
