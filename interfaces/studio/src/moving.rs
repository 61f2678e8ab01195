//! Moves tabs and their versions into another store, for `dragoman store migrate`.
//!
//! Invariants: what the other store has stays as it is; a tab is written after what it refers to, so that a run that was
//! interrupted is continued by the next one; no studio runs meanwhile.

use std::sync::Arc;

use domain::store::Lease;
use domain::{Failure, Store};

use crate::archive::Archive;
use crate::studio::lease_name;

/// Copies the tabs that the other store does not have, with their specifications and versions, and returns their number.
pub async fn copy_tabs(from: Arc<dyn Store>, to: Arc<dyn Store>) -> Result<usize, Failure> {
    let lease = lease_name();
    for store in [&from, &to] {
        if let Lease::HeldBy { holder, .. } = store.lease(&lease).await? {
            from.release(&lease).await?;
            return Err(Failure::taken(format!("A studio runs: {holder}."))
                .hint("Close it, then run this again: the tabs of studio were not moved."));
        }
    }
    let copied = copy(&Archive::new(from.clone()), &Archive::new(to.clone())).await;
    to.release(&lease).await?;
    from.release(&lease).await?;
    copied
}

async fn copy(from: &Archive, to: &Archive) -> Result<usize, Failure> {
    let source = from.load().await?;
    let target = to.load().await?;
    let known = |id: &str| target.tabs.iter().chain(&target.closed).any(|tab| tab.id == id);
    let mut list = to.list().await?;
    let mut count = 0;
    for (tab, is_closed) in
        source.tabs.iter().map(|tab| (tab, false)).chain(source.closed.iter().map(|tab| (tab, true)))
    {
        if known(&tab.id) {
            continue;
        }
        if let Some(given) = from.specification(&tab.id).await? {
            to.save_specification(&tab.id, &given).await?;
        }
        for version in &tab.versions {
            if let Some(code) = from.code(&tab.id, version.number).await? {
                to.add_code(&tab.id, version.number, &code).await?;
            }
        }
        to.save_tab(&tab.id, || Some(tab.clone())).await?;
        let names = if is_closed { &mut list.closed } else { &mut list.order };
        names.push(tab.id.clone());
        count += 1;
    }
    if count > 0 {
        to.save_list(|| list).await?;
    }
    if target.tabs.is_empty() && target.closed.is_empty() && count > 0 {
        to.save_preferences(&source.preferences).await?;
    }
    Ok(count)
}
