//! The persisted form of a chat: its facts, and one index row made of them.
//!
//! Must not know threads, files or leases. Invariants: the index changes only together with the facts it is made of;
//! numbers have no gaps and times never go back; a chat begins with `SessionOpened`.

use domain::event::{Channel, SessionUsage};
use domain::store::{ListFilter, SessionSummary};
use domain::{Fact, Failure, ItemId, ItemKind, Recorded, SessionId};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;

use crate::trouble::Trouble;

/// A page of facts ends after about this many bytes.
const PAGE: usize = 1 << 20;

/// A fact on its way to the disk.
pub struct Entry {
    kind: &'static str,
    body: String,
    effect: Effect,
}

/// What a fact means for the index.
enum Effect {
    None,
    Opened { workspace: String, parent: Option<SessionId>, title: Option<String>, model: Option<String> },
    Changed { title: Option<String>, model: Option<String> },
    Message,
    Replaced,
}

/// Where facts came to stand.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// The first one's number.
    pub first: u64,
    pub at: u64,
}

impl Entry {
    pub fn new(fact: &Fact) -> Result<Self, Failure> {
        let unwritable = |_| {
            Failure::user("A fact of the chat cannot be stored; a path in it may not be UTF-8.")
                .hint("Rename folders and files whose names are not UTF-8.")
        };
        let (kind, effect) = match fact {
            Fact::SessionOpened(opened) => {
                let effect = Effect::Opened {
                    workspace: serde_json::to_string(&opened.workspace).map_err(unwritable)?,
                    parent: opened.parent.clone(),
                    title: opened.settings.title.clone(),
                    model: opened.settings.model.clone(),
                };
                ("sessionOpened", effect)
            }
            Fact::SessionChanged { change } => {
                let effect = Effect::Changed { title: change.title.clone(), model: change.model.clone() };
                ("sessionChanged", effect)
            }
            // Every message ends once, whether it streamed or not.
            Fact::ItemEnded { item } => ("itemEnded", item_effect(&item.kind)),
            Fact::HistoryReplaced { .. } => ("historyReplaced", Effect::Replaced),
            Fact::SessionClosed => ("sessionClosed", Effect::None),
            // The default model is in no setting of the chat.
            Fact::TurnStarted { model, .. } => {
                let model = Some(model.clone()).filter(|model| !model.is_empty());
                ("turnStarted", Effect::Changed { title: None, model })
            }
            Fact::TurnEnded { .. } => ("turnEnded", Effect::None),
            Fact::ItemChanged { .. } => ("itemChanged", Effect::None),
            Fact::ItemGrew { .. } => ("itemGrew", Effect::None),
            Fact::ItemStarted { .. } => ("itemStarted", Effect::None),
            Fact::AskRaised { .. } => ("askRaised", Effect::None),
            Fact::AskSettled { .. } => ("askSettled", Effect::None),
            Fact::UsageChanged { .. } => ("usageChanged", Effect::None),
            Fact::Notice { .. } => ("notice", Effect::None),
        };
        Ok(Self { kind, body: serde_json::to_string(fact).map_err(unwritable)?, effect })
    }

    pub fn size(&self) -> usize {
        self.body.len()
    }
}

fn item_effect(kind: &ItemKind) -> Effect {
    match kind {
        ItemKind::UserMessage { .. } | ItemKind::AgentMessage { .. } => Effect::Message,
        _ => Effect::None,
    }
}

/// Must run inside a write transaction. `now`: milliseconds since 1970.
pub fn append(
    connection: &Connection,
    session: &SessionId,
    entries: &[Entry],
    now: u64,
) -> Result<Stamp, Trouble> {
    let (key, newest, updated) = match index_row(connection, session)? {
        Some(row) => row,
        None => (open(connection, session, entries.first(), now)?, 0, 0),
    };
    let stamp = Stamp { first: newest + 1, at: now.max(updated) };
    let mut insert =
        connection.prepare_cached("INSERT INTO facts (place, at, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, entry) in (stamp.first..).zip(entries) {
        insert.execute((place(key, number)?, stamp.at, entry.kind, &entry.body))?;
    }
    update_index(connection, key, entries, newest + entries.len() as u64, stamp.at)?;
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
    first: Option<&Entry>,
    now: u64,
) -> Result<i64, Trouble> {
    if !matches!(first, Some(Entry { effect: Effect::Opened { .. }, .. })) {
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
    entries: &[Entry],
    newest: u64,
    at: u64,
) -> Result<(), Trouble> {
    let (mut title, mut model, mut opened, mut messages, mut replaced) = (None, None, None, 0_u64, false);
    for entry in entries {
        match &entry.effect {
            Effect::None => {}
            Effect::Opened { workspace, parent, title: first_title, model: first_model } => {
                opened = Some((workspace.as_str(), parent.as_ref().map(SessionId::as_str)));
                (title, model) = (first_title.as_ref().or(title), first_model.as_ref().or(model));
            }
            Effect::Changed { title: new_title, model: new_model } => {
                (title, model) = (new_title.as_ref().or(title), new_model.as_ref().or(model));
            }
            Effect::Message => messages += 1,
            Effect::Replaced => replaced = true,
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

/// Only after a rollback: what is left of the messages is known from the facts alone. Items stand in the order in
/// which they first appeared, and a message counts from its end on.
fn count_messages(connection: &Connection, key: i64) -> Result<u64, Trouble> {
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
    let mut rows = statement.query((place(key, 0)?, place(key, MOST_FACTS)?))?;
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

/// True where there was such a chat. Must run inside a write transaction.
pub fn delete(connection: &Connection, session: &SessionId) -> Result<bool, Trouble> {
    let Some((key, ..)) = index_row(connection, session)? else { return Ok(false) };
    connection.execute(
        "DELETE FROM facts WHERE place BETWEEN ?1 AND ?2",
        (place(key, 0)?, place(key, MOST_FACTS)?),
    )?;
    connection.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
    Ok(true)
}

pub fn newest(connection: &Connection, session: &SessionId) -> Result<Option<u64>, Trouble> {
    Ok(index_row(connection, session)?.map(|(_, newest, _)| newest))
}

pub fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Trouble> {
    let Some((key, newest, _)) = index_row(connection, session)? else { return Ok(Vec::new()) };
    if after >= newest {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT number, at, kind, body FROM facts WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((place(key, after)?, place(key, MOST_FACTS)?, limit))?;
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

/// Knowing the kind of the most frequent facts beforehand saves a fifth of the work of reading a chat: without it
/// each fact is first read into a tree to find its kind.
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

pub fn list(connection: &Connection, filter: &ListFilter) -> Result<Vec<SessionSummary>, Trouble> {
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
fn place(key: i64, number: u64) -> Result<i64, Trouble> {
    match i64::try_from(number) {
        Ok(low) if number <= MOST_FACTS => Ok(key << 32 | low),
        _ => Err(Failure::user("This chat is full.").hint("Fork it or start a new one.").into()),
    }
}

/// Says where the fact is and never what stands in it.
fn unreadable(number: u64, error: &serde_json::Error) -> Trouble {
    Failure::internal(format!("Fact {number} of this chat cannot be read ({:?} error).", error.classify()))
        .hint("A newer Dragoman may have written it: update Dragoman to open this chat.")
        .into()
}
