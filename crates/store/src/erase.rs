//! Copies of rows in the unused bytes of pages: finds them and overwrites them.
//!
//! `secure_delete` overwrites rows where they are deleted. It does not overwrite the copies that SQLite leaves in the
//! unused middle of a page when it spreads rows over neighboring pages.
//! Must not know the tables. Invariant: no step holds the write lock for more than `PAGES_PER_WRITE` pages.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::database::OTHERS_TURN;

/// Pages that one step of a look at the whole file reads, without any lock that a writer waits for.
const PAGES_PER_READ: u32 = 512;
/// Pages that are cleaned in one transaction.
const PAGES_PER_WRITE: usize = 64;
/// In a larger file the first byte of a page does not tell what the page holds.
const MOST_PAGES: u32 = 0x0200_0000;
/// Page 1 holds the schema, never text of a chat.
pub(crate) const FIRST_PAGE: u32 = 2;

/// Looks at some pages of the file from `first` on. Returns the page where the next step begins, none at the end.
pub(crate) fn clean_from(connection: &mut Connection, first: u32) -> rusqlite::Result<Option<u32>> {
    if !knows_pages(connection)? {
        // Others stand still meanwhile, but SQLite can do it in every build and every file.
        connection.execute_batch("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY;")?;
        return Ok(None);
    }
    let last = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0))?;
    if first > last {
        return Ok(None);
    }
    let next = first.saturating_add(PAGES_PER_READ);
    let mut dirty = Vec::new();
    {
        let mut read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        for number in first..next.min(last + 1) {
            let mut rows = read.query([number])?;
            if let Some(row) = rows.next()?
                && has_copies(number, row.get_ref(0)?.as_blob().unwrap_or_default())
            {
                dirty.push(number);
            }
        }
    }
    clean(connection, &dirty)?;
    Ok(Some(next))
}

/// Whether pages can be read and written, and tell what they hold. SQLite as `.cargo/config.toml` builds it can; as
/// `cargo install` builds it, it cannot.
pub(crate) fn knows_pages(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT (SELECT page_count FROM pragma_page_count) < ?1
                 AND EXISTS (SELECT 1 FROM pragma_module_list WHERE name = 'sqlite_dbpage')";
    connection.prepare_cached(query)?.query_row([MOST_PAGES], |row| row.get(0))
}

/// Whether there is something in the unused bytes of a page.
pub(crate) fn has_copies(number: u32, page: &[u8]) -> bool {
    number >= FIRST_PAGE && unused(page).any(|range| page[range].iter().any(|byte| *byte != 0))
}

/// Reads the pages again, because another process may have changed them, and zeroes their unused bytes.
pub(crate) fn clean(connection: &mut Connection, dirty: &[u32]) -> rusqlite::Result<()> {
    for (number, pages) in dirty.chunks(PAGES_PER_WRITE).enumerate() {
        if number > 0 {
            std::thread::sleep(OTHERS_TURN);
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut read = transaction.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
            let mut write =
                transaction.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
            for number in pages {
                // The file may have become shorter since.
                let Some(mut page) = read.query_row([number], |row| row.get::<_, Vec<u8>>(0)).optional()?
                else {
                    continue;
                };
                for range in unused(&page).collect::<Vec<_>>() {
                    page[range].fill(0);
                }
                write.execute((number, page))?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
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
