//! One connection to the database file, opened at its first use on the thread that uses it.
//!
//! Must not know what the tables hold. Invariants: write-ahead log, a commit is on disk when it returns, freed
//! space is overwritten, and no wait for another process is longer than `BUSY_TIMEOUT`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::Failure;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::files::StoreFiles;
use crate::log_damage::LogBefore;
use crate::waiting::{BUSY_TIMEOUT, wait_for_others};
use crate::{log, migrations, unused_bytes};

/// The pause between two steps of maintenance: another process that waits for the lock gets it.
pub(crate) const OTHERS_TURN: Duration = Duration::from_micros(300);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

pub(crate) struct Database {
    files: Arc<StoreFiles>,
    role: Role,
    open: Option<OpenFile>,
}

struct OpenFile {
    connection: Connection,
    identity: Option<(u64, u64)>,
}

impl Database {
    pub(crate) fn new(files: Arc<StoreFiles>, role: Role) -> Self {
        Self { files, role, open: None }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// The connection; opens the file at the first use and again when another file has replaced it.
    pub(crate) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let path = self.path();
        let known = self.open.take().filter(|open| open.identity == identity_of(&path));
        let open = match known {
            Some(open) => open,
            None => open(&self.files, self.role)?,
        };
        Ok(&mut self.open.insert(open).connection)
    }

    /// After an error that leaves the connection's state in doubt.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.files.database()
    }

    pub(crate) fn failure(&self, error: StoreError) -> Failure {
        error.into_failure(&self.path())
    }
}

/// Opens the database of a new store; makes its folder and its tables.
pub(crate) fn create(files: &StoreFiles) -> Result<Connection, StoreError> {
    Ok(open(files, Role::Writer)?.connection)
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    platform::identity(path).ok()
}

fn open(files: &StoreFiles, role: Role) -> Result<OpenFile, StoreError> {
    // Between making the file and the first connection to it no other thread may connect: see `StoreFiles::prepare`.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    files.prepare()?;
    let path = files.database();
    let log = LogBefore::read(&path);
    let mut connection = connect(&path)?;
    let identity = identity_of(&path);
    drop(guard);
    let current = match migrations::check(&mut connection, &path) {
        Err(error) if error.is_damage() && role == Role::Reader => {
            // SQLite then reads a file that was cut as far as it goes. This connection never writes.
            connection.execute_batch("PRAGMA query_only = ON; PRAGMA writable_schema = ON;")?;
            migrations::check(&mut connection, &path)?
        }
        checked => checked?,
    };
    use_write_ahead_log(&connection)?;
    if let Some(log) = log {
        log.check(&connection)?;
    }
    if !current {
        migrations::migrate(&mut connection, &path)?;
    }
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -1024;",
    )?;
    if role == Role::Reader {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(OpenFile { connection, identity })
}

/// A connection that waits for others, overwrites what it deletes, and leaves it to the writer when the log is written back. The
/// last connection of all processes writes back the rest when it closes, and removes the log.
pub(crate) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    unused_bytes::zero_on_write(&connection)?;
    wait_for_others(&mut connection)?;
    connection.execute_batch(&format!(
        "PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON; PRAGMA journal_size_limit = {};",
        log::LIMIT_BYTES
    ))?;
    Ok(connection)
}

/// When several processes change the mode at once, SQLite returns "busy" without calling the busy handler.
fn use_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let start = Instant::now();
    loop {
        let outcome =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match outcome.map_err(StoreError::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Failure::config(format!(
                    "The chat database cannot be used on this file system (journal mode {mode})."
                ))
                .hint("Set XDG_DATA_HOME to a folder on a local disk.")
                .into());
            }
            Err(error) if error.is_busy() && start.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}
