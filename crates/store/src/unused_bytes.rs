//! Zeroes the unused bytes of pages on their way into the database file.
//!
//! `secure_delete` overwrites rows where they are deleted. It does not overwrite the copies that SQLite leaves in the unused
//! middle of a page when it spreads rows over neighboring pages, and a later deletion does not know of them. So every
//! connection has one function of SQLite's file interface wrapped: the one that writes pages into the database file.
//! Must not know the tables. Invariants: no byte that SQLite reads is changed; it works in every build of SQLite.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, ffi};

/// In a file of more than 128 GiB the first byte of a page does not tell what the page holds. Half of that is safe also
/// while the file grows.
const LARGEST_FILE: i64 = 64 << 30;

/// SQLite's functions for a file, with one replaced. SQLite finds it by the pointer to its first member.
#[repr(C)]
struct Layer {
    methods: ffi::sqlite3_io_methods,
    below: &'static ffi::sqlite3_io_methods,
}

/// From now on the pages that this connection writes into the database file have no copies of rows in unused bytes.
pub(crate) fn zero_on_write(connection: &Connection) -> rusqlite::Result<()> {
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the handle is valid while `connection` is borrowed. This request stores the pointer to the open file of the
    // database "main" and nothing else; the file lives as long as the connection. Its table of functions is one of
    // SQLite's constants (or a leaked one), so it is valid for the life of the process. Nobody else uses the connection
    // meanwhile, because rusqlite's connections are not shared between threads.
    unsafe {
        let request = ffi::SQLITE_FCNTL_FILE_POINTER;
        let code = ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            request,
            (&raw mut file).cast::<c_void>(),
        );
        if code != ffi::SQLITE_OK || file.is_null() || (*file).pMethods.is_null() {
            let error = ffi::Error::new(if code == ffi::SQLITE_OK { ffi::SQLITE_CANTOPEN } else { code });
            return Err(rusqlite::Error::SqliteFailure(error, None));
        }
        (*file).pMethods = &raw const layer_over(&*(*file).pMethods).methods;
    }
    Ok(())
}

/// One layer for each table of functions; SQLite has a handful of them.
fn layer_over(below: &'static ffi::sqlite3_io_methods) -> &'static Layer {
    static LAYERS: Mutex<Vec<&'static Layer>> = Mutex::new(Vec::new());
    let mut layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = layers.iter().find(|layer| std::ptr::eq(layer.below, below)) {
        return known;
    }
    let mut methods = *below;
    methods.xWrite = Some(write);
    let layer: &'static Layer = Box::leak(Box::new(Layer { methods, below }));
    layers.push(layer);
    layer
}

/// # Safety
/// As SQLite calls it, for a file that `zero_on_write` has changed: `from` holds `size` bytes.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, size: c_int, at: i64) -> c_int {
    // SAFETY: only files with a `Layer` call this function, and `methods` is its first member. The functions below get
    // SQLite's own file structure and a buffer of `size` bytes.
    unsafe {
        let layer = &*(*file).pMethods.cast::<Layer>();
        let Some(write_below) = layer.below.xWrite else { return ffi::SQLITE_IOERR_WRITE };
        let Ok(length) = usize::try_from(size) else { return ffi::SQLITE_IOERR_WRITE };
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length);
        match zeroed(bytes, at).filter(|_| is_small(file, layer.below)) {
            Some(page) => write_below(file, page.as_ptr().cast::<c_void>(), size, at),
            None => write_below(file, from, size, at),
        }
    }
}

/// # Safety
/// `file` is an open file of SQLite, and `methods` are its functions.
unsafe fn is_small(file: *mut ffi::sqlite3_file, methods: &ffi::sqlite3_io_methods) -> bool {
    let mut size = i64::MAX;
    // SAFETY: as the caller promises; the function stores one number.
    let code = methods.xFileSize.map(|file_size| unsafe { file_size(file, &raw mut size) });
    code == Some(ffi::SQLITE_OK) && size < LARGEST_FILE
}

/// The page with its unused bytes zeroed; none where nothing has to change. The first page holds the schema, never text of
/// a chat.
fn zeroed(page: &[u8], at: i64) -> Option<Vec<u8>> {
    let is_page = (512..=65536).contains(&page.len()) && page.len().is_power_of_two();
    if !is_page || at <= 0 || at % (page.len() as i64) != 0 {
        return None;
    }
    let mut clean: Option<Vec<u8>> = None;
    for range in unused(page) {
        if page[range.clone()].iter().any(|byte| *byte != 0) {
            clean.get_or_insert_with(|| page.to_vec())[range].fill(0);
        }
    }
    clean
}

/// The unused bytes of a b-tree page, by SQLite's documented file format: the gap between the list of cells and the
/// cells, and the freed blocks between cells. Always ranges within the page, even for a damaged page.
fn unused(page: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    // Every other page (a part of a large value, a free page) begins with the number of a page. It would begin with one of
    // these bytes in a file of more than 128 GiB only.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(cells: u16, content: u16, first_block: u16) -> Vec<u8> {
        let mut page = vec![0xee; 512];
        page[0] = 13;
        page[1..3].copy_from_slice(&first_block.to_be_bytes());
        page[3..5].copy_from_slice(&cells.to_be_bytes());
        page[5..7].copy_from_slice(&content.to_be_bytes());
        page
    }

    #[test]
    fn only_unused_bytes_of_pages_with_rows_become_zero() {
        let mut page = leaf(2, 300, 400);
        page[400..404].copy_from_slice(&[0, 0, 0, 20]);
        let clean = zeroed(&page, 512).unwrap();
        for at in 0..512 {
            let is_unused = (12..300).contains(&at) || (404..420).contains(&at);
            assert_eq!(clean[at], if is_unused { 0 } else { page[at] }, "byte {at}");
        }
        assert_eq!(zeroed(&clean, 512), None, "nothing is left to do");
        assert_eq!(zeroed(&page, 0), None, "the first page");
        assert_eq!(zeroed(&page, 100), None, "no page begins here");
        assert_eq!(zeroed(&page[..500], 512), None, "a part of a page");
        let mut overflow = page;
        overflow[0] = 0;
        assert_eq!(zeroed(&overflow, 512), None, "a part of a large value");
    }

    /// Damaged pages reach this function too: it must neither fail nor touch what may be a row.
    #[test]
    fn a_damaged_page_is_left_alone() {
        for (cells, content, block) in [(600, 300, 0), (2, 600, 0), (2, 4, 0), (2, 300, 511), (2, 300, 65535)]
        {
            let clean = zeroed(&leaf(cells, content, block), 512);
            assert_eq!(clean.is_some(), content == 300 && cells == 2, "{cells} {content} {block}");
        }
    }
}
