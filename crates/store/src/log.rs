//! The write-ahead log on its way back into the database file.
//!
//! Must not know the tables. Invariant: SQLite begins the log anew only after each page in it was looked at in its last
//! state and found without copies of rows. So the file holds no copies, and a deletion looks at the log alone.
//! Every connection is opened so that SQLite itself never writes the log back.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::Failure;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::{database, erase, files};

/// Other processes may write or read while this one cleans or empties the log; so often it begins again.
const TRIES: usize = 20;
/// Frames that one step looks at.
const FRAMES_PER_STEP: u64 = 2048;
/// Frames of a log that must come to its end.
const LONG: u64 = 4096;
/// The pause before another try to empty a log that somebody reads.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Log {
    database: PathBuf,
    path: PathBuf,
    /// The frames before this were looked at, and what was found in them was cleaned.
    checked: Position,
}

#[derive(Clone, Copy, Default)]
struct Position {
    generation: Generation,
    frames: u64,
}

/// SQLite gives the log other numbers each time when it begins it anew.
type Generation = [u8; 8];

impl Log {
    pub(crate) fn new(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { database: database.to_owned(), path: path.into(), checked: Position::default() }
    }

    /// Cleans some of the pages that were written since the last look. Returns whether none is left.
    pub(crate) fn clean_some(&mut self, connection: &mut Connection) -> Result<bool, StoreError> {
        let Some(mut position) = self.position(connection)? else { return Ok(false) };
        let end = position.frames;
        position.frames = end.min(self.checked_in(position.generation) + FRAMES_PER_STEP);
        let dirty = self.dirty_pages(connection, position)?;
        erase::clean(connection, &dirty)?;
        self.checked = position;
        Ok(position.frames == end)
    }

    /// One short step of writing back what no reader needs in its old state. Others go on reading and writing meanwhile.
    /// Returns whether that is done.
    pub(crate) fn write_back_some(&mut self, connection: &mut Connection) -> Result<bool, StoreError> {
        let Some(position) = self.position(connection)? else { return Ok(false) };
        if position.frames > self.checked_in(position.generation) + FRAMES_PER_STEP {
            self.clean_some(connection)?;
            return Ok(false);
        }
        // The first try cleans what this process wrote; what others write meanwhile is little.
        let is_done = self.try_to_write_back(connection, TransactionBehavior::Deferred)?
            || self.try_to_write_back(connection, TransactionBehavior::Deferred)?;
        if is_done && position.frames > LONG {
            // SQLite begins the log anew when all of it is in the file, which never happens while several processes write
            // without a pause.
            return self.try_to_write_back(connection, TransactionBehavior::Immediate);
        }
        Ok(is_done)
    }

    /// After `write_back_some`: writes the rest back and removes all older bytes from the log. Returns false while anybody reads from
    /// the log.
    pub(crate) fn empty(&mut self, connection: &mut Connection) -> Result<bool, StoreError> {
        // The first commit of a new generation cuts the file to its own length.
        connection.pragma_update(None, "journal_size_limit", 0)?;
        let emptied = self.try_to_empty(connection);
        connection.pragma_update(None, "journal_size_limit", -1)?;
        emptied
    }

