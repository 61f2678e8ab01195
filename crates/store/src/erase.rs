//! Makes a deleted chat unreadable in the files.
//!
//! `secure_delete` overwrites rows where they are deleted. It does not overwrite the copies that SQLite leaves in the
//! unused middle of a page when it spreads rows over neighboring pages, nor older pages in the write-ahead log.
//! Must not know the tables. Invariants: after the last step the files hold only text that a table holds; no step holds
//! the write lock for more than `PAGES_PER_WRITE` pages.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::database::set_busy_handler;
use crate::error::StoreError;

/// Pages that one step looks at, without any lock that a writer waits for.
const PAGES_PER_READ: u32 = 512;
/// Pages that are cleaned in one transaction.
const PAGES_PER_WRITE: usize = 64;
/// In a larger file the first byte of a page does not tell what the page holds.
const MOST_PAGES: u32 = 0x0200_0000;
/// Writers wait while the log is emptied, so a reader of old pages ends the try soon.
const LOG_TIMEOUT: Duration = Duration::from_millis(20);

/// How far the pages have been cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Pages below this one are clean.
    Page(u32),
    /// Another process was reading older pages; the caller tries again later.
    Blocked,
    Done,
}

impl Progress {
    /// Page 1 holds the schema, never text of a chat.
    pub(crate) const START: Self = Self::Page(2);
}

/// Does one short step; the caller repeats it until it is `Done`.
pub(crate) fn step(connection: &mut Connection, progress: Progress) -> Result<Progress, StoreError> {
    let Progress::Page(first) = progress else { return Ok(Progress::START) };
    let last = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0))?;
    if last >= MOST_PAGES || !can_write_pages(connection)? {
        // Ten times slower and blocks writers for as long, but it is in every build of SQLite.
        connection.execute_batch("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY;")?;
        return truncate_log(connection);
    }
    if first > last {
        return truncate_log(connection);
    }
    let next = first.saturating_add(PAGES_PER_READ);
    let dirty = dirty_pages(connection, first, next)?;
    for pages in dirty.chunks(PAGES_PER_WRITE) {
        clean(connection, pages)?;
    }
    Ok(Progress::Page(next))
}

fn truncate_log(connection: &mut Connection) -> Result<Progress, StoreError> {
    // The log is written back while others go on; what remains to do under the lock is short.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    connection.busy_timeout(LOG_TIMEOUT)?;
    let blocked = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    set_busy_handler(connection)?;
    let blocked = blocked?;
    Ok(if blocked { Progress::Blocked } else { Progress::Done })
}

/// `SQLITE_ENABLE_DBPAGE_VTAB`.
fn can_write_pages(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) = 1 FROM pragma_module_list WHERE name = 'sqlite_dbpage'";
    connection.query_row(query, [], |row| row.get(0))
}

/// The pages with rows from `first` up to `end` whose unused bytes are not zero.
fn dirty_pages(connection: &Connection, first: u32, end: u32) -> rusqlite::Result<Vec<u32>> {
    let mut pages = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    let mut dirty = Vec::new();
    for number in first..end {
        let mut rows = pages.query([number])?;
        let Some(row) = rows.next()? else { break };
        let page = row.get_ref(0)?.as_blob().unwrap_or_default();
        if unused(page).any(|range| page[range].iter().any(|byte| *byte != 0)) {
            dirty.push(number);
        }
    }
    Ok(dirty)
}

/// Reads the pages again, because another process may have changed them, and zeroes their unused bytes.
fn clean(connection: &mut Connection, pages: &[u32]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut read = transaction.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let mut write = transaction.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
        for number in pages {
            let mut page: Vec<u8> = read.query_row([number], |row| row.get(0))?;
            for range in unused(&page).collect::<Vec<_>>() {
                page[range].fill(0);
            }
            write.execute((number, page))?;
        }
    }
    transaction.commit()
}
/// The unused bytes of a b-tree page, by SQLite's documented file format: the gap between the list of cells and the
/// cells, and the freed blocks between cells. Always ranges within the page, even for a damaged page.
fn unused(page: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    // Every other page (a part of a large value, a free page) begins with the number of a page. It would begin with one of
    // these bytes in a file of more than 128 GiB only, which `MOST_PAGES` excludes.
    let header = match page.first() {
        Some(2 | 5) => Some(12),
        Some(10 | 13) => Some(8),
        _ => None,
    };
    let gap = header.and_then(|header| {
        let start = header + 2 * number(3)?;
        let end = match number(5)? {
            0 => 65536,
            end => end,
        };
        (start <= end && end <= page.len()).then_some(start..end)
    });
    let first = header.and(number(1)).unwrap_or(0);
    // Blocks are in ascending order, so a link that does not ascend ends the walk.
    let blocks = std::iter::successors(Some(first), move |at| number(*at).filter(|next| next > at));
    let blocks = blocks.take_while(|at| *at != 0).filter_map(move |at| {
        let end = at + number(at + 2)?;
        (at + 4 <= end && end <= page.len()).then_some(at + 4..end)
    });
    gap.into_iter().chain(blocks)
}
