//! Looks at the database file as SQLite sees it; whether each chat can be read is the business of its reader.
//!
//! Must not know facts. Invariant: no message holds text of a chat.

use std::path::Path;

use domain::Failure;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::StoreError;
use crate::files::StoreFiles;
use crate::{database, migrations};

/// So many problems are named; a damaged page alone can cause thousands.
const MOST_PROBLEMS: usize = 20;

/// What is wrong with the structure of the file in this folder. `None` where there is no file.
pub fn check_file(directory: &Path) -> Result<Option<Vec<String>>, Failure> {
    let path = StoreFiles::new(directory, String::new()).database();
    if !path.exists() {
        return Ok(None);
    }
    let checked = database::connect(&path).and_then(|connection| {
        // The log stays as it is: a repair may want to copy it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        problems(&connection)
    });
    match checked {
        Ok(problems) => Ok(Some(problems)),
        Err(error) if error.is_damage() => Ok(Some(vec![error.into_failure(&path).message])),
        Err(error) => Err(error.into_failure(&path)),
    }
}

fn problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MOST_PROBLEMS})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut problems = found.collect::<rusqlite::Result<Vec<_>>>()?;
    problems.retain(|problem| problem != "ok");
    if migrations::still_current(connection).is_err() {
        // The tables are those of another build; its structure is all that can be looked at.
        return Ok(problems);
    }
    // It changes nothing.
    if let Err(error) = connection.execute("INSERT INTO search (search) VALUES ('integrity-check')", []) {
        let error = StoreError::from(error);
        if !error.is_damage() {
            return Err(error);
        }
        problems.push("the index of words is damaged: searches may miss messages".to_owned());
    }
    let orphans: i64 = connection.query_row(
        "SELECT count(*) FROM (SELECT DISTINCT session FROM facts EXCEPT SELECT key FROM sessions
             EXCEPT SELECT key FROM deleted)",
        [],
        |row| row.get(0),
    )?;
    if orphans > 0 {
        problems.push(format!("{orphans} chats have facts and no entry in the list of chats"));
    }
    Ok(problems)
}
