//! Deletes chats in short steps, so that nobody waits long: their facts, copies of them in other pages, old states of pages
//! in the log.
//!
//! Must not know replies. Invariants: a hidden chat is in the table `deleted` until no file holds its text, so that the next
//! process goes on where this one died; the cost follows the size of the chat, except once in a file of an older format.

use std::time::{Duration, Instant};

use domain::SessionId;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;
use crate::log::Log;
use crate::{chat, erase, key_values, migrations};

/// Others wait while facts are deleted: about so long at most.
const LONGEST_LOCK: Duration = Duration::from_millis(2);
/// Facts that are deleted in one transaction, at first, at least and at most. The words of a fact take the time, not the
/// fact; where the disk takes it, fewer facts do not help.
const FACTS: usize = 16;
const FEWEST_FACTS: usize = 4;
const MOST_FACTS: usize = 1024;

/// Steps of writing the log back before the deletion waits: other processes write faster, or the disk is at fault.
const MOST_TRIES: usize = 100;

/// The stored value which says that pages of the file may hold copies of rows.
const COPIES: (&str, &str) = ("store", "copies");

/// What the next step does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Deletes so many facts of hidden chats.
    Facts(usize),
    /// Looks at the pages from this one on, after the facts of these chats were deleted.
    Pages { from: u32, chats: Vec<i64> },
    /// Brings the pages in the log into the file; so often it was tried already.
    WriteBack { tries: usize, chats: Vec<i64> },
    /// Removes the old states of pages from the log.
    EmptyLog { chats: Vec<i64> },
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

/// Whether a process has left deleted text behind. Must run inside a write transaction.
pub(crate) fn is_due(connection: &Connection) -> Result<bool, StoreError> {
    if !erase::knows_pages(connection)? {
        // This process writes the log back as it is.
        note_copies(connection)?;
    }
    Ok(connection.query_row("SELECT EXISTS (SELECT 1 FROM deleted)", [], |row| row.get(0))?)
}

/// After pages may have reached the file unseen: the next deletion looks at all of them.
pub(crate) fn note_copies(connection: &Connection) -> Result<(), StoreError> {
    key_values::put(connection, COPIES.0, COPIES.1, "possible")
}

pub(crate) fn advance(connection: &mut Connection, log: &mut Log, step: Step) -> Result<Outcome, StoreError> {
    Ok(match step {
        Step::Facts(most) => Outcome::Next(delete_facts(connection, most)?),
        Step::Pages { from, chats } => match erase::clean_from(connection, from)? {
            Some(from) => Outcome::Next(Step::Pages { from, chats }),
            None => {
                if erase::knows_pages(connection)? {
                    key_values::remove(connection, COPIES.0, COPIES.1)?;
                }
                Outcome::Next(Step::WriteBack { tries: 0, chats })
            }
        },
        Step::WriteBack { tries, chats } => match log.write_back_some(connection)? {
            true => Outcome::Next(Step::EmptyLog { chats }),
            false if tries < MOST_TRIES => Outcome::Next(Step::WriteBack { tries: tries + 1, chats }),
            false => Outcome::Blocked,
        },
        Step::EmptyLog { chats } => {
            if !log.empty(connection)? {
                return Ok(Outcome::Blocked);
            }
            let mut forget = connection.prepare_cached("DELETE FROM deleted WHERE key = ?1")?;
            for chat in chats {
                forget.execute([chat])?;
            }
            Outcome::Done
        }
    })
}

/// Deletes up to `most` facts of hidden chats in one transaction. Returns what comes next.
fn delete_facts(connection: &mut Connection, most: usize) -> Result<Step, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let start = Instant::now();
    migrations::still_current(&transaction)?;
    let chats = hidden(&transaction)?;
    let mut left = most;
    for chat in &chats {
        left -= chat::delete_some(&transaction, *chat, left)?;
    }
    transaction.commit()?;
    if left == 0 {
        let took = start.elapsed();
        let most = match took {
            _ if took > LONGEST_LOCK => most / 2,
            _ if took < LONGEST_LOCK / 2 => most + most.div_ceil(4),
            _ => most,
        };
        return Ok(Step::Facts(most.clamp(FEWEST_FACTS, MOST_FACTS)));
    }
    let has_copies = key_values::get(connection, COPIES.0, COPIES.1)?.is_some();
    Ok(match has_copies {
        true => Step::Pages { from: erase::FIRST_PAGE, chats },
        false => Step::WriteBack { tries: 0, chats },
    })
}

fn hidden(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection.prepare_cached("SELECT key FROM deleted")?.query_map([], |row| row.get(0))?.collect()
}
