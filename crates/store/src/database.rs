//! One connection to the database file, opened at its first use on the thread that uses it.
//!
//! Must not know what the tables hold. Invariants: write-ahead log, a commit is on disk when it returns, freed
//! space is overwritten, and no wait for another process is longer than `PATIENCE`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::Failure;
use rusqlite::{Connection, OpenFlags};

use crate::migrations;
use crate::place::{self, Place};
use crate::trouble::Trouble;

/// How long another process may keep us waiting.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Reader,
    Writer,
}

pub struct Database {
    place: Arc<Place>,
    role: Role,
    open: Option<Open>,
}

struct Open {
    connection: Connection,
    identity: Option<(u64, u64)>,
}

impl Database {
    pub fn new(place: Arc<Place>, role: Role) -> Self {
        Self { place, role, open: None }
    }

    /// True: the next use opens the file.
    pub fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// Opens the file where that is not done yet, or where another file has taken its name.
    pub fn connection(&mut self) -> Result<&mut Connection, Trouble> {
        let path = self.path();
        let known = self.open.take().filter(|open| open.identity == identity_of(&path));
        let open = match known {
            Some(open) => open,
            None => open(&self.place, self.role)?,
        };
        Ok(&mut self.open.insert(open).connection)
    }

    /// After an error that leaves the connection's state in doubt.
    pub fn close(&mut self) {
        self.open = None;
    }

    pub fn path(&self) -> PathBuf {
        self.place.database()
    }

    pub fn tell(&self, trouble: Trouble) -> Failure {
        trouble.tell(&self.path())
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| place::identity(&metadata))
}

fn open(place: &Place, role: Role) -> Result<Open, Trouble> {
    // Between making the file and the first connection to it no other thread may connect: see `Place::prepare`.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    place.prepare()?;
    let path = place.database();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&path, flags)?;
    let identity = identity_of(&path);
    drop(guard);

    connection.busy_handler(Some(wait_for_others))?;
    let current = migrations::check(&connection, &path)?;
    use_write_ahead_log(&connection)?;
    if !current {
        migrations::migrate(&mut connection, &path)?;
    }
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA secure_delete = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 0; -- the writer does it while nobody waits
         PRAGMA cache_size = -1024;",
    )?;
    if role == Role::Reader {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(Open { connection, identity })
}

/// SQLite answers "busy" at once here, without asking the busy handler, when several processes do it together.
fn use_write_ahead_log(connection: &Connection) -> Result<(), Trouble> {
    let start = Instant::now();
    loop {
        let outcome =
            connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match outcome.map_err(Trouble::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Failure::config(format!(
                    "The chat database cannot be used on this file system (journal mode {mode})."
                ))
                .hint("Set XDG_DATA_HOME to a folder on a local disk.")
                .into());
            }
            Err(trouble) if trouble.is_busy() && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(trouble) => return Err(trouble),
        }
    }
}

/// A commit takes about as long as a disk write, so looking again soon and steadily keeps several processes fair.
fn wait_for_others(tries: i32) -> bool {
    const SHORT: Duration = Duration::from_micros(500);
    const LONG: Duration = Duration::from_millis(5);
    const SHORT_TRIES: i32 = 40;
    const MOST_TRIES: i32 = SHORT_TRIES + (PATIENCE.as_millis() / LONG.as_millis()) as i32;
    std::thread::sleep(if tries < SHORT_TRIES { SHORT } else { LONG });
    tries < MOST_TRIES
}
