//! Writes what was saved of a damaged file into a new one, chat by chat.
//!
//! Must not know where the files are. Invariants: facts keep their order and their times; where some are lost, the chat says
//! so; no chat takes over the id of another one.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use domain::command::SessionSettings;
use domain::event::{Notice, SessionOpened};
use domain::{Fact, Failure, Level, SessionId};
use rusqlite::{Connection, TransactionBehavior};

use crate::chat;
use crate::encoded::EncodedFact;
use crate::error::StoreError;
use crate::fact_place::{self, MOST_FACTS, fact_key};
use crate::files;
use crate::record::decode_fact;
use crate::repaired::{DamagedChat, Repaired};
use crate::salvage::{DamagedFile, KnownChat, StoredFact};

/// Facts of a chat that are held in memory together.
const BATCH: usize = 256;

/// So far behind the facts that were saved a fact that was changed still counts as one of its chat: its number may have been changed.
const MOST_GUESSED: u64 = 1000;

/// The facts that were read, in the order of their places.
pub(crate) struct Staging {
    connection: Connection,
    /// The places of facts that were found and not trusted.
    changed: HashSet<i64>,
}

impl Staging {
    pub(crate) fn fill(path: &Path, source: &DamagedFile) -> Result<Self, StoreError> {
        files::private_file(path).map_err(|error| files::unusable(path, &error))?;
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             CREATE TABLE facts (place INTEGER PRIMARY KEY, at INTEGER, kind TEXT, body TEXT); BEGIN",
        )?;
        let mut staging = Self { connection, changed: HashSet::new() };
        let mut outcome = Ok(());
        staging.changed = source.facts(|fact| {
            if outcome.is_ok() {
                outcome = staging.keep(&fact);
            }
        });
        outcome?;
        staging.connection.execute_batch("COMMIT")?;
        Ok(staging)
    }

    fn keep(&self, fact: &StoredFact) -> rusqlite::Result<()> {
        let mut insert =
            self.connection.prepare_cached("INSERT OR IGNORE INTO facts VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute((fact.place, fact.at, &fact.kind, &fact.body)).map(drop)
    }

    pub(crate) fn keys(&self) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.connection.prepare("SELECT DISTINCT place >> 32 FROM facts")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    fn numbers(&self, key: i64) -> Result<Vec<u64>, StoreError> {
        let range = (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?);
        let mut statement = self
            .connection
            .prepare_cached("SELECT place FROM facts WHERE place BETWEEN ?1 AND ?2 ORDER BY place")?;
        let places = statement.query_map(range, |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        Ok(places.into_iter().map(|place| fact_place::split(place).1).collect())
    }

    /// The newest number that the damaged file shows for a chat.
    fn last_changed(&self, key: i64) -> u64 {
        let places = self.changed.iter().map(|place| fact_place::split(*place));
        places.filter(|(chat, _)| *chat == key).map(|(_, number)| number).max().unwrap_or(0)
    }

    fn get(&self, key: i64, number: u64) -> Result<(u64, Fact), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT at, kind, body FROM facts WHERE place = ?1")?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        };
        let (at, kind, body) = statement.query_row([fact_key(key, number)?], row)?;
        let fact =
            decode_fact(&kind, &body).map_err(|_| Failure::internal("A saved fact cannot be read."))?;
        Ok((at, fact))
    }
}

/// Writes the chats into the new file.
pub(crate) struct Restoring<'a> {
    pub(crate) source: &'a DamagedFile,
    pub(crate) staged: &'a Staging,
    pub(crate) target: &'a mut Connection,
    pub(crate) repaired: &'a mut Repaired,
}

