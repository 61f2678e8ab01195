//! The index row of a chat: what lists show of it, with a checksum.
//!
//! Must not know facts. Invariants: every change of a row renews its checksum; a row whose checksum does not match is
//! shown as damaged, and nothing is made of it or appended to its chat.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::SessionId;
use domain::store::SessionSummary;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::checksum;
use crate::encoded::{IndexUpdate, damaged_chat};
use crate::error::StoreError;
use crate::scan;

/// In the order of `IndexRow::read`.
pub(crate) const COLUMNS: &str =
    "key, id, title, model, workspace, parent, created, updated, messages, newest, unsummed, sum";

/// Milliseconds; lists find a chat by this part of its time. See `migrations`.
pub(crate) const QUARTER: u64 = 250;

/// What lists show in place of a title that cannot be trusted.
const DAMAGED_TITLE: &str = "(damaged: run `dragoman store check`)";

pub(crate) struct IndexRow {
    pub(crate) key: i64,
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
    /// JSON array of paths.
    pub(crate) workspace: String,
    parent: Option<String>,
    created: u64,
    pub(crate) updated: u64,
    pub(crate) messages: u64,
    /// The number of the newest fact.
    pub(crate) newest: u64,
    /// The facts up to this number are older than checksums.
    pub(crate) unsummed: u64,
    /// The checksum matches.
    is_whole: bool,
}