    fn try_to_empty(&mut self, connection: &mut Connection) -> Result<bool, StoreError> {
        for _ in 0..TRIES {
            // Nobody writes until the rest, which is short now, is in the file.
            if self.try_to_write_back(connection, TransactionBehavior::Immediate)? {
                let before = self.generation()?;
                commit_anything(connection)?;
                if let Some(after) = self.position(connection)?
                    && after.generation != before
                    && after.frames == self.frames_in_file()?
                {
                    return Ok(true);
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(false)
    }

    /// Cleans the pages in the log, or writes back what is clean already and returns true.
    fn try_to_write_back(
        &mut self,
        connection: &mut Connection,
        behavior: TransactionBehavior,
    ) -> Result<bool, StoreError> {
        let Some(position) = self.position(connection)? else { return Ok(false) };
        // While a transaction is open, SQLite writes back no later state than the one that it sees.
        let mut second = database::connect(&self.database)?;
        let seen = second.transaction_with_behavior(behavior)?;
        seen.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let Some(end) = self.position(connection)? else { return Ok(false) };
        let dirty = self.dirty_pages(&seen, end)?;
        let is_clean = dirty.is_empty();
        if is_clean {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        } else {
            drop(seen);
            erase::clean(connection, &dirty)?;
        }
        self.checked = position;
        Ok(is_clean)
    }

    /// Lets SQLite write the log back and remove it when the last connection closes.
    pub(crate) fn allow_removal(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let Some(position) = self.position(connection)? else { continue };
            let dirty = self.dirty_pages(connection, position)?;
            if dirty.is_empty() {
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
                break;
            }
            erase::clean(connection, &dirty)?;
            self.checked = position;
        }
        Ok(())
    }

    /// The same for a connection that must not write: where the log holds nothing.
    pub(crate) fn allow_removal_if_empty(&self, connection: &Connection) -> Result<(), StoreError> {
        if self.frames_in_file()? == 0 {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        }
        Ok(())
    }

    /// The end of what was committed; every later transaction sees that. None while another process is just changing it.
    fn position(&self, connection: &Connection) -> Result<Option<Position>, StoreError> {
        let generation = self.generation()?;
        let (is_busy, frames): (bool, i64) =
            connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if !is_busy && frames < 0 {
            return Err(Failure::internal("The chat database has lost its write-ahead log.").into());
        }
        // A negative number means that SQLite could not read it.
        let frames =
            u64::try_from(frames).ok().filter(|_| self.generation().is_ok_and(|now| now == generation));
        Ok(frames.map(|frames| Position { generation, frames }))
    }

    fn checked_in(&self, generation: Generation) -> u64 {
        if generation == self.checked.generation { self.checked.frames } else { 0 }
    }

    /// The pages that were written between the last look and `end` and hold copies of rows in their last state there.
    fn dirty_pages(&self, connection: &Connection, end: Position) -> Result<Vec<u32>, StoreError> {
        if !erase::knows_pages(connection)? {
            return Ok(Vec::new());
        }
        let Some(mut file) = self.open()? else { return Ok(Vec::new()) };
        let mut is_dirty = HashMap::new();
        let states = file.read_frames(self.checked_in(end.generation)..end.frames, |page, state| {
            is_dirty.insert(page, erase::has_copies(page, state));
        });
        states.map_err(|error| self.unreadable(&error))?;
        Ok(is_dirty.into_iter().filter_map(|(page, is_dirty)| is_dirty.then_some(page)).collect())
    }

    fn generation(&self) -> Result<Generation, StoreError> {
        Ok(self.open()?.map(|file| file.generation).unwrap_or_default())
    }

    /// Also those of older generations that were not overwritten yet.
    fn frames_in_file(&self) -> Result<u64, StoreError> {
        Ok(self.open()?.map_or(0, |file| file.frames))
    }

    fn open(&self) -> Result<Option<LogFile>, StoreError> {
        LogFile::open(&self.path).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> StoreError {
        files::unusable(&self.path, error).into()
    }
}

/// A transaction that changes no value: with all of the log in the file, it is the first of a new generation.
fn commit_anything(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

/// The log by SQLite's documented format: a header, then frames. Each frame is a new state of a page.
struct LogFile {
    file: File,
    generation: Generation,
    frame_size: u64,
    frames: u64,
}

const HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;
/// Frames that are read at once.
const FRAMES_PER_READ: usize = 64;

impl LogFile {
    /// None without a header: nothing was written yet.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let mut log = Self { file, generation: Generation::default(), frame_size: 0, frames: 0 };
        let (Some(page_size), Some(generation)) = (log.read(8)?, log.read(16)?) else { return Ok(None) };
        log.generation = generation;
        log.frame_size = FRAME_HEADER as u64 + u64::from(u32::from_be_bytes(page_size));
        log.frames = length.saturating_sub(HEADER) / log.frame_size;
        Ok(Some(log))
    }

    /// Calls `see` with the number and the bytes of each page in these frames.
    fn read_frames(&mut self, frames: Range<u64>, mut see: impl FnMut(u32, &[u8])) -> io::Result<()> {
        let frame_size = usize::try_from(self.frame_size).map_err(io::Error::other)?;
        let mut buffer = vec![0; frame_size * FRAMES_PER_READ];
        self.file.seek(SeekFrom::Start(HEADER + frames.start * self.frame_size))?;
        let mut left = usize::try_from(frames.end.saturating_sub(frames.start)).map_err(io::Error::other)?;
        while left > 0 {
            let some = &mut buffer[..frame_size * left.min(FRAMES_PER_READ)];
            match self.file.read_exact(some) {
                // Another process has emptied the log.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                outcome => outcome?,
            }
            for frame in some.chunks_exact(frame_size) {
                if let Some(([a, b, c, d], frame)) = frame.split_first_chunk() {
                    see(u32::from_be_bytes([*a, *b, *c, *d]), &frame[FRAME_HEADER - 4..]);
                }
            }
            left -= some.len() / frame_size;
        }
        Ok(())
    }

    /// None behind the end of the file.
    fn read<const N: usize>(&mut self, at: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        self.file.seek(SeekFrom::Start(at))?;
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}
