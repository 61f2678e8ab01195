//! Deletes chats that are older than `chatRetentionDays`, in the background of a process that has just started.
//!
//! Invariant: a chat that any process writes, this one included, is not deleted: it is leased through a store of its
//! own first.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::store::{Lease, ListFilter};
use domain::{Failure, Store};

/// The first seconds of a process belong to the user.
const DELAY: Duration = Duration::from_secs(2);
const DAY_IN_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;
/// Chats that are listed at a time.
const PAGE: usize = 200;

pub(crate) async fn run(data: PathBuf, days: u64) {
    tokio::time::sleep(DELAY).await;
    match delete_old_chats(data, days).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, days, "old chats were deleted"),
        Err(failure) => tracing::warn!(%failure, "old chats could not be deleted"),
    }
}

async fn delete_old_chats(data: PathBuf, days: u64) -> Result<usize, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let oldest = now.saturating_sub(days.saturating_mul(DAY_IN_MILLISECONDS));
    let journal = store::Journal::open(&data)?;
    let mut old = Vec::new();
    for page in 0.. {
        let filter = ListFilter { limit: Some(PAGE), offset: page * PAGE, ..ListFilter::default() };
        let chats = journal.list(filter).await?;
        let is_last = chats.len() < PAGE;
        old.extend(chats.into_iter().filter(|chat| chat.updated_at < oldest).map(|chat| chat.id));
        if is_last {
            break;
        }
    }
    let mut deleted = 0;
    for session in old {
        if journal.lease(&session).await? == Lease::Held {
            deleted += usize::from(journal.delete(&session).await?);
            journal.release(&session).await?;
        }
    }
    Ok(deleted)
}