impl IndexRow {
    pub(crate) fn find(connection: &Connection, id: &str) -> Result<Option<Self>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1");
        let found = connection
            .prepare_cached(&query)
            .and_then(|mut statement| statement.query_row([id], |row| Ok(Self::read(row))).optional());
        match found.map_err(StoreError::from) {
            // The index of ids may be damaged and the row whole.
            Err(error) if error.is_damage() => match Self::readable(connection).remove(id) {
                Some(row) => Ok(Some(row)),
                None => Err(error.of_chat(id)),
            },
            found => found,
        }
    }

    /// The rows of a damaged table that can be read, by their ids.
    pub(crate) fn readable(connection: &Connection) -> HashMap<String, Self> {
        let mut rows = HashMap::new();
        let query = format!("SELECT {COLUMNS} FROM sessions NOT INDEXED ORDER BY key");
        scan::scan(connection, &query, |row| {
            let row = Self::read(row);
            rows.insert(row.id.clone(), row);
        });
        rows
    }

    /// What is known of a chat whose row cannot be read.
    pub(crate) fn lost(key: i64, id: String) -> Self {
        Self {
            key,
            id,
            title: None,
            model: None,
            workspace: String::new(),
            parent: None,
            created: 0,
            updated: 0,
            messages: 0,
            newest: 0,
            unsummed: 0,
            is_whole: false,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Never fails, so that one damaged row does not hide the others.
    pub(crate) fn read(row: &Row<'_>) -> Self {
        let mut reader = RowReader { row, is_whole: true };
        let mut read = Self {
            key: reader.integer(0),
            id: reader.text(1).unwrap_or_default(),
            title: reader.text(2),
            model: reader.text(3),
            workspace: reader.text(4).unwrap_or_default(),
            parent: reader.text(5),
            created: reader.number(6),
            updated: reader.number(7),
            messages: reader.number(8),
            newest: reader.number(9),
            unsummed: reader.number(10),
            is_whole: false,
        };
        let sum = reader.integer(11);
        read.is_whole = reader.is_whole && sum == read.checksum();
        read
    }

    /// Makes the row of a new chat; `save` completes it in the same transaction.
    pub(crate) fn insert(connection: &Connection, id: &str, now: u64) -> rusqlite::Result<Self> {
        connection
            .prepare_cached(
                "INSERT INTO sessions (key, id, workspace, created, updated, messages, newest) VALUES (
                     1 + max(coalesce((SELECT max(key) FROM sessions), 0), (SELECT key FROM last_deleted)),
                     ?1, '[]', ?2, ?2, 0, 0)",
            )?
            .execute((id, now))?;
        let key = connection.last_insert_rowid();
        let workspace = "[]".to_owned();
        Ok(Self { workspace, created: now, is_whole: true, ..Self::lost(key, id.to_owned()) })
    }

    /// Takes over what new facts change, but for the number of messages.
    pub(crate) fn update(
        &mut self,
        connection: &Connection,
        update: &IndexUpdate<'_>,
    ) -> rusqlite::Result<()> {
        if let Some((workspace, parent)) = update.opened {
            // Apart from the rest: it changes the indexes.
            (self.workspace, self.parent) = (workspace.to_owned(), parent.map(str::to_owned));
            let mut statement = connection
                .prepare_cached("UPDATE sessions SET workspace = ?2, parent = ?3 WHERE key = ?1")?;
            statement.execute((self.key, workspace, parent))?;
        }
        if let Some(title) = update.title {
            self.title = Some(title.clone());
        }
        if let Some(model) = update.model {
            self.model = Some(model.clone());
        }
        Ok(())
    }

    pub(crate) fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "UPDATE sessions SET newest = ?2, updated = ?3, messages = ?4, title = ?5, model = ?6, sum = ?7
                 WHERE key = ?1",
            )?
            .execute((
                self.key,
                self.newest,
                self.updated,
                self.messages,
                &self.title,
                &self.model,
                self.checksum(),
            ))?;
        Ok(())
    }

    /// Fails where the row is damaged.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.is_whole {
            true => Ok(()),
            false => Err(damaged_chat(&self.name(), "its entry in the list of chats was changed").into()),
        }
    }

    /// How messages name the chat: its id, and its title where that can be trusted.
    pub(crate) fn name(&self) -> String {
        match self.title.as_ref().filter(|_| self.is_whole) {
            Some(title) => format!("{} ({title})", self.id),
            None => self.id.clone(),
        }
    }

    pub(crate) fn into_summary(self) -> SessionSummary {
        SessionSummary {
            id: SessionId::new(self.id),
            title: if self.is_whole { self.title } else { Some(DAMAGED_TITLE.to_owned()) },
            model: self.model.filter(|_| self.is_whole),
            workspace: serde_json::from_str(&self.workspace).unwrap_or_default(),
            parent: self.parent.map(SessionId::new),
            created_at: self.created,
            updated_at: self.updated,
            message_count: self.messages,
            newest: self.newest,
        }
    }

    fn checksum(&self) -> i64 {
        // A missing text and an empty one differ.
        let optional = |text: &Option<String>| match text {
            Some(text) => Cow::Owned([b"+", text.as_bytes()].concat()),
            None => Cow::Borrowed(b"-".as_slice()),
        };
        let numbers = [self.created, self.updated, self.messages, self.newest, self.unsummed];
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        checksum::of_parts([
            &self.key.to_le_bytes(),
            self.id.as_bytes(),
            &optional(&self.title),
            &optional(&self.model),
            self.workspace.as_bytes(),
            &optional(&self.parent),
            &numbers,
        ])
    }
}

/// Gives the rows of a file from before their checksums.
pub(crate) fn sum_all(connection: &Connection) -> rusqlite::Result<()> {
    let mut rows = connection.prepare(&format!("SELECT {COLUMNS} FROM sessions"))?;
    let rows = rows.query_map([], |row| Ok(IndexRow::read(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    rows.iter().try_for_each(|row| row.save(connection))
}

/// Reads columns of a row and notes values that no build writes.
struct RowReader<'a, 'stmt> {
    row: &'a Row<'stmt>,
    is_whole: bool,
}

impl RowReader<'_, '_> {
    fn integer(&mut self, column: usize) -> i64 {
        match self.row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => number,
            _ => {
                self.is_whole = false;
                0
            }
        }
    }

    fn number(&mut self, column: usize) -> u64 {
        let number = self.integer(column);
        self.is_whole &= number >= 0;
        u64::try_from(number).unwrap_or(0)
    }

    fn text(&mut self, column: usize) -> Option<String> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Text(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                self.is_whole &= matches!(text, Cow::Borrowed(_));
                Some(text.into_owned())
            }
            Ok(ValueRef::Null) => None,
            _ => {
                self.is_whole = false;
                None
            }
        }
    }
}
