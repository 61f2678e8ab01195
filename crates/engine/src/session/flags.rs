//! Bookmarks of the user's in the history of a chat.
//!
//! Must not know front-ends. Invariants: a bookmark has an item that it is behind; the model never sees it; one that was
//! removed stays in the journal without text.

use domain::command::FlagChange;
use domain::event::Fact;
use domain::item::{Item, ItemKind};
use domain::{Failure, ItemId};

use super::actor::Actor;
use super::state::State;

/// A longer text is cut here.
const MAX_CHARACTERS: usize = 200;

impl Actor {
    pub(super) async fn change_flag(&mut self, change: FlagChange) -> Result<(), Failure> {
        self.ensure_writable().await?;
        let id = match &change {
            FlagChange::Add { .. } => self.session.log.next_item(),
            FlagChange::Remove { flag } => *flag,
        };
        let mut problem = None;
        let committed = self.session.commit_with(|state| match changed(state, &change, id) {
            Ok(item) => vec![Fact::ItemEnded { item }],
            Err(failure) => {
                problem = Some(failure);
                Vec::new()
            }
        });
        match problem {
            Some(failure) => Err(failure),
            None => committed.on_disk().await,
        }
    }
}

/// The bookmark as it is after a change.
fn changed(state: &State, change: &FlagChange, id: ItemId) -> Result<Item, Failure> {
    let find = |wanted: ItemId| {
        let item = state.items().iter().find(|item| item.id == wanted);
        item.ok_or_else(|| Failure::user(format!("There is no {wanted} in this chat.")))
    };
    match change {
        FlagChange::Add { after, text } => {
            let text: String = text.trim().chars().take(MAX_CHARACTERS).collect();
            if text.is_empty() {
                return Err(Failure::user("A flag needs a text."));
            }
            let after = find(*after)?;
            let is_flag = matches!(after.kind, ItemKind::Flag { .. });
            let parent = after.parent.filter(|_| is_flag).unwrap_or(after.id);
            let kind = ItemKind::Flag { text };
            Ok(Item { id, turn: after.turn, step: after.step, parent: Some(parent), kind })
        }
        FlagChange::Remove { flag } => {
            let item = find(*flag)?;
            if !matches!(item.kind, ItemKind::Flag { .. }) {
                return Err(Failure::user(format!("{flag} is not a flag.")));
            }
            Ok(Item { kind: ItemKind::Flag { text: String::new() }, ..item.clone() })
        }
    }
}
