//! Reads from a damaged file what can still be read.
//!
//! A scan of a table ends where SQLite meets a damaged page, so each table is scanned from both ends, and what lies between is
//! asked for row by row. Nothing is trusted but a matching checksum, or, for facts older than checksums, a body that can
//! be decoded.
//! Must not know where the rows go. Invariant: every loop has an end that the file cannot move.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row};

use crate::checksum;
use crate::fact_place::{fact_key, split};
use crate::index_row::{self, IndexRow};
use crate::record::decode_fact;
use crate::scan::{self, IDS};

/// Facts of one chat that are asked for one by one.
const MOST_LOOKUPS: u64 = 1_000_000;

/// A fact as it is stored.
pub(crate) struct StoredFact {
    pub(crate) place: i64,
    pub(crate) at: u64,
    pub(crate) kind: String,
    pub(crate) body: String,
}

/// What is known of a chat besides its facts.
#[derive(Default)]
pub(crate) struct KnownChat {
    pub(crate) id: Option<String>,
    /// An entry whose checksum matches.
    pub(crate) row: Option<IndexRow>,
}

pub(crate) struct DamagedFile {
    connection: Connection,
    /// Whether facts and entries have checksums.
    has_sums: bool,
    /// By chat: the facts up to this number are older than checksums.
    unsummed: HashMap<i64, u64>,
}

impl DamagedFile {
    /// Opens the file and leaves it and its log as they are.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // With the second, SQLite reads a file that was cut as far as it goes.
        connection.execute_batch("PRAGMA query_only = ON; PRAGMA writable_schema = ON;")?;
        let has_sums = connection.prepare("SELECT sum FROM facts LIMIT 0").is_ok();
        Ok(Self { connection, has_sums, unsummed: HashMap::new() })
    }

    /// The keys of chats that were deleted and whose facts may still be there; none where that cannot be read.
    pub(crate) fn deleted(&self) -> Option<HashSet<i64>> {
        let mut statement = self.connection.prepare("SELECT key FROM deleted").ok()?;
        statement.query_map([], |row| row.get(0)).ok()?.collect::<rusqlite::Result<_>>().ok()
    }

    /// The chats by their keys, as the table and its index of ids name them.
    pub(crate) fn chats(&mut self) -> BTreeMap<i64, KnownChat> {
        let mut chats: BTreeMap<i64, KnownChat> = BTreeMap::new();
        self.scan(IDS, |row| {
            if let (Ok(key), Ok(id)) = (row.get(0), row.get(1)) {
                chats.entry(key).or_default().id = Some(id);
            }
        });
        let columns = if self.has_sums { index_row::COLUMNS } else { "key, id" };
        self.scan(&format!("SELECT {columns} FROM sessions NOT INDEXED ORDER BY key"), |row| {
            let Ok(key) = row.get(0) else { return };
            let chat = chats.entry(key).or_default();
            if !self.has_sums {
                chat.id = chat.id.take().or(row.get(1).ok());
                return;
            }
            let row = IndexRow::read(row);
            if row.check().is_ok() {
                chat.id = Some(row.id.clone());
                chat.row = Some(row);
            } else {
                chat.id = chat.id.take().or(Some(row.id));
            }
        });
        let rows = chats.iter().filter_map(|(key, chat)| Some((*key, chat.row.as_ref()?.unsummed)));
        self.unsummed = rows.collect();
        chats
    }

    /// After `chats`: gives all facts whose checksum matches, in any order, some of them twice. Returns the places of the others.
    pub(crate) fn facts(&self, mut keep: impl FnMut(StoredFact)) -> HashSet<i64> {
        let mut changed = HashSet::new();
        let query = format!("SELECT {} FROM facts ORDER BY place", self.fact_columns());
        self.scan(&query, |row| match self.fact(row) {
            Ok(fact) => keep(fact),
            Err(place) => drop(changed.insert(place)),
        });
        changed
    }

    /// Asks for one fact by its place.
    pub(crate) fn find_facts(&self, key: i64, missing: &[u64], mut keep: impl FnMut(StoredFact)) {
        let query = format!("SELECT {} FROM facts WHERE place = ?1", self.fact_columns());
        let Ok(mut statement) = self.connection.prepare(&query) else { return };
        for number in missing.iter().take(usize::try_from(MOST_LOOKUPS).unwrap_or(usize::MAX)) {
            let Ok(place) = fact_key(key, *number) else { continue };
            if let Ok(Ok(fact)) = statement.query_row([place], |row| Ok(self.fact(row))) {
                keep(fact);
            }
        }
    }

    /// Gives the small records.
    pub(crate) fn records(&self, mut keep: impl FnMut(String, String, String)) {
        self.scan("SELECT kind, key, value FROM records ORDER BY kind, key", |row| {
            if let (Ok(kind), Ok(key), Ok(value)) = (row.get(0), row.get(1), row.get(2)) {
                keep(kind, key, value);
            }
        });
    }

    fn fact_columns(&self) -> &'static str {
        if self.has_sums { "place, at, kind, body, sum" } else { "place, at, kind, body, NULL" }
    }

    /// The fact, or the place of one that was changed.
    fn fact(&self, row: &Row<'_>) -> Result<StoredFact, i64> {
        let place: i64 = row.get(0).unwrap_or(0);
        let (Ok(at), Ok(kind), Ok(body), Ok(sum)) = (
            row.get::<_, u64>(1),
            row.get::<_, String>(2),
            row.get::<_, String>(3),
            row.get::<_, Option<i64>>(4),
        ) else {
            return Err(place);
        };
        let is_whole = match sum {
            Some(sum) => sum == checksum::of_fact(&place.to_le_bytes(), at, &kind, &body),
            // A record that was damaged can have lost its checksum.
            None => {
                let (key, number) = split(place);
                !self.has_sums || self.unsummed.get(&key).is_none_or(|unsummed| number <= *unsummed)
            }
        };
        let is_whole = is_whole && place > 0 && decode_fact(&kind, &body).is_ok();
        if is_whole { Ok(StoredFact { place, at, kind, body }) } else { Err(place) }
    }

    fn scan(&self, query: &str, see: impl FnMut(&Row<'_>)) {
        scan::scan(&self.connection, query, see);
    }
}
