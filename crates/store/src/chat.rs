//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Must not know threads, files or leases. Invariants: the index changes only together with the facts it is made of;
//! numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::{Fact, Failure, ItemKind, Recorded, SessionId};
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;

use crate::error::StoreError;
use crate::record::{RecordV1, decode_fact, to_json};
use crate::search;

/// A page of facts ends after about this many bytes.
const PAGE: usize = 1 << 20;

/// A fact in the form in which the database stores it.
pub(crate) struct EncodedFact {
    kind: &'static str,
    body: String,
    index_change: IndexChange,
    is_searchable: bool,
}

/// The change of the chat's index row that a fact causes.
enum IndexChange {
    None,
    Opened { workspace: String, parent: Option<SessionId>, title: Option<String>, model: Option<String> },
    Changed { title: Option<String>, model: Option<String> },
    Message,
    Replaced,
}

/// The number and time that an append gave to its facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// The number of the first fact.
    pub(crate) first: u64,
    pub(crate) at: u64,
}

impl EncodedFact {
    pub(crate) fn new(fact: &Fact) -> Result<Self, Failure> {
        let record = RecordV1::from(fact);
        let is_searchable = search::searchable(fact).is_some();
        Ok(Self {
            kind: record.kind(),
            body: to_json(&record)?,
            index_change: index_change(fact)?,
            is_searchable,
        })
    }

    /// Whether the full-text index will hold it.
    pub(crate) fn is_searchable(&self) -> bool {
        self.is_searchable
    }

    pub(crate) fn size(&self) -> usize {
        self.body.len()
    }
}

fn index_change(fact: &Fact) -> Result<IndexChange, Failure> {
    Ok(match fact {
        Fact::SessionOpened(opened) => IndexChange::Opened {
            workspace: to_json(&opened.workspace)?,
            parent: opened.parent.clone(),
            title: opened.settings.title.clone(),
            model: opened.settings.model.clone(),
        },
        Fact::SessionChanged { change } => {
            IndexChange::Changed { title: change.title.clone(), model: change.model.clone() }
        }
        // No setting of the chat names the default model.
        Fact::TurnStarted { model, .. } => {
            IndexChange::Changed { title: None, model: Some(model.clone()).filter(|model| !model.is_empty()) }
        }
        // Every message ends once, whether it streamed or not.
        Fact::ItemEnded { item } => item_index_change(&item.kind),
        Fact::HistoryReplaced { .. } => IndexChange::Replaced,
        Fact::TurnEnded { .. }
        | Fact::ItemStarted { .. }
        | Fact::ItemChanged { .. }
        | Fact::ItemGrew { .. }
        | Fact::AskRaised { .. }
        | Fact::AskSettled { .. }
        | Fact::UsageChanged { .. }
        | Fact::Notice { .. }
        | Fact::TaintChanged { .. } => IndexChange::None,
    })
}

fn item_index_change(kind: &ItemKind) -> IndexChange {
    match kind {
        ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. } => IndexChange::Message,
        ItemKind::Reasoning { .. }
        | ItemKind::ToolCall(_)
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Flag { .. } => IndexChange::None,
    }
}

/// Must run inside a write transaction. `now`: milliseconds since 1970.
pub(crate) fn append(
    connection: &Connection,
    session: &SessionId,
    facts: &[EncodedFact],
    now: u64,
) -> Result<Stamp, StoreError> {
    let (key, newest, updated) = match index_row(connection, session)? {
        Some(row) => row,
        None => (open(connection, session, facts.first(), now)?, 0, 0),
    };
    let stamp = Stamp { first: newest + 1, at: now.max(updated) };
    let mut insert =
        connection.prepare_cached("INSERT INTO facts (place, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, fact) in (stamp.first..).zip(facts) {
        let key = fact_key(key, number)?;
        insert.execute((key, stamp.at, fact.kind, &fact.body))?;
        if fact.is_searchable {
            search::enqueue(connection, key)?;
        }
    }
    update_index(connection, key, facts, newest + facts.len() as u64, stamp.at)?;
    Ok(stamp)
}

/// Key, newest number and time of a chat.
fn index_row(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, u64, u64)>> {
    let mut statement =
        connection.prepare_cached("SELECT key, newest, updated FROM sessions WHERE id = ?1")?;
    statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
}

fn open(
    connection: &Connection,
    session: &SessionId,
    first: Option<&EncodedFact>,
    now: u64,
) -> Result<i64, StoreError> {
    if !matches!(first, Some(EncodedFact { index_change: IndexChange::Opened { .. }, .. })) {
        return Err(Failure::user(format!("There is no chat {session}; it may have been deleted."))
            .hint("Start a new chat.")
            .into());
    }
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, workspace, created, updated, messages, newest) VALUES (?1, '[]', ?2, ?2, 0, 0)",
        )?
        .execute((session.as_str(), now))?;
    Ok(connection.last_insert_rowid())
}

