//! Makes a whole file of a damaged one: keeps a copy, saves what can be read into a new file, and puts that in the place of the old
//! one.
//!
//! Invariants: the damaged file is copied before anything changes; a process that dies on the way loses nothing, because the
//! new file is complete before it is used; where facts of a chat are lost, the chat says so; what was deleted stays deleted.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use domain::command::SessionSettings;
use domain::event::{Notice, SessionOpened};
use domain::{Fact, Failure, Level, SessionId};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::chat::{self, MOST_FACTS, fact_key};
use crate::encoded::EncodedFact;
use crate::error::StoreError;
use crate::files::{self, StoreFiles};
use crate::record::decode_fact;
use crate::salvage::{self, DamagedFile, KnownChat, StoredFact};
use crate::{database, key_values, lease, log, unused_bytes};

/// The folder of the new file from when it is complete until it is in place.
const COMPLETE: &str = "repaired";

/// Facts of a chat that are held in memory together.
const BATCH: usize = 256;

/// Tries to put the new file in place while other processes use the old one, and the pause between two.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// So far behind the facts that were saved a fact that was changed still counts as one of its chat: its number may have been changed.
const MOST_GUESSED: u64 = 1000;

/// What a repair did.
#[derive(Debug, Default)]
pub struct Repaired {
    pub chats: u64,
    pub facts: u64,
    /// Chats that are not whole any more.
    pub damaged: Vec<DamagedChat>,
    /// The copy of the damaged file; none where this run only finished what an earlier one had begun.
    pub copy: Option<PathBuf>,
}

#[derive(Debug)]
pub struct DamagedChat {
    pub id: String,
    pub title: Option<String>,
    /// Facts.
    pub saved: u64,
    /// Facts, at least.
    pub lost: u64,
}

/// Repairs the file in this folder. `progress` gets how many chats are done and how many there are.
pub fn repair(directory: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Repaired, Failure> {
    let files = StoreFiles::new(directory, String::new());
    let path = files.database();
    if !path.exists() {
        return Err(Failure::user(format!("There is no chat database {}.", path.display())));
    }
    if let Some(holder) = lease::living_holders(&files).into_iter().next() {
        return Err(Failure::taken(format!("A chat is in use by {holder}."))
            .hint("End the other Dragoman, then repair the store."));
    }
    let complete = directory.join(COMPLETE);
    let repaired = match has_unfinished_repair(directory) {
        // An earlier run ended before the new file was in place.
        true => Repaired::default(),
        false => {
            let copy = keep_copy(&path).map_err(|error| files::unusable(&path, &error))?;
            let unfinished = directory.join("repair");
            let repaired =
                rebuild(&unfinished, &copy, progress).map_err(|error| error.into_failure(&path))?;
            fs::rename(&unfinished, &complete).map_err(|error| files::unusable(&complete, &error))?;
            repaired
        }
    };
    let new = StoreFiles::new(&complete, String::new()).database();
    replace(&path, &new).map_err(|error| error.into_failure(&path))?;
    fs::remove_dir_all(&complete).map_err(|error| files::unusable(&complete, &error))?;
    Ok(repaired)
}

/// Whether a repair ended before the new file was in the place of the old one.
pub fn has_unfinished_repair(directory: &Path) -> bool {
    directory.join(COMPLETE).is_dir()
}

/// Before SQLite has the file open: closing a second handle would drop its locks.
fn keep_copy(path: &Path) -> io::Result<PathBuf> {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let copy = with_suffix(path, &format!(".damaged-{seconds}"));
    for end in ["", "-wal"] {
        let from = with_suffix(path, end);
        if from.exists() {
            let mut to = files::private_file(&with_suffix(&copy, end))?;
            to.set_len(0)?;
            io::copy(&mut fs::File::open(from)?, &mut to)?;
            to.sync_all()?;
        }
    }
    Ok(copy)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Fills a new store in `folder` with what can be read from the copy.
fn rebuild(folder: &Path, copy: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Repaired, StoreError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| files::unusable(folder, &error))?;
    }
    let mut target = database::create(&StoreFiles::new(folder, String::new()))?;
    target.execute_batch("PRAGMA synchronous = OFF")?;
    let mut repaired = Repaired { copy: Some(copy.to_owned()), ..Repaired::default() };
    let source = DamagedFile::open(copy)?;
    let staged = Staging::fill(&folder.join("staged.sqlite"), &source)?;
    let mut chats = source.chats();
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
    let mut outcome = Ok(());
    source.records(|kind, key, value| {
        if outcome.is_ok() && kind != "store" {
            outcome = key_values::insert(&transaction, &kind, &key, &value).map(drop);
        }
    });
    outcome?;
    transaction.commit()?;
    target.execute_batch("PRAGMA synchronous = FULL")?;
    log::empty(&mut target)?;
    drop(source);
    let _ = fs::remove_file(with_suffix(copy, "-shm"));
    Ok(repaired)
}

