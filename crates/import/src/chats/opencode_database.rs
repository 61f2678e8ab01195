//! Chats of newer versions of opencode: the tables `session`, `message` and `part` of `opencode.db`, where `data` is JSON.
//!
//! Invariant: the database is never opened, only copied with its log. SQLite writes beside a database that it reads.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row};
use serde_json::Value;

use super::foreign::{Unusable, files};

/// A chat in the form that the files and the database share.
pub(super) struct StoredChat {
    pub id: String,
    pub file: PathBuf,
    pub folder: Option<String>,
    pub title: Option<String>,
    /// Milliseconds since 1970.
    pub updated: Value,
    /// Each with its parts, in order.
    pub messages: Vec<(Value, Vec<Value>)>,
    /// Messages and parts that could not be read.
    pub unreadable: usize,
}

/// A database with more than this is left out.
const MAX_DATABASE_BYTES: u64 = 4 << 30;
/// A message or part with more than this is left out.
const MAX_ROW_BYTES: i64 = 64 << 20;

/// `opencode.db`, and `opencode-CHANNEL.db` of versions that are no release.
pub(super) fn databases(data: &Path) -> Vec<PathBuf> {
    let is_database = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        name == "opencode" || name.starts_with("opencode-")
    };
    files(data, "db", 0).into_iter().filter(is_database).collect()
}

pub(super) fn read_chats(database: &Path) -> Result<Vec<StoredChat>, Unusable> {
    let unusable = |reason: String| (database.to_owned(), reason);
    let copy = copy(database).map_err(|error| unusable(format!("it cannot be copied ({error})")))?;
    let read = || -> rusqlite::Result<Vec<StoredChat>> {
        let connection = open(&copy.path().join("copy.db"))?;
        let mut chats = sessions(&connection, database)?;
        for chat in &mut chats {
            (chat.messages, chat.unreadable) = messages(&connection, &chat.id)?;
        }
        Ok(chats)
    };
    read().map_err(|error| unusable(format!("it cannot be read ({error})")))
}

/// The database and its log in a folder of their own, which ends with the value.
fn copy(database: &Path) -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("dragoman-import").tempdir()?;
    copy_file(database, &folder.path().join("copy.db"))?;
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    if log.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        copy_file(&log, &folder.path().join("copy.db-wal"))?;
    }
    Ok(folder)
}

fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?.take(MAX_DATABASE_BYTES + 1);
    let copied = std::io::copy(&mut source, &mut File::create_new(to)?)?;
    if copied > MAX_DATABASE_BYTES {
        return Err(std::io::Error::other("it is larger than 4 GiB"));
    }
    Ok(())
}

fn open(copy: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags)?;
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(connection)
}

fn sessions(connection: &Connection, database: &Path) -> rusqlite::Result<Vec<StoredChat>> {
    let mut statement = connection
        .prepare("SELECT id, directory, title, time_updated FROM session ORDER BY time_created, id")?;
    let rows = statement.query_map([], |row| {
        Ok(StoredChat {
            id: row.get(0)?,
            file: database.to_owned(),
            folder: row.get(1)?,
            title: row.get(2)?,
            updated: Value::from(row.get::<_, Option<i64>>(3)?),
            messages: Vec::new(),
            unreadable: 0,
        })
    })?;
    rows.collect()
}

/// The messages with their parts, and the number of rows whose JSON is torn.
type Messages = (Vec<(Value, Vec<Value>)>, usize);

fn messages(connection: &Connection, session: &str) -> rusqlite::Result<Messages> {
    let mut all = connection.prepare(
        "SELECT data, id FROM message WHERE session_id = ?1 AND length(data) <= ?2 ORDER BY time_created, id",
    )?;
    let mut of_message = connection
        .prepare("SELECT data FROM part WHERE message_id = ?1 AND length(data) <= ?2 ORDER BY id")?;
    let (mut messages, mut unreadable) = (Vec::new(), 0);
    let mut rows = all.query((session, MAX_ROW_BYTES))?;
    while let Some(row) = rows.next()? {
        let (Some(message), id) = (json(row)?, row.get::<_, String>(1)?) else {
            unreadable += 1;
            continue;
        };
        let mut parts = Vec::new();
        let mut rows = of_message.query((id, MAX_ROW_BYTES))?;
        while let Some(row) = rows.next()? {
            match json(row)? {
                Some(part) => parts.push(part),
                None => unreadable += 1,
            }
        }
        messages.push((message, parts));
    }
    Ok((messages, unreadable))
}

/// The JSON in the first column.
fn json(row: &Row<'_>) -> rusqlite::Result<Option<Value>> {
    Ok(serde_json::from_str(row.get_ref(0)?.as_str()?).ok())
}
