//! Damage of a log that a killed process left: SQLite drops a frame whose checksum is wrong and all that follow, and says
//! nothing.
//!
//! Reads the headers of frames by SQLite's documented format, counts commits, and compares that with what SQLite has found. Must not
//! change anything but to keep a copy. Invariant: what a crash alone can leave is no damage: at most one commit that was
//! not acknowledged.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::Failure;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::{files, log};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Every commit but the last one was on the disk before the next one began.
const LEFT_BY_A_CRASH: usize = 1;
/// A longer log is not looked at: no build leaves one, and it would take too long.
const MOST_BYTES: u64 = 64 << 20;

/// A log as it was before SQLite opened it.
pub(crate) struct LogBefore {
    path: PathBuf,
    /// SQLite gives the log other numbers each time when it begins it anew.
    salts: [u8; 8],
    /// The numbers of the frames that end a commit.
    commits: Vec<u64>,
}

impl LogBefore {
    /// None where there is no log with commits.
    pub(crate) fn read(database: &Path) -> Option<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        let (salts, commits) = read_commits(Path::new(&path)).ok().flatten()?;
        (commits.len() > LEFT_BY_A_CRASH).then(|| Self { path: path.into(), salts, commits })
    }

    /// Fails once where commits of the log were dropped, after it has kept a copy of the log. The next try goes on without them.
    pub(crate) fn check(self, connection: &Connection) -> Result<(), StoreError> {
        if self.dropped(connection)? <= LEFT_BY_A_CRASH {
            return Ok(());
        }
        // Another process may have written a commit whose frames SQLite does not count yet.
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
        let dropped = self.dropped(connection)?;
        let is_same = read_commits(&self.path).ok().flatten().is_some_and(|(salts, _)| salts == self.salts);
        let copy = self.copy_path();
        if dropped <= LEFT_BY_A_CRASH || !is_same || copy.exists() {
            return Ok(());
        }
        let kept = files::private_file(&copy)
            .and_then(|mut copy| io::copy(&mut File::open(&self.path)?, &mut copy).map(drop));
        kept.map_err(|error| files::unusable(&copy, &error))?;
        Err(Failure::config(format!(
            "The log of the chat database is damaged: {dropped} changes that were written before a crash cannot be read."
        ))
        .hint(format!(
            "A copy of the log is kept as {}. Everything else is whole: try again, and Dragoman goes on without them.",
            copy.display()
        ))
        .into())
    }

    /// How many commits SQLite has not found.
    fn dropped(&self, connection: &Connection) -> Result<usize, StoreError> {
        let found = log::length(connection)?;
        Ok(self.commits.iter().filter(|frame| **frame > found).count())
    }

    /// Named by the log, so that each damage is reported once.
    fn copy_path(&self) -> PathBuf {
        let name = format!("chats.sqlite.damaged-log-{:016x}", u64::from_be_bytes(self.salts));
        self.path.with_file_name(name)
    }
}

/// The salts of the log, and the frames of its commits.
fn read_commits(path: &Path) -> io::Result<Option<([u8; 8], Vec<u64>)>> {
    let length = fs::metadata(path)?.len();
    if length <= HEADER as u64 || length > MOST_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let (Some(page), Some(salts)) = (number(8), bytes.get(16..24).and_then(|salts| salts.first_chunk::<8>()))
    else {
        return Ok(None);
    };
    let is_size = (512..=65536).contains(&page) && page.is_power_of_two();
    let size = FRAME_HEADER + page as usize;
    let frames = bytes.get(HEADER..).unwrap_or_default().chunks_exact(size).filter(|_| is_size);
    // The second number of a frame is that of pages after a commit, else 0; frames of an older log have other salts.
    let is_current = |frame: &&[u8]| frame.get(8..16) == Some(salts.as_slice());
    let commits = (1_u64..).zip(frames.take_while(is_current));
    let commits = commits.filter(|(_, frame)| frame.get(4..8).is_some_and(|size| size != [0; 4]));
    Ok(Some((*salts, commits.map(|(number, _)| number).collect())))
}