/// The facts that were read, in the order of their places.
struct Staging {
    connection: Connection,
    /// The places of facts that were found and not trusted.
    changed: HashSet<i64>,
}

impl Staging {
    fn fill(path: &Path, source: &DamagedFile) -> Result<Self, StoreError> {
        files::private_file(path).map_err(|error| files::unusable(path, &error))?;
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             CREATE TABLE facts (place INTEGER PRIMARY KEY, at INTEGER, kind TEXT, body TEXT); BEGIN",
        )?;
        let mut staging = Self { connection, changed: HashSet::new() };
        let mut outcome = Ok(());
        staging.changed = source.facts(|fact| {
            if outcome.is_ok() {
                outcome = staging.keep(&fact);
            }
        });
        outcome?;
        staging.connection.execute_batch("COMMIT")?;
        Ok(staging)
    }

    fn keep(&self, fact: &StoredFact) -> rusqlite::Result<()> {
        let mut insert =
            self.connection.prepare_cached("INSERT OR IGNORE INTO facts VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute((fact.place, fact.at, &fact.kind, &fact.body)).map(drop)
    }

    fn keys(&self) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.connection.prepare("SELECT DISTINCT place >> 32 FROM facts")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    fn numbers(&self, key: i64) -> Result<Vec<u64>, StoreError> {
        let range = (fact_key(key, 0)?, fact_key(key, MOST_FACTS)?);
        let mut statement = self
            .connection
            .prepare_cached("SELECT place FROM facts WHERE place BETWEEN ?1 AND ?2 ORDER BY place")?;
        let places = statement.query_map(range, |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        Ok(places.into_iter().map(|place| salvage::split(place).1).collect())
    }

    /// The newest number that the damaged file shows for a chat.
    fn last_changed(&self, key: i64) -> u64 {
        let places = self.changed.iter().map(|place| salvage::split(*place));
        places.filter(|(chat, _)| *chat == key).map(|(_, number)| number).max().unwrap_or(0)
    }

    fn get(&self, key: i64, number: u64) -> Result<(u64, Fact), StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT at, kind, body FROM facts WHERE place = ?1")?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        };
        let (at, kind, body) = statement.query_row([fact_key(key, number)?], row)?;
        let fact =
            decode_fact(&kind, &body).map_err(|_| Failure::internal("A saved fact cannot be read."))?;
        Ok((at, fact))
    }
}

/// Writes the chats into the new file.
struct Restoring<'a> {
    source: &'a DamagedFile,
    staged: &'a Staging,
    target: &'a mut Connection,
    repaired: &'a mut Repaired,
}

