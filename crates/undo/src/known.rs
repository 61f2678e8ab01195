//! What a store knows of a root while its process lives. Plain data.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::index::{Index, IndexFile};
use crate::scan::Scan;

/// An index, and its file where more may be appended to it.
#[derive(Clone)]
pub(crate) struct KnownIndex {
    pub(crate) index: Arc<Index>,
    pub(crate) file: Option<IndexFile>,
}

/// A scan that may be used once more.
pub(crate) struct RecentScan {
    pub(crate) root: PathBuf,
    pub(crate) ended: Instant,
    pub(crate) timed: TimedScan,
}

/// A scan and the time before it, in nanoseconds since 1970.
pub(crate) struct TimedScan {
    pub(crate) started: i64,
    /// As the store counted it before the scan.
    pub(crate) recorded: u64,
    pub(crate) found: Scan,
}
