//! Snapshots of what a turn changed, by content hash and outside of git, and the way back.
//!
//! Knows files, not chats: an owner is a name, a turn is a number. Must not know the engine, tools or protocols; runs no
//! program. Invariants: the former bytes of a path are in the store before it may change; a restore never discards bytes
//! that are on disk, it stores them first; a kill at any moment leaves a usable store; links are never followed.

mod build_folders;
mod coverage;
mod due;
mod error;
mod git;
mod index;
mod known;
mod limits;
mod objects;
mod pending;
mod plan;
mod private;
mod record;
mod refresh;
mod restore;
mod retention;
mod scan;
mod snapshot;
mod state;
mod store_size;
mod turns;
mod unrecoverable;

use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime};

pub use coverage::Coverage;
pub use due::{DueNote, InterruptedCommand};
use error::At;
pub use error::UndoError;
use known::{KnownIndex, RecentScan};
pub use limits::Limits;
use objects::Objects;
pub use plan::{Action, Plan, Step};
pub use restore::Outcome;
pub use retention::DiskUse;
pub use snapshot::CommandSnapshot;
pub use state::{FileState, StoredPath};
pub use turns::TurnSummary;

/// A turn of an owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnKey {
    pub owner: String,
    pub turn: u64,
}

/// The store in one folder. Several processes may use it at once.
pub struct UndoStore {
    folder: PathBuf,
    limits: Limits,
    objects: Objects,
    /// By root.
    indexes: Mutex<HashMap<PathBuf, KnownIndex>>,
    /// How often this store has recorded something: a scan is used once more only while nothing was.
    recorded: AtomicU64,
    recent: Mutex<Vec<RecentScan>>,
    /// Baselines of commands that this process runs.
    live: Mutex<HashSet<PathBuf>>,
    /// Roots with too many entries; they are not walked again.
    too_large: Mutex<HashSet<PathBuf>>,
}

impl UndoStore {
    /// Touches nothing; the first record creates the folder.
    pub fn new(folder: PathBuf, limits: Limits) -> Self {
        let objects = Objects::new(folder.join("objects"), limits);
        Self {
            folder,
            limits,
            objects,
            indexes: Mutex::default(),
            recorded: AtomicU64::new(0),
            recent: Mutex::default(),
            live: Mutex::default(),
            too_large: Mutex::default(),
        }
    }

    /// Keeps other processes from tidying the store while contents are stored that no record names yet.
    fn lock(&self) -> Result<File, UndoError> {
        let path = self.folder.join("lock");
        let file = private::append_to(&path).at("open", &path)?;
        let start = Instant::now();
        loop {
            match file.try_lock_shared() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if start.elapsed() < self.limits.lock_timeout => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::from(io::ErrorKind::TimedOut)).at("lock", &path);
                }
                Err(TryLockError::Error(error)) => return Err(error).at("lock", &path),
            }
        }
    }

    fn owner_folder(&self, owner: &str) -> PathBuf {
        // Owners are named by others and need not be file names.
        self.folder.join("turns").join(&state::Hash::of(owner.as_bytes()).hex()[..32])
    }

    fn turn_folder(&self, key: &TurnKey) -> PathBuf {
        self.owner_folder(&key.owner).join(format!("turn-{:010}", key.turn))
    }

    /// The log of a turn, with its first line.
    fn turn_log(&self, key: &TurnKey) -> Result<PathBuf, UndoError> {
        let log = self.turn_folder(key).join("log");
        if !log.exists() {
            let line = record::Line::Turn { owner: key.owner.clone(), turn: key.turn, at: now() };
            record::append(&log, &line).at("write", &log)?;
        }
        Ok(log)
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The path without links in its folders, also where it does not exist yet.
fn resolve(path: &Path) -> PathBuf {
    for ancestor in path.ancestors().skip(1) {
        if let (Ok(whole), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return whole.join(rest);
        }
    }
    path.to_owned()
}
