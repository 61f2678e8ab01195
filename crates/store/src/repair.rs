//! Makes a whole file of a damaged one: keeps a copy, saves what can be read into a new file, and puts that in the place of the old
//! one.
//!
//! Invariants: the damaged file is copied before anything changes; a process that dies on the way loses nothing, because the
//! new file is complete before it is used; where facts of a chat are lost, the chat says so; what was deleted stays deleted.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use domain::Failure;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::files::{self, StoreFiles};
use crate::repaired::Repaired;
use crate::restoring::{Restoring, Staging};
use crate::salvage::DamagedFile;
use crate::{database, key_values, lease, log, unused_bytes, waiting};

/// Tries to put the new file in place while other processes use the old one, and the pause between two.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Tries to take the lock while other processes look at it, and to copy the file while one writes its log back.
const LOCK_TRIES: usize = 50;
const COPY_TRIES: usize = 10;

/// A repair that has begun: nobody can take the lease of a chat until it is dropped, and the file is copied.
pub struct Repair {
    files: StoreFiles,
    directory: PathBuf,
    copy: Option<PathBuf>,
    aside: Option<PathBuf>,
    _lock: RepairLock,
}

impl Repair {
    /// Must not run while this process has the store open.
    pub fn begin(directory: &Path) -> Result<Self, Failure> {
        let files = StoreFiles::new(directory, String::new());
        let path = files.database();
        if !path.exists() {
            return Err(Failure::user(format!("There is no chat database {}.", path.display())));
        }
        let lock = RepairLock::take(files.repair_lock())?;
        if let Some(holder) = lease::living_holders(&files).into_iter().next() {
            return Err(Failure::taken(format!("A chat is in use by {holder}."))
                .hint("End the other Dragoman, then repair the store."));
        }
        let mut repair =
            Self { files, directory: directory.to_owned(), copy: None, aside: None, _lock: lock };
        repair.prepare(&path).map_err(|error| files::unusable(&path, &error))?;
        Ok(repair)
    }

    /// Whether an earlier run has saved everything already and the file has not changed since.
    pub fn is_unfinished(&self) -> bool {
        self.complete().is_dir()
    }

    /// There is nothing to repair.
    pub fn cancel(self) {
        for end in ["", "-wal"] {
            if let Some(copy) = &self.copy {
                let _ = fs::remove_file(with_suffix(copy, end));
            }
        }
    }

    /// `progress` gets how many chats are done and how many there are.
    pub fn run(self, progress: &mut dyn FnMut(u64, u64)) -> Result<Repaired, Failure> {
        let (path, complete) = (self.files.database(), self.complete());
        let mut repaired = Repaired::default();
        if let Some(copy) = &self.copy {
            let unfinished = self.directory.join("repair");
            repaired =
                rebuild(&unfinished, copy, &path, progress).map_err(|error| error.into_failure(&path))?;
            let moved = note_state(&unfinished, &path).and_then(|()| fs::rename(&unfinished, &complete));
            moved.map_err(|error| files::unusable(&complete, &error))?;
        }
        let new = StoreFiles::new(&complete, String::new()).database();
        replace(&path, &new, &complete).map_err(|error| error.into_failure(&path))?;
        fs::remove_dir_all(&complete).map_err(|error| files::unusable(&complete, &error))?;
        repaired.aside.clone_from(&self.aside);
        Ok(repaired)
    }

    /// Copies the file, unless what an earlier run has saved belongs to this very file.
    fn prepare(&mut self, path: &Path) -> io::Result<()> {
        let complete = self.complete();
        if complete.is_dir() {
            if fs::read_to_string(complete.join(STATE)).is_ok_and(|noted| noted == state(path)) {
                return Ok(());
            }
            // The store was used since: what was saved then must not replace it, and is kept.
            let aside = with_suffix(path, &format!(".repaired-{}", seconds()));
            fs::rename(StoreFiles::new(&complete, String::new()).database(), &aside)?;
            fs::remove_dir_all(&complete)?;
            self.aside = Some(aside);
        }
        self.copy = Some(keep_copy(path)?);
        Ok(())
    }

    /// The folder of the new file from when it is complete until it is in place.
    fn complete(&self) -> PathBuf {
        self.directory.join("repaired")
    }
}

/// Repairs the file in this folder.
pub fn repair(directory: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Repaired, Failure> {
    Repair::begin(directory)?.run(progress)
}

/// While it is locked, nobody can take the lease of a chat.
struct RepairLock {
    path: PathBuf,
    _file: fs::File,
}

impl RepairLock {
    fn take(path: PathBuf) -> Result<Self, Failure> {
        let file = files::private_file(&path).map_err(|error| files::unusable(&path, &error))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path, _file: file }),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(PAUSE / 5),
                Err(fs::TryLockError::Error(error)) => return Err(files::unusable(&path, &error)),
            }
        }
        Err(Failure::taken("Another process repairs the store.").hint("Wait until it has ended."))
    }
}

