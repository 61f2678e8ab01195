//! What one chat takes over from another: as a fork, or by `/resume` into a chat that has just begun.
//!
//! Invariant: only whole items are taken over; the other chat is not touched, whichever process writes it.

use domain::event::{Fact, Outcome};
use domain::item::ItemKind;
use domain::taint::Taint;
use domain::{Failure, Item, ItemId, SessionId, Store};

use super::load;
use super::start::Create;
use super::state::State;

/// How a fork begins: with the whole items of the other history, without the turns that made them.
pub async fn fork(
    store: &dyn Store,
    session: &SessionId,
    until: Option<ItemId>,
    client: String,
) -> Result<Create, Failure> {
    let state = closed_state(store, session).await?;
    let items = match until {
        None => state.items().to_vec(),
        Some(until) => items_until(state.items(), until)?,
    };
    let mut settings = state.settings().clone();
    settings.title = settings.title.map(|title| format!("{title} (fork)"));
    let mut facts: Vec<Fact> = items.into_iter().map(|item| Fact::ItemEnded { item }).collect();
    // Also where the fork ends before the text that brought it: what came before may depend on it.
    if !state.taint().is_empty() {
        facts.push(Fact::TaintChanged { taint: state.taint().clone() });
    }
    let workspace = state.workspace().to_vec();
    Ok(Create { workspace, settings, parent: Some(session.clone()), client, facts })
}

/// The history up to and including an item, with its bookmarks. A bookmark stands for the item that it is behind.
fn items_until(items: &[Item], until: ItemId) -> Result<Vec<Item>, Failure> {
    let named = items.iter().find(|item| item.id == until);
    let named = named.ok_or_else(|| Failure::user(format!("There is no {until} in this chat.")))?;
    let is_flag = |item: &Item| matches!(item.kind, ItemKind::Flag { .. });
    let last = named.parent.filter(|_| is_flag(named)).unwrap_or(until);
    let place = |item: &Item| item.parent.filter(|_| is_flag(item)).unwrap_or(item.id);
    Ok(items.iter().filter(|item| place(item) <= last).cloned().collect())
}

/// The items of another chat, and what it has read.
pub async fn items_of(store: &dyn Store, session: &SessionId) -> Result<(Vec<Item>, Taint), Failure> {
    let state = closed_state(store, session).await?;
    Ok((state.items().to_vec(), state.taint().clone()))
}

/// The stored state of a chat, with what is open in it ended.
async fn closed_state(store: &dyn Store, session: &SessionId) -> Result<State, Failure> {
    let mut state = load(store, session).await?.state;
    if state.newest() == 0 {
        return Err(Failure::user(format!("There is no chat {session}.")));
    }
    for fact in state.closing_facts(Outcome::Interrupted) {
        state.fold(state.newest() + 1, &fact);
    }
    Ok(state)
}
