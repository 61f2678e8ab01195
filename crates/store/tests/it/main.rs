//! The journal as its users see it: real files, real processes.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::print_stdout, reason = "`make figures` collects the lines that begin with `figure:`")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their scale from the environment and start processes"
)]

mod damage;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod faults;
mod format;
mod leases;
mod numbering;
mod privacy;
mod processes;
mod records;
mod searching;

use std::path::Path;

use domain::{Recorded, SessionId, Store};
use store::Journal;

fn id(text: &str) -> SessionId {
    SessionId::new(text)
}

fn journal(directory: &Path) -> Journal {
    Journal::open(directory).unwrap()
}

/// A connection behind the journal's back.
fn sqlite(directory: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(directory.join("chats.sqlite")).unwrap()
}

async fn read_all(journal: &Journal, session: &SessionId) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    loop {
        let page = journal.read(session, all.len() as u64, 1000).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// In memory where that is possible: syncing a disk takes most of the time, and a busy one fails tests that are not
/// about it.
fn memory_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// 1 for every run, 10 for the full figures.
fn scale() -> usize {
    std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
