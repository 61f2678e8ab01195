//! The format of the database file and how an older file becomes a current one.
//!
//! Invariants: a released step never changes; a file of a newer format or of another program is refused untouched.
//! A new kind of fact or item is not a new format: an older build names the one chat that it cannot read.

use std::path::Path;

use domain::Failure;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::index_row;

/// "Drgm" in the file's header: `file chats.sqlite` shows it.
pub(crate) const APPLICATION: i64 = 0x4472_676d;

/// Step N makes format N of format N-1. Format 0 is an empty file.
const STEPS: &[&str] = &[
"
    -- One row per chat, made of its facts and in the same transaction.
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY CHECK (key BETWEEN 1 AND 0x7fffffff),
        id TEXT NOT NULL UNIQUE,
        title TEXT,
        model TEXT,
        workspace TEXT NOT NULL, -- JSON array of paths
        parent TEXT,
        created INTEGER NOT NULL, -- milliseconds since 1970, as all times
        updated INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        newest INTEGER NOT NULL
    ) STRICT;

    -- The pair (session, number) is the primary key, packed into one integer: the rows of a chat lie together, the
    -- file is a third smaller and an append writes 40 % less than with a key of two columns.
    CREATE TABLE facts (
        place INTEGER PRIMARY KEY, -- session << 32 | number
        session INTEGER NOT NULL GENERATED ALWAYS AS (place >> 32) VIRTUAL,
        number INTEGER NOT NULL GENERATED ALWAYS AS (place & 0xffffffff) VIRTUAL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL -- JSON
    ) STRICT;

    CREATE TABLE records (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
",
"
    -- Lists: a page in the order of time, and the chats of one folder.
    CREATE INDEX sessions_by_time ON sessions (updated DESC, key DESC);
    CREATE INDEX sessions_by_workspace ON sessions (workspace);
    CREATE INDEX sessions_of_several_folders ON sessions (key) WHERE workspace LIKE '%\",\"%';
    -- The words of the messages, by the place of their fact. Deleted words are overwritten.
    CREATE VIRTUAL TABLE search USING fts5(text, content = '', detail = 'none', 
        tokenize = 'unicode61 remove_diacritics 0');
    INSERT INTO search (search, rank) VALUES ('secure-delete', 1);
    -- Messages that are not in the index yet.
    CREATE TABLE unindexed (place INTEGER PRIMARY KEY) STRICT;
    INSERT INTO unindexed SELECT place FROM facts WHERE kind = 'itemEnded'
        AND (body LIKE '%\"userMessage\"%' OR body LIKE '%\"agentMessage\"%');
",
"
    -- Lists: chats in the order of time, also of one folder. Appends within a quarter of a second change no index.
    ALTER TABLE sessions ADD COLUMN quarter INTEGER NOT NULL DEFAULT 0; -- updated / 250
    UPDATE sessions SET quarter = updated / 250;
    DROP INDEX sessions_by_time;
    CREATE INDEX sessions_by_time ON sessions (quarter DESC);
    DROP INDEX sessions_by_workspace;
    CREATE INDEX sessions_by_workspace ON sessions (workspace, quarter DESC);
    DROP INDEX sessions_of_several_folders;
    CREATE INDEX sessions_of_several_folders ON sessions (quarter DESC) WHERE workspace LIKE '%\",\"%';
    -- The writer merges the parts of the index in short steps instead.
    INSERT INTO search (search, rank) VALUES ('automerge', 0);
    INSERT INTO search (search, rank) VALUES ('crisismerge', 256);
    INSERT INTO search (search, rank) VALUES ('pgsz', 512);
    -- Deleted chats whose text may still be in the files.
    CREATE TABLE deleted (key INTEGER PRIMARY KEY) STRICT;
    -- The largest key of a deleted chat: no key is given twice.
    CREATE TABLE last_deleted (key INTEGER NOT NULL) STRICT;
    INSERT INTO last_deleted VALUES (0);
    INSERT INTO deleted SELECT 0 FROM records WHERE kind = 'store' AND key = 'erase';
    DELETE FROM records WHERE kind = 'store' AND key = 'erase';
    -- Pages of a file from before may hold copies of rows: the first deletion looks at all of them.
    INSERT INTO records SELECT 'store', 'copies', 'possible' 
        WHERE EXISTS (SELECT 1 FROM facts) OR EXISTS (SELECT 1 FROM deleted);
",
"
    -- Checksums of facts and of index rows: see `checksum`, `chat` and `index_row`.
    ALTER TABLE facts ADD COLUMN sum INTEGER;
    ALTER TABLE sessions ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN unsummed INTEGER NOT NULL DEFAULT 0; -- the facts up to this number have no checksum
    UPDATE sessions SET unsummed = newest;
"];

/// The first format with checksums; the rows of a file from before get theirs when it becomes current.
const FIRST_SUMMED: usize = 4;

/// The format that this build writes.
pub(crate) const CURRENT: i64 = STEPS.len() as i64;

/// Refuses a file of another program or of a newer format and changes nothing. Returns whether the format is current.
///
/// Reads everything in one transaction: between two reads another process may commit the first format.
pub(crate) fn check(connection: &mut Connection, database: &Path) -> Result<bool, StoreError> {
    let transaction = connection.transaction()?;
    check_inside(&transaction, database)
}

fn check_inside(transaction: &Transaction<'_>, database: &Path) -> Result<bool, StoreError> {
    let application = number(transaction, "application_id")?;
    let version = number(transaction, "user_version")?;
    let path = database.display();
    if application == 0 && version == 0 {
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(false);
        }
    }
    if application != APPLICATION {
        return Err(Failure::config(format!("{path} is a database of another program."))
            .hint("Move it away, or set XDG_DATA_HOME to another folder.")
            .into());
    }
    if version > CURRENT {
        return Err(Failure::config(format!(
            "The chat database {path} was written by a newer Dragoman (format {version}; this one reads up to \
             {CURRENT})."
        ))
        .hint("Update Dragoman, or set XDG_DATA_HOME to another folder. The file was not changed.")
        .into());
    }
    Ok(version == CURRENT)
}

/// Brings an older file to the current format; of several processes the first does it.
pub(crate) fn migrate(connection: &mut Connection, database: &Path) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    if check_inside(&transaction, database)? {
        return Ok(());
    }
    let version = usize::try_from(number(&transaction, "user_version")?).unwrap_or(0);
    for step in STEPS.iter().skip(version) {
        transaction.execute_batch(step)?;
    }
    if version < FIRST_SUMMED {
        index_row::sum_all(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", CURRENT)?;
    Ok(transaction.commit()?)
}

/// A newer build may migrate the file while this process has it open; this process must then stop writing.
pub(crate) fn still_current(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA user_version")?;
    let version: i64 = statement.query_row([], |row| row.get(0))?;
    if version == CURRENT {
        return Ok(());
    }
    Err(Failure::config("A newer Dragoman has changed the format of the chat database while this one ran.")
        .hint("Restart Dragoman with the newer version.")
        .into())
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process looks at the file again and again while another one makes the first format in it.
    #[test]
    fn a_file_that_is_being_made_is_no_file_of_another_program() {
        let directory = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = directory.path().join(format!("{round}.sqlite"));
            let open = || {
                let connection = Connection::open(&path).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                connection
            };
            let mut maker = open();
            maker.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = OFF").unwrap();
            let mut looker = open();
            assert!(!check(&mut looker, &path).unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| while !check(&mut looker, &path).unwrap() {});
                migrate(&mut maker, &path).unwrap();
            });
        }
    }
}
