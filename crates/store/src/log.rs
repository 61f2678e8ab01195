//! The write-ahead log: how long it is, how it is written back into the database file, and how it is emptied.
//!
//! SQLite does all of it; this file only says when. SQLite's own trigger is off, because it writes the log back inside the commit
//! that a prompt waits for. Lengths come from SQLite, which counts what all processes wrote, so a process that
//! writes little sees the log of those before it.
//! Must not know the tables. Invariant: nothing here waits longer than `SHORT_WAIT` for another process.

use std::time::Duration;

use domain::Failure;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::waiting;

/// Frames (pages of 4 KiB) after which an idle writer writes the log back, and a busy one. The second is the length that the file
/// keeps: SQLite then begins it anew at its start and cuts what is longer.
pub(crate) const LIMIT_IDLE: u64 = 512;
pub(crate) const LIMIT: u64 = 1024;
/// The same in bytes.
pub(crate) const LIMIT_BYTES: u64 = LIMIT * 4096;

/// The longest wait for others that read from the log or write to it.
const SHORT_WAIT: Duration = Duration::from_millis(2);

/// What a request about the log came to.
struct LogState {
    /// Others read from the log or write to it.
    is_busy: bool,
    frames: u64,
}

/// The frames of the log, of all processes.
pub(crate) fn length(connection: &Connection) -> Result<u64, StoreError> {
    Ok(request(connection, "PRAGMA wal_checkpoint(NOOP)")?.frames)
}

/// Writes back what no reader needs in its old state; nobody waits meanwhile. Where processes write without a pause, the
/// log never is in the file as a whole and would grow: a long one is brought to its end while the others wait.
pub(crate) fn write_back(connection: &mut Connection) -> Result<(), StoreError> {
    if request(connection, "PRAGMA wal_checkpoint(PASSIVE)")?.frames >= LIMIT {
        briefly(connection, |connection| request(connection, "PRAGMA wal_checkpoint(RESTART)"))?;
    }
    Ok(())
}

/// Writes all of the log back and cuts its file to nothing. Returns false while anybody uses the log.
pub(crate) fn empty(connection: &mut Connection) -> Result<bool, StoreError> {
    let state = briefly(connection, |connection| request(connection, "PRAGMA wal_checkpoint(TRUNCATE)"))?;
    Ok(!state.is_busy && state.frames == 0)
}

fn request(connection: &Connection, statement: &str) -> Result<LogState, StoreError> {
    let (is_busy, frames): (bool, i64) =
        connection.query_row(statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if !is_busy && frames < 0 {
        // After a fault of the disk SQLite goes on without a log.
        return Err(Failure::internal("The chat database has lost its write-ahead log.").into());
    }
    // A negative number means that another process was just changing the log.
    Ok(LogState { is_busy: is_busy || frames < 0, frames: u64::try_from(frames).unwrap_or(0) })
}

/// These requests make all writers wait, so they must not wait long themselves.
fn briefly<T>(
    connection: &mut Connection,
    act: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.busy_timeout(SHORT_WAIT)?;
    let outcome = act(connection);
    waiting::wait_for_others(connection)?;
    outcome
}