impl Drop for RepairLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The name of the note about the file that a new one was made for.
const STATE: &str = "state";

/// Lengths and times of the file and its log: they tell whether anybody has written since.
fn state(path: &Path) -> String {
    let of = |path: &Path| {
        let data = fs::metadata(path).ok().filter(|data| data.len() > 0)?;
        let time = data.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!("{} {}", data.len(), time.as_nanos()))
    };
    format!("{:?} {:?}", of(path), of(&with_suffix(path, "-wal")))
}

fn note_state(folder: &Path, path: &Path) -> io::Result<()> {
    fs::write(folder.join(STATE), state(path))
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Before SQLite has the file open: closing a second handle would drop its locks. Nobody can write to a chat, but another
/// process may write its log back: then it begins again.
fn keep_copy(path: &Path) -> io::Result<PathBuf> {
    let copy = with_suffix(path, &format!(".damaged-{}", seconds()));
    for _ in 0..COPY_TRIES {
        let before = state(path);
        for end in ["-wal", ""] {
            let (from, to) = (with_suffix(path, end), with_suffix(&copy, end));
            if !from.exists() {
                let _ = fs::remove_file(to);
                continue;
            }
            let mut to = files::private_file(&to)?;
            to.set_len(0)?;
            io::copy(&mut fs::File::open(from)?, &mut to)?;
            to.sync_all()?;
        }
        if state(path) == before {
            break;
        }
    }
    Ok(copy)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Fills a new store in `folder` with what can be read from the copy, and with the small records as they are in the file
/// now: they need no lease.
fn rebuild(
    folder: &Path,
    copy: &Path,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Repaired, StoreError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| files::unusable(folder, &error))?;
    }
    let mut target = database::create(&StoreFiles::new(folder, String::new()))?;
    target.execute_batch("PRAGMA synchronous = OFF")?;
    let mut repaired = Repaired { copy: Some(copy.to_owned()), ..Repaired::default() };
    let mut source = DamagedFile::open(copy)?;
    let mut chats = source.chats();
    let staged = Staging::fill(&folder.join("staged.sqlite"), &source)?;
    let deleted = source.deleted();
    for key in staged.keys()? {
        chats.entry(key).or_default();
    }
    // Without the list of deleted chats, facts without an entry may be those of a deleted chat.
    chats.retain(|key, chat| match &deleted {
        Some(deleted) => !deleted.contains(key),
        None => chat.id.is_some(),
    });
    let restored =
        Restoring { source: &source, staged: &staged, target: &mut target, repaired: &mut repaired };
    restored.all(chats, progress)?;
    let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for source in [DamagedFile::open(path)?, source] {
        let mut outcome = Ok(());
        source.records(|kind, key, value| {
            if outcome.is_ok() && kind != "store" {
                outcome = key_values::insert(&transaction, &kind, &key, &value).map(drop);
            }
        });
        outcome?;
    }
    transaction.commit()?;
    target.execute_batch("PRAGMA synchronous = FULL")?;
    log::empty(&mut target)?;
    let _ = fs::remove_file(with_suffix(copy, "-shm"));
    let log = with_suffix(copy, "-wal");
    if fs::metadata(&log).is_ok_and(|data| data.len() == 0) {
        let _ = fs::remove_file(log);
    }
    Ok(repaired)
}

/// Puts the content of the new file into the old one, by SQLite's own means: other processes may have it open. A file that
/// SQLite cannot even begin to read is emptied first.
fn replace(path: &Path, new: &Path, complete: &Path) -> Result<(), StoreError> {
    match fill(path, new) {
        Err(error) if error.is_damage() => {
            reset(path)?;
            note_state(complete, path).map_err(|error| files::unusable(complete, &error))?;
            fill(path, new)
        }
        outcome => outcome,
    }
}

/// One transaction: other processes see the old content or the new one.
fn fill(path: &Path, new: &Path) -> Result<(), StoreError> {
    let mut target = open(path)?;
    target.execute_batch("PRAGMA writable_schema = ON")?;
    let source = open(new)?;
    for _ in 0..TRIES {
        let outcome = Backup::new(&source, &mut target)?.step(-1)?;
        if outcome == StepResult::Done {
            drop(target);
            log::empty(&mut database::connect(path)?)?;
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::taken("Other programs use the chat database all the time.")
        .hint("End them, then repair the store again: it goes on where it stopped.")
        .into())
}

/// SQLite's documented way to empty a file that it cannot read.
fn reset(path: &Path) -> Result<(), StoreError> {
    let target = open(path)?;
    // It tells SQLite the mode of the file; it cannot succeed.
    let _ = target.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    target.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    target.execute_batch("VACUUM")?;
    target.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    Ok(())
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    unused_bytes::zero_on_write(&connection)?;
    waiting::wait_for_others(&mut connection)?;
    Ok(connection)
}
