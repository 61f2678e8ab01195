//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Must not know threads, files or leases. Invariants: the index changes only together with the facts it is made of;
//! numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::event::{Channel, SessionUsage};
use domain::store::{ListFilter, SessionSummary};
use domain::{Fact, Failure, ItemId, ItemKind, Recorded, SessionId};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;

use crate::error::StoreError;

/// A page of facts ends after about this many bytes.
const PAGE: usize = 1 << 20;

/// A fact in the form in which the database stores it.
pub(crate) struct EncodedFact {
    kind: &'static str,
    body: String,
    index_change: IndexChange,
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
        let unwritable = |_| {
            Failure::user("A fact of the chat cannot be stored; a path in it may not be UTF-8.")
                .hint("Rename folders and files whose names are not UTF-8.")
        };
        let (kind, index_change) = match fact {
            Fact::SessionOpened(opened) => {
                let index_change = IndexChange::Opened {
                    workspace: serde_json::to_string(&opened.workspace).map_err(unwritable)?,
                    parent: opened.parent.clone(),
                    title: opened.settings.title.clone(),
                    model: opened.settings.model.clone(),
                };
                ("sessionOpened", index_change)
            }
            Fact::SessionChanged { change } => {
                let index_change =
                    IndexChange::Changed { title: change.title.clone(), model: change.model.clone() };
                ("sessionChanged", index_change)
            }
            // Every message ends once, whether it streamed or not.
            Fact::ItemEnded { item } => ("itemEnded", item_index_change(&item.kind)),
            Fact::HistoryReplaced { .. } => ("historyReplaced", IndexChange::Replaced),
            Fact::SessionClosed => ("sessionClosed", IndexChange::None),
            // No setting of the chat names the default model.
            Fact::TurnStarted { model, .. } => {
                let model = Some(model.clone()).filter(|model| !model.is_empty());
                ("turnStarted", IndexChange::Changed { title: None, model })
            }
            Fact::TurnEnded { .. } => ("turnEnded", IndexChange::None),
            Fact::ItemChanged { .. } => ("itemChanged", IndexChange::None),
            Fact::ItemGrew { .. } => ("itemGrew", IndexChange::None),
            Fact::ItemStarted { .. } => ("itemStarted", IndexChange::None),
            Fact::AskRaised { .. } => ("askRaised", IndexChange::None),
            Fact::AskSettled { .. } => ("askSettled", IndexChange::None),
            Fact::UsageChanged { .. } => ("usageChanged", IndexChange::None),
            Fact::Notice { .. } => ("notice", IndexChange::None),
        };
        Ok(Self { kind, body: serde_json::to_string(fact).map_err(unwritable)?, index_change })
    }

    pub(crate) fn size(&self) -> usize {
        self.body.len()
    }
}

fn item_index_change(kind: &ItemKind) -> IndexChange {
    match kind {
        ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. } => IndexChange::Message,
        _ => IndexChange::None,
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
        insert.execute((fact_key(key, number)?, stamp.at, fact.kind, &fact.body))?;
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
        keep: Option<ItemId>,
    }
    #[derive(Deserialize)]
    struct Item<'a> {
        id: ItemId,
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
    let mut items: Vec<(ItemId, bool)> = Vec::new();
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
fn cut(items: &mut Vec<(ItemId, bool)>, keep: Option<ItemId>) {
    let length = match keep {
        None => 0,
        Some(keep) => items.iter().position(|(id, _)| *id == keep).map_or(items.len(), |at| at + 1),
    };
    items.truncate(length);
}

/// Returns whether the chat existed. Must run inside a write transaction.
pub(crate) fn delete(connection: &Connection, session: &SessionId) -> Result<bool, StoreError> {
    let Some((key, ..)) = index_row(connection, session)? else { return Ok(false) };
    connection.execute(
        "DELETE FROM facts WHERE place BETWEEN ?1 AND ?2",
        (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?),
    )?;
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
        let fact = fact(kind, body).map_err(|error| unreadable(number, &error))?;
        page.push(Recorded { number, at: row.get(1)?, fact });
        size += body.len();
    }
    Ok(page)
}

/// The `kind` column names the fact, so serde need not build a tree to find the tag first. For the most frequent
/// facts this saves a fifth of the time that reading a chat takes.
fn fact(kind: &str, body: &str) -> serde_json::Result<Fact> {
    #[derive(Deserialize)]
    struct Whole {
        item: domain::Item,
    }
    #[derive(Deserialize)]
    struct Grew {
        item: ItemId,
        channel: Channel,
        offset: u64,
        text: String,
    }
    #[derive(Deserialize)]
    struct Used {
        usage: SessionUsage,
    }
    let whole = || serde_json::from_str::<Whole>(body).map(|Whole { item }| item);
    Ok(match kind {
        "itemStarted" => Fact::ItemStarted { item: whole()? },
        "itemChanged" => Fact::ItemChanged { item: whole()? },
        "itemEnded" => Fact::ItemEnded { item: whole()? },
        "itemGrew" => {
            let Grew { item, channel, offset, text } = serde_json::from_str(body)?;
            Fact::ItemGrew { item, channel, offset, text }
        }
        "usageChanged" => {
            let Used { usage } = serde_json::from_str(body)?;
            Fact::UsageChanged { usage }
        }
        _ => serde_json::from_str(body)?,
    })
}

pub(crate) fn list(connection: &Connection, filter: &ListFilter) -> Result<Vec<SessionSummary>, StoreError> {
    let text = filter.text.as_deref().map(str::to_lowercase);
    let mut statement = connection.prepare_cached(
        "SELECT id, title, model, workspace, parent, created, updated, messages, newest FROM sessions
         ORDER BY updated DESC, key DESC",
    )?;
    let mut rows = statement.query([])?;
    let mut skip = filter.offset;
    let mut found = Vec::new();
    while found.len() < filter.limit.unwrap_or(usize::MAX)
        && let Some(row) = rows.next()?
    {
        let summary = summary(row)?;
        if !matches(&summary, filter, text.as_deref()) {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        found.push(summary);
    }
    Ok(found)
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
