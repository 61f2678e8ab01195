//! The list of chats, without those of subagents.

use domain::store::{ListFilter, SessionSummary};
use domain::{Failure, Store};

use crate::session::is_subagent;

/// Chats that are read at a time where many are left out.
const LIST_PAGE: usize = 256;

/// Chats without those of subagents; a page is filled from what comes after it.
pub(crate) async fn list(store: &dyn Store, mut filter: ListFilter) -> Result<Vec<SessionSummary>, Failure> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    loop {
        let page = store.list(filter.clone()).await?;
        let is_last = filter.limit.is_none_or(|limit| page.len() < limit);
        filter.after = page.last().map(SessionSummary::position);
        found.extend(page.into_iter().filter(|chat| !is_subagent(&chat.id)));
        if is_last || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        filter.limit = filter.limit.map(|limit| limit.max(LIST_PAGE));
    }
}