impl Restoring<'_> {
    pub(crate) fn all(
        mut self,
        chats: BTreeMap<i64, KnownChat>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let total = chats.len() as u64;
        let mut used = HashSet::new();
        for (done, (key, chat)) in (1..).zip(chats) {
            // An id that was changed may be that of another chat.
            let id = chat.id.clone().filter(|id| !id.is_empty() && !used.contains(id));
            let id = id.unwrap_or_else(|| format!("recovered-{key}"));
            used.insert(id.clone());
            self.one(key, id, &chat)?;
            progress(done, total);
        }
        Ok(())
    }

    fn one(&mut self, key: i64, id: String, chat: &KnownChat) -> Result<(), StoreError> {
        let mut numbers = self.staged.numbers(key)?;
        let shown = numbers.last().copied().unwrap_or(0);
        let newest = match &chat.row {
            Some(row) => row.newest.max(shown),
            None => shown.max(self.staged.last_changed(key).min(shown + MOST_GUESSED)),
        };
        let known: HashSet<u64> = numbers.iter().copied().collect();
        let missing: Vec<u64> = (1..=newest).filter(|number| !known.contains(number)).collect();
        if !missing.is_empty() {
            let mut outcome = Ok(());
            self.source.find_facts(key, &missing, |fact| {
                if outcome.is_ok() {
                    outcome = self.staged.keep(&fact);
                }
            });
            outcome?;
            numbers = self.staged.numbers(key)?;
        }
        let saved = numbers.len() as u64;
        let lost = newest.saturating_sub(saved);
        let title = chat.row.as_ref().and_then(|row| row.title.clone());
        if saved > 0 {
            self.write(key, &id, chat, &numbers, newest)?;
            self.repaired.chats += 1;
            self.repaired.facts += saved;
        }
        if lost > 0 || chat.id.as_ref() != Some(&id) {
            self.repaired.damaged.push(DamagedChat { id, title, saved, lost });
        }
        Ok(())
    }

    /// Appends the facts in their order, with a notice in the place of those that are lost.
    fn write(
        &mut self,
        key: i64,
        id: &str,
        chat: &KnownChat,
        numbers: &[u64],
        newest: u64,
    ) -> Result<(), StoreError> {
        let session = SessionId::new(id);
        let transaction = self.target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut batch: Vec<(u64, Fact)> = Vec::new();
        let mut expected = 1;
        for number in numbers {
            let (at, fact) = self.staged.get(key, *number)?;
            if expected == 1 && !matches!(fact, Fact::SessionOpened(_)) {
                batch.push((at, Fact::SessionOpened(opened(chat))));
            }
            if *number > expected {
                batch.push((at, lost_notice(expected, *number - 1)));
            }
            batch.push((at, fact));
            expected = *number + 1;
            if batch.len() >= BATCH {
                append(&transaction, &session, &mut batch)?;
            }
        }
        if newest >= expected {
            let at = batch.last().map_or(0, |(at, _)| *at);
            batch.push((at, lost_notice(expected, newest)));
        }
        append(&transaction, &session, &mut batch)?;
        Ok(transaction.commit()?)
    }
}

/// Facts of one time are one append.
fn append(
    connection: &Connection,
    session: &SessionId,
    batch: &mut Vec<(u64, Fact)>,
) -> Result<(), StoreError> {
    for run in batch.chunk_by(|(one, _), (other, _)| one == other) {
        let facts = run.iter().map(|(_, fact)| EncodedFact::new(fact)).collect::<Result<Vec<_>, _>>()?;
        if let Some((at, _)) = run.first() {
            chat::append(connection, session, &facts, *at)?;
        }
    }
    batch.clear();
    Ok(())
}

/// The first fact of a chat whose own is lost.
fn opened(chat: &KnownChat) -> SessionOpened {
    let row = chat.row.as_ref();
    let workspace = row.and_then(|row| serde_json::from_str(&row.workspace).ok()).unwrap_or_default();
    let title = row.and_then(|row| row.title.clone());
    let settings = SessionSettings { title, ..SessionSettings::default() };
    SessionOpened { workspace, settings, parent: None, client: String::new() }
}

fn lost_notice(first: u64, last: u64) -> Fact {
    let count = last.saturating_sub(first) + 1;
    let text = format!(
        "A part of this chat is missing here: the file was damaged, and {count} facts (from {first} to {last}) could not be read."
    );
    Fact::Notice { notice: Notice { level: Level::Warning, text } }
}
