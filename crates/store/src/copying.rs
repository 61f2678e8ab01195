//! Copies all chats of one store into another.
//!
//! Invariants: a chat is copied with its numbers and times; each is compared by checksum after the copy; a run that was
//! interrupted is continued by the next one; a chat that differs in both stores is left alone and named.

use domain::store::{Lease, ListFilter};
use domain::{Failure, Recorded, SessionId, Store};
use sha2::{Digest, Sha256};

use crate::export_line;

/// Facts and chats that are read at a time.
const PAGE: usize = 512;

/// What became of the chats.
#[derive(Default)]
pub struct Migrated {
    pub copied: u64,
    /// They were there already, and equal.
    pub known: u64,
    pub facts: u64,
    /// With the reason.
    pub left: Vec<(SessionId, String)>,
}

/// Copies all chats; with `delete` each is deleted from where it came from, after it was verified.
pub async fn migrate(from: &dyn Store, to: &dyn Store, delete: bool) -> Result<Migrated, Failure> {
    let mut outcome = Migrated::default();
    let mut after = None;
    // Deleting and copying change the list, so it is read first.
    let mut ids = Vec::new();
    loop {
        let filter = ListFilter { limit: Some(PAGE), after, ..ListFilter::default() };
        let page = from.list(filter).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.position());
        ids.extend(page.into_iter().map(|chat| chat.id));
    }
    // The oldest first, so that the order of a list by time is that of the keys as well.
    for id in ids.iter().rev() {
        match migrate_chat(from, to, id, delete).await? {
            Ok(0) => outcome.known += 1,
            Ok(facts) => (outcome.copied, outcome.facts) = (outcome.copied + 1, outcome.facts + facts),
            Err(reason) => outcome.left.push((id.clone(), reason)),
        }
    }
    Ok(outcome)
}

/// The number of facts that were copied, or why the chat was left out.
async fn migrate_chat(
    from: &dyn Store,
    to: &dyn Store,
    id: &SessionId,
    delete: bool,
) -> Result<Result<u64, String>, Failure> {
    for store in [from, to] {
        if let Lease::HeldBy { holder, .. } = store.lease(id).await? {
            from.release(id).await?;
            return Ok(Err(format!("Another Dragoman writes it: {holder}.")));
        }
    }
    let copied = copy_chat(from, to, id).await;
    to.release(id).await?;
    if delete && matches!(copied, Ok(Ok(_))) {
        from.delete(id).await?;
    }
    from.release(id).await?;
    copied
}

async fn copy_chat(from: &dyn Store, to: &dyn Store, id: &SessionId) -> Result<Result<u64, String>, Failure> {
    let (source, target) = (from.newest(id).await?.unwrap_or(0), to.newest(id).await?.unwrap_or(0));
    let common = source.min(target);
    if checksum(from, id, common).await? != checksum(to, id, common).await? {
        return Ok(Err("The other store has a chat of this name with other contents.".to_owned()));
    }
    let mut newest = target;
    while newest < source {
        let page = from.read(id, newest, PAGE).await?;
        let Some(last) = page.last() else { break };
        let last = last.number;
        to.adopt(id, page).await?;
        newest = last;
    }
    if checksum(from, id, source).await? != checksum(to, id, source).await? {
        return Ok(Err("Its copy differs from it. Nothing was deleted.".to_owned()));
    }
    Ok(Ok(newest - target))
}

/// SHA-256 of the first facts of a chat, as they are in an export.
async fn checksum(store: &dyn Store, id: &SessionId, count: u64) -> Result<[u8; 32], Failure> {
    let mut hash = Sha256::new();
    let mut newest = 0;
    while newest < count {
        let page = store.read(id, newest, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for recorded in page.iter().filter(|recorded: &&Recorded| recorded.number <= count) {
            hash.update(export_line(recorded)?);
            hash.update(b"\n");
        }
        newest = page.last().map_or(count, |last| last.number);
    }
    Ok(hash.finalize().into())
}
