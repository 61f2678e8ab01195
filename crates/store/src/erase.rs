//! Makes a deleted chat unreadable in the files.
//!
//! `secure_delete` overwrites rows where they are deleted. It does not overwrite the copies that SQLite leaves in the
//! unused middle of a page when it spreads rows over neighboring pages, nor older pages in the write-ahead log.
//! Must not know the tables. Invariant: after `erase` the files hold only text that a table holds.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;

/// Returns false when another process was reading older pages; the caller then tries again later.
pub(crate) fn erase(connection: &mut Connection) -> Result<bool, StoreError> {
    if can_write_pages(connection)? {
        scrub(connection)?;
    } else {
        // Ten times slower and blocks writers for as long, but it is in every build of SQLite.
        connection.execute_batch("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY;")?;
    }
    let blocked: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!blocked)
}

/// `SQLITE_ENABLE_DBPAGE_VTAB` and `SQLITE_ENABLE_DBSTAT_VTAB`.
fn can_write_pages(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) = 2 FROM pragma_module_list WHERE name IN ('sqlite_dbpage', 'dbstat')";
    connection.query_row(query, [], |row| row.get(0))
}

/// Zeroes the unused bytes of every page that holds rows.
fn scrub(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        // Page 1 holds the schema, never text of a chat. Pages of large values belong to one row and are zeroed with it.
        let mut pages = transaction.prepare(
            "SELECT pgno, data FROM dbstat JOIN sqlite_dbpage ON pgno = pageno
             WHERE pagetype <> 'overflow' AND pageno > 1",
        )?;
        let mut dirty = Vec::new();
        let mut rows = pages.query([])?;
        while let Some(row) = rows.next()? {
            let page = row.get_ref(1)?.as_blob().unwrap_or_default();
            if unused(page).any(|range| page[range].iter().any(|byte| *byte != 0)) {
                dirty.push(row.get::<_, u32>(0)?);
            }
        }
        let mut read = transaction.prepare("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let mut write = transaction.prepare("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
        for number in dirty {
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