impl Restoring<'_> {
    fn all(
        mut self,
        chats: BTreeMap<i64, KnownChat>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let total = chats.len() as u64;
        let mut used = HashSet::new();
        for (done, (key, chat)) in (1..).zip(chats) {
            // An id that was changed may be that of another chat.
            let id = chat.id.clone().filter(|id| !id.is_empty() && !used.contains(id));
            let id = id.unwrap_or_else(|| format!("recovered-{key}"));
            used.insert(id.clone());
            self.one(key, id, &chat)?;
            progress(done, total);
        }
        Ok(())
    }

    fn one(&mut self, key: i64, id: String, chat: &KnownChat) -> Result<(), StoreError> {
        let mut numbers = self.staged.numbers(key)?;
        let shown = numbers.last().copied().unwrap_or(0);
        let newest = match &chat.row {
            Some(row) => row.newest.max(shown),
            None => shown.max(self.staged.last_changed(key).min(shown + MOST_GUESSED)),
        };
        let known: HashSet<u64> = numbers.iter().copied().collect();
        let missing: Vec<u64> = (1..=newest).filter(|number| !known.contains(number)).collect();
        if !missing.is_empty() {
            let mut outcome = Ok(());
            self.source.find_facts(key, &missing, |fact| {
                if outcome.is_ok() {
                    outcome = self.staged.keep(&fact);
                }
            });
            outcome?;
            numbers = self.staged.numbers(key)?;
        }
        let saved = numbers.len() as u64;
        let lost = newest.saturating_sub(saved);
        let title = chat.row.as_ref().and_then(|row| row.title.clone());
        if saved > 0 {
            self.write(key, &id, chat, &numbers, newest)?;
            self.repaired.chats += 1;
            self.repaired.facts += saved;
        }
        if lost > 0 || chat.id.as_ref() != Some(&id) {
            self.repaired.damaged.push(DamagedChat { id, title, saved, lost });
        }
        Ok(())
    }

    /// Appends the facts in their order, with a notice in the place of those that are lost.
    fn write(
        &mut self,
        key: i64,
        id: &str,
        chat: &KnownChat,
        numbers: &[u64],
        newest: u64,
    ) -> Result<(), StoreError> {
        let session = SessionId::new(id);
        let transaction = self.target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut batch: Vec<(u64, Fact)> = Vec::new();
        let mut expected = 1;
        for number in numbers {
            let (at, fact) = self.staged.get(key, *number)?;
            if expected == 1 && !matches!(fact, Fact::SessionOpened(_)) {
                batch.push((at, Fact::SessionOpened(opened(chat))));
            }
            if *number > expected {
                batch.push((at, lost_notice(expected, *number - 1)));
            }
            batch.push((at, fact));
            expected = *number + 1;
            if batch.len() >= BATCH {
                append(&transaction, &session, &mut batch)?;
            }
        }
        if newest >= expected {
            let at = batch.last().map_or(0, |(at, _)| *at);
            batch.push((at, lost_notice(expected, newest)));
        }
        append(&transaction, &session, &mut batch)?;
        Ok(transaction.commit()?)
    }
}

/// Facts of one time are one append.
fn append(
    connection: &Connection,
    session: &SessionId,
    batch: &mut Vec<(u64, Fact)>,
) -> Result<(), StoreError> {
    for run in batch.chunk_by(|(one, _), (other, _)| one == other) {
        let facts = run.iter().map(|(_, fact)| EncodedFact::new(fact)).collect::<Result<Vec<_>, _>>()?;
        if let Some((at, _)) = run.first() {
            chat::append(connection, session, &facts, *at)?;
        }
    }
    batch.clear();
    Ok(())
}

/// The first fact of a chat whose own is lost.
fn opened(chat: &KnownChat) -> SessionOpened {
    let row = chat.row.as_ref();
    let workspace = row.and_then(|row| serde_json::from_str(&row.workspace).ok()).unwrap_or_default();
    let title = row.and_then(|row| row.title.clone());
    let settings = SessionSettings { title, ..SessionSettings::default() };
    SessionOpened { workspace, settings, parent: None, client: String::new() }
}

fn lost_notice(first: u64, last: u64) -> Fact {
    let count = last.saturating_sub(first) + 1;
    let text = format!(
        "A part of this chat is missing here: the file was damaged, and {count} facts (from {first} to {last}) could not be read."
    );
    Fact::Notice { notice: Notice { level: Level::Warning, text } }
}

/// Puts the content of the new file into the old one, by SQLite's own means: other processes may have it open. A file that
/// SQLite cannot even begin to read is emptied first.
fn replace(path: &Path, new: &Path) -> Result<(), StoreError> {
    match fill(path, new) {
        Err(error) if error.is_damage() => {
            reset(path)?;
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
    database::wait_for_others(&mut connection)?;
    Ok(connection)
}
