//! Deletes chats in short steps, so that nobody waits long: their facts and words, then their old states in the log.
//!
//! Must not know replies. Invariants: a hidden chat is in the table `deleted` until no file holds its text, so that the next
//! process goes on where this one died; the cost follows the size of the chat, except once in a file of an older format;
//! no step holds the write lock for long.

use std::time::{Duration, Instant};

use domain::SessionId;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::search::Words;
use crate::{chat, key_values, log, migrations, search};

/// Others wait while facts are deleted: about so long at most.
const LONGEST_LOCK: Duration = Duration::from_millis(2);
/// Facts that are deleted in one transaction, at first, at least and at most. The words of a fact take the time, not the
/// fact; where the disk takes it, fewer facts do not help.
const FACTS: usize = 16;
const FEWEST_FACTS: usize = 4;
const MOST_FACTS: usize = 1024;

/// Tries to empty the log before the deletion waits: other processes use it without a pause.
const MOST_TRIES: usize = 100;

/// Steps of merging the index of words; a damaged one may never say that it is merged.
const MOST_MERGES: usize = 1_000_000;

/// The stored value which says that pages of the file may hold copies of rows: builds up to format 3 wrote them there.
const COPIES: (&str, &str) = ("store", "copies");

/// What the next step does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Deletes so many facts of hidden chats.
    Facts(usize),
    /// Writes so many old facts after this place anew, after the facts of these chats were deleted.
    OldFacts { after: i64, most: usize, chats: Vec<i64> },
    /// Writes the index of words anew; so many steps were done already.
    OldWords { steps: usize, chats: Vec<i64> },
    /// Brings the new states of pages from the log into the file.
    WriteBack { chats: Vec<i64> },
    /// Removes the old states of pages from the log; so often it was tried already.
    EmptyLog { tries: usize, chats: Vec<i64> },
}

impl Step {
    pub(crate) const FIRST: Self = Self::Facts(FACTS);
}

/// What a step came to.
pub(crate) enum Outcome {
    Next(Step),
    /// Somebody reads from the log or writes too fast; the caller tries again later.
    Blocked,
    Done,
}

/// The first of the steps. Returns whether the chat existed.
pub(crate) fn hide(connection: &mut Connection, session: &SessionId) -> Result<bool, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrations::still_current(&transaction)?;
    let existed = chat::hide(&transaction, session)?;
    transaction.commit()?;
    Ok(existed)
}

/// Whether a process has left deleted text behind.
pub(crate) fn is_due(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM deleted)", [], |row| row.get(0))?)
}

pub(crate) fn advance(connection: &mut Connection, step: Step) -> Result<Outcome, StoreError> {
    Ok(match step {
        Step::Facts(most) => Outcome::Next(match delete_facts(connection, most, Words::Removed) {
            Err(error) if error.is_damage() => {
                tracing::warn!("the index of words is damaged; `dragoman store repair` rebuilds it");
                delete_facts(connection, most, Words::Left)?
            }
            next => next?,
        }),
        Step::OldFacts { after, most, chats } => Outcome::Next(write_anew(connection, after, most, chats)?),
        Step::OldWords { steps, chats } => Outcome::Next(merge_old_words(connection, steps, chats)?),
        Step::WriteBack { chats } => {
            log::write_back(connection)?;
            Outcome::Next(Step::EmptyLog { tries: 0, chats })
        }
        Step::EmptyLog { tries, chats } => match log::empty(connection)? {
            true => {
                forget(connection, &chats)?;
                Outcome::Done
            }
            false if tries < MOST_TRIES => Outcome::Next(Step::EmptyLog { tries: tries + 1, chats }),
            false => Outcome::Blocked,
        },
    })
}

/// After no file holds text of these chats.
fn forget(connection: &Connection, chats: &[i64]) -> rusqlite::Result<()> {
    let mut forget = connection.prepare_cached("DELETE FROM deleted WHERE key = ?1")?;
    chats.iter().try_for_each(|chat| forget.execute([chat]).map(drop))
}

/// Deletes up to `most` facts of hidden chats in one transaction. Returns what comes next.
fn delete_facts(connection: &mut Connection, most: usize, words: Words) -> Result<Step, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let start = Instant::now();
    migrations::still_current(&transaction)?;
    let chats = hidden(&transaction)?;
    let mut left = most;
    for chat in &chats {
        left -= chat::delete_some(&transaction, *chat, left, words)?;
    }
    transaction.commit()?;
    if left == 0 {
        return Ok(Step::Facts(adapted(most, start.elapsed())));
    }
    let has_copies = key_values::get(connection, COPIES.0, COPIES.1)?.is_some();
    Ok(match has_copies {
        true => Step::OldFacts { after: 0, most: FACTS, chats },
        false => Step::WriteBack { chats },
    })
}

/// As many facts as others can wait for.
fn adapted(most: usize, took: Duration) -> usize {
    let most = match took {
        _ if took > LONGEST_LOCK => most / 2,
        _ if took < LONGEST_LOCK / 2 => most + most.div_ceil(4),
        _ => most,
    };
    most.clamp(FEWEST_FACTS, MOST_FACTS)
}

/// Gives some facts that are older than checksums their checksums. That changes every page that an older build wrote, so that it
/// goes into the file without copies. Returns what comes next.
fn write_anew(
    connection: &mut Connection,
    after: i64,
    most: usize,
    chats: Vec<i64>,
) -> Result<Step, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let start = Instant::now();
    migrations::still_current(&transaction)?;
    let last = chat::sum_some(&transaction, after, most)?;
    transaction.commit()?;
    Ok(match last {
        Some(after) => Step::OldFacts { after, most: adapted(most, start.elapsed()), chats },
        None => Step::OldWords { steps: 0, chats },
    })
}

/// Merges all parts of the index of words into one, some pages at a time: none of the pages from before is left then.
fn merge_old_words(connection: &mut Connection, steps: usize, chats: Vec<i64>) -> Result<Step, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrations::still_current(&transaction)?;
    let merged = match steps {
        0 => search::begin_whole_merge(&transaction).map(|()| true),
        _ => search::merge_some(&transaction),
    };
    let goes_on = match merged.map_err(StoreError::from) {
        // A repair makes a damaged index anew.
        Err(error) if error.is_damage() => return Ok(Step::WriteBack { chats }),
        merged => merged? && steps < MOST_MERGES,
    };
    if goes_on {
        transaction.commit()?;
        return Ok(Step::OldWords { steps: steps + 1, chats });
    }
    key_values::remove(&transaction, COPIES.0, COPIES.1)?;
    transaction.commit()?;
    Ok(Step::WriteBack { chats })
}

fn hidden(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection.prepare_cached("SELECT key FROM deleted")?.query_map([], |row| row.get(0))?.collect()
}
