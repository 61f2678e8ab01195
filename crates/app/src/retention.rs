//! Deletes chats that are older than `chatRetentionDays`, in the background of a process that has just started.
//!
//! Invariant: a chat that any process writes, this one included, is not deleted: it is leased through a store of its
//! own first.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::Environment;
use domain::store::{Lease, ListFilter};
use domain::{Failure, Store};
use engine::memory::MemoryFolders;

use crate::stores;

/// The first seconds of a process belong to the user.
const DELAY: Duration = Duration::from_secs(2);
const DAY_IN_MILLISECONDS: u64 = 24 * 60 * 60 * 1000;
/// Chats that are listed at a time.
const PAGE: usize = 200;

pub(crate) async fn run(environment: Arc<Environment>, days: u64) {
    tokio::time::sleep(DELAY).await;
    let deleted = match stores::open(&environment) {
        Ok(store) => {
            let memory = crate::places::memory_here(&environment);
            let data = environment.data_dir();
            delete_unchanged_since(store.as_ref(), &data, cutoff(days), memory.as_ref()).await
        }
        Err(failure) => Err(failure),
    };
    match deleted {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, days, "old chats were deleted"),
        Err(failure) => tracing::warn!(%failure, "old chats could not be deleted"),
    }
}

/// The time so many days ago, in milliseconds since 1970.
fn cutoff(days: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    now.saturating_sub(days.saturating_mul(DAY_IN_MILLISECONDS))
}

/// Returns how many chats were deleted.
async fn delete_unchanged_since(
    journal: &dyn Store,
    data: &Path,
    oldest: u64,
    memory: Option<&MemoryFolders>,
) -> Result<usize, Failure> {
    let mut old = Vec::new();
    let mut after = None;
    loop {
        let filter = ListFilter { limit: Some(PAGE), after, ..ListFilter::default() };
        let chats = journal.list(filter).await?;
        let Some(last) = chats.last() else { break };
        after = Some(last.position());
        old.extend(chats.into_iter().filter(|chat| chat.updated_at < oldest).map(|chat| chat.id));
    }
    let undo = undo::UndoStore::new(data.join("undo"), undo::Limits::default());
    let outputs = tools::outputs::OutputFolder::new(data.join("outputs"));
    let mut deleted = 0;
    for session in old {
        if journal.lease(&session).await? == Lease::Held {
            deleted += usize::from(journal.delete(&session).await?);
            undo.forget(session.as_str()).map_err(|error| Failure::internal(error.to_string()))?;
            outputs.forget(&session).map_err(|error| Failure::internal(error.to_string()))?;
            if let Some(memory) = &memory {
                memory.forget_chat(session.as_str());
            }
            journal.release(&session).await?;
        }
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use domain::SessionId;
    use domain::command::SessionSettings;
    use domain::event::{Fact, SessionOpened};

    use super::*;

    async fn chat(data: &Path, id: &str) -> store::Journal {
        let journal = store::Journal::open(data).unwrap();
        let session = SessionId::new(id);
        assert_eq!(journal.lease(&session).await.unwrap(), Lease::Held);
        let opened = Fact::SessionOpened(SessionOpened {
            workspace: Vec::new(),
            settings: SessionSettings::default(),
            parent: None,
            client: "test".into(),
        });
        journal.append(&session, vec![opened]).await.unwrap();
        journal
    }

    #[tokio::test]
    async fn only_old_chats_that_nobody_writes_are_deleted() {
        let data = tempfile::tempdir().unwrap();
        drop(chat(data.path(), "idle").await);
        let writer = chat(data.path(), "written").await;
        let delete = async |oldest| {
            let other = store::Journal::open(data.path()).unwrap();
            delete_unchanged_since(&other, data.path(), oldest, None).await
        };
        assert_eq!(delete(cutoff(1)).await.unwrap(), 0, "nothing is a day old");
        assert_eq!(delete(u64::MAX).await.unwrap(), 1);
        let left = writer.list(ListFilter::default()).await.unwrap();
        assert_eq!(left.iter().map(|chat| chat.id.as_str()).collect::<Vec<_>>(), ["written"]);
    }
}
