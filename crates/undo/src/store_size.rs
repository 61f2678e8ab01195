//! How many bytes all contents have, without a look at each: the sum of small entries in one file.
//!
//! Must not know contents. Invariants: a file that does not read is made anew from a count; what a kill or another
//! process leaves out is corrected when the store is tidied, which counts anyway.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::private;

/// A longer file becomes one entry.
const MAX_FILE: usize = 64 << 10;

pub(crate) struct StoreSize {
    path: PathBuf,
    known: OnceLock<AtomicU64>,
    /// Bytes that are in no entry of the file yet.
    unwritten: AtomicI64,
}

impl StoreSize {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, known: OnceLock::new(), unwritten: AtomicI64::new(0) }
    }

    /// The bytes, about. `count` looks at all contents, where nobody has counted them yet.
    pub(crate) fn bytes(&self, count: impl FnOnce() -> u64) -> u64 {
        self.known.get_or_init(|| AtomicU64::new(self.load(count))).load(Ordering::Relaxed)
    }

    fn load(&self, count: impl FnOnce() -> u64) -> u64 {
        if let Some((sum, length)) = fs::read(&self.path).ok().and_then(|bytes| sum_of(&bytes)) {
            if length > MAX_FILE {
                let _ = private::replace(&self.path, &sum.to_le_bytes());
            }
            return sum;
        }
        let counted = count();
        if counted > 0 {
            // Without the file the next process counts again.
            let _ = private::replace(&self.path, &counted.to_le_bytes());
        }
        counted
    }

    /// More bytes, or fewer. `bytes` must have been called before the content was written, or it counts twice.
    pub(crate) fn add(&self, change: i64) {
        if let Some(known) = self.known.get() {
            let _ = known.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
                Some(bytes.saturating_add_signed(change))
            });
            self.unwritten.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Tells other processes and later ones.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let change = self.unwritten.swap(0, Ordering::Relaxed);
        if change == 0 {
            return Ok(());
        }
        private::append_to(&self.path)?.write_all(&change.to_le_bytes())
    }

    /// The bytes as they were just counted, while nobody else stores any.
    pub(crate) fn set(&self, counted: u64) {
        self.unwritten.store(0, Ordering::Relaxed);
        if let Some(known) = self.known.get() {
            known.store(counted, Ordering::Relaxed);
        }
        let _ = private::replace(&self.path, &counted.to_le_bytes());
    }
}

impl Drop for StoreSize {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// The sum of all entries and the length of the file; `None` where it makes no sense.
fn sum_of(bytes: &[u8]) -> Option<(u64, usize)> {
    let (entries, []) = bytes.as_chunks::<8>() else { return None };
    let sum = entries.iter().try_fold(0_i64, |sum, entry| sum.checked_add(i64::from_le_bytes(*entry)))?;
    u64::try_from(sum).ok().filter(|_| !entries.is_empty()).map(|sum| (sum, bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_counted_once_and_then_known_to_every_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("size");
        let one = StoreSize::new(path.clone());
        assert_eq!(one.bytes(|| 100), 100);
        one.add(20);
        one.add(-5);
        one.flush().unwrap();
        let never = || panic!("it is known");
        assert_eq!((one.bytes(never), StoreSize::new(path.clone()).bytes(never)), (115, 115));
        one.add(1);
        drop(one);
        let other = StoreSize::new(path.clone());
        assert_eq!(other.bytes(never), 116);
        other.set(7);
        assert_eq!((other.bytes(never), StoreSize::new(path.clone()).bytes(never)), (7, 7));
        for damaged in [&b"abc"[..], &(-1_i64).to_le_bytes(), b""] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(StoreSize::new(path.clone()).bytes(|| 9), 9);
        }
        fs::write(&path, 1_i64.to_le_bytes().repeat(9_000)).unwrap();
        assert_eq!(StoreSize::new(path.clone()).bytes(never), 9_000);
        assert_eq!(fs::metadata(&path).unwrap().len(), 8);
    }
}