fn update_index(
    connection: &Connection,
    key: i64,
    facts: &[EncodedFact],
    newest: u64,
    at: u64,
) -> Result<(), StoreError> {
    let (mut title, mut model, mut opened, mut messages, mut replaced) = (None, None, None, 0_u64, false);
    for fact in facts {
        match &fact.index_change {
            IndexChange::None => {}
            IndexChange::Opened { workspace, parent, title: first_title, model: first_model } => {
                opened = Some((workspace.as_str(), parent.as_ref().map(SessionId::as_str)));
                (title, model) = (first_title.as_ref().or(title), first_model.as_ref().or(model));
            }
            IndexChange::Changed { title: new_title, model: new_model } => {
                (title, model) = (new_title.as_ref().or(title), new_model.as_ref().or(model));
            }
            IndexChange::Message => messages += 1,
            IndexChange::Replaced => replaced = true,
        }
    }
    if let Some((workspace, parent)) = opened {
        let mut statement =
            connection.prepare_cached("UPDATE sessions SET workspace = ?2, parent = ?3 WHERE key = ?1")?;
        statement.execute((key, workspace, parent))?;
    }
    let recounted = if replaced { Some(count_messages(connection, key)?) } else { None };
    connection
        .prepare_cached(
            "UPDATE sessions SET newest = ?2, updated = ?3, messages = coalesce(?4, messages + ?5),
                 title = coalesce(?6, title), model = coalesce(?7, model)
             WHERE key = ?1",
        )?
        .execute((key, newest, at, recounted, messages, title, model))?;
    Ok(())
}

/// Counts the messages that remain after a rollback; only the facts say which do. Items are in the order of their
/// first fact, and a message counts once it has ended.
fn count_messages(connection: &Connection, key: i64) -> Result<u64, StoreError> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        item: Option<Item<'a>>,
        keep: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Item<'a> {
        id: u64,
        #[serde(borrow)]
        kind: Kind<'a>,
    }
    #[derive(Deserialize)]
    struct Kind<'a> {
        r#type: &'a str,
    }
    let mut statement = connection.prepare(
        "SELECT number, kind, body FROM facts
         WHERE place BETWEEN ?1 AND ?2 AND kind IN ('itemStarted', 'itemEnded', 'historyReplaced') ORDER BY place",
    )?;
    let mut rows = statement.query((fact_key(key, 0)?, fact_key(key, MOST_FACTS)?))?;
    let mut items: Vec<(u64, bool)> = Vec::new();
    while let Some(row) = rows.next()? {
        let number = row.get(0)?;
        let kind = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        let body = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let body: Body = serde_json::from_str(body).map_err(|error| unreadable(number, &error))?;
        if kind == "historyReplaced" {
            cut(&mut items, body.keep);
        }
        let Some(item) = body.item else { continue };
        let counts = kind == "itemEnded" && matches!(item.kind.r#type, "userMessage" | "agentMessage");
        // Ids only grow, so one that is greater than the last is new.
        let is_new = items.last().is_none_or(|(last, _)| *last < item.id);
        let known = if is_new { None } else { items.iter_mut().rev().find(|(id, _)| *id == item.id) };
        match known {
            Some((_, counted)) => *counted |= counts,
            None => items.push((item.id, counts)),
        }
    }
    Ok(items.iter().filter(|(_, counts)| *counts).count() as u64)
}

/// The history now ends with the item `keep`.
fn cut(items: &mut Vec<(u64, bool)>, keep: Option<u64>) {
    let length = match keep {
        None => 0,
        Some(keep) => items.iter().position(|(id, _)| *id == keep).map_or(items.len(), |at| at + 1),
    };
    items.truncate(length);
}

/// Returns whether the chat existed. Must run inside a write transaction.
pub(crate) fn delete(connection: &Connection, session: &SessionId) -> Result<bool, StoreError> {
    let Some((key, ..)) = index_row(connection, session)? else { return Ok(false) };
    let (first, last) = (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?);
    search::remove(connection, first, last)?;
    connection.execute("DELETE FROM facts WHERE place BETWEEN ?1 AND ?2", (first, last))?;
    connection.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
    Ok(true)
}

pub(crate) fn newest(connection: &Connection, session: &SessionId) -> Result<Option<u64>, StoreError> {
    Ok(index_row(connection, session)?.map(|(_, newest, _)| newest))
}

pub(crate) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, StoreError> {
    let Some((key, newest, _)) = index_row(connection, session)? else { return Ok(Vec::new()) };
    if after >= newest {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT number, at, kind, body FROM facts WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((fact_key(key, after)?, fact_key(key, MOST_FACTS)?, limit))?;
    let mut page = Vec::new();
    let mut size = 0;
    while size < PAGE
        && let Some(row) = rows.next()?
    {
        let number = row.get(0)?;
        let kind = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let body = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
        let fact = decode_fact(kind, body).map_err(|error| unreadable(number, &error))?;
        page.push(Recorded { number, at: row.get(1)?, fact });
        size += body.len();
    }
    Ok(page)
}

const MOST_FACTS: u64 = u32::MAX as u64;

/// A fact's primary key: the chat's key and the fact's number in one integer.
fn fact_key(key: i64, number: u64) -> Result<i64, StoreError> {
    match i64::try_from(number) {
        Ok(low) if number <= MOST_FACTS => Ok(key << 32 | low),
        _ => Err(Failure::user("This chat is full.").hint("Fork it or start a new one.").into()),
    }
}

/// The message names the fact's number and never quotes its text.
fn unreadable(number: u64, error: &serde_json::Error) -> StoreError {
    Failure::internal(format!("Fact {number} of this chat cannot be read ({:?} error).", error.classify()))
        .hint("A newer Dragoman may have written it: update Dragoman to open this chat.")
        .into()
}
