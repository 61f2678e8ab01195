//! How much the store of undo may hold.

use std::time::Duration;

/// How much the store may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all contents.
    pub total: u64,
    /// Files and folders of one workspace. A larger one, such as a home folder, is not covered.
    pub entries: usize,
    /// The longest wait for another process that tidies the store.
    pub lock_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 64 << 20, total: 2 << 30, entries: 400_000, lock_timeout: Duration::from_secs(10) }
    }
}
