//! Bookmarks of the user's in the history of a chat.
//!
//! Must not know front-ends. Invariants: a bookmark has an item that it is behind; the model never sees it; one that was
//! removed stays in the journal without text.

use domain::command::FlagChange;
use domain::event::Fact;
use domain::item::{Item, ItemKind};
use domain::{Failure, ItemId};

use super::actor_data::Actor;
use super::state::State;
use crate::work::SessionWork;

/// A longer text is cut here.
const MAX_CHARACTERS: usize = 200;

impl<S: SessionWork> Actor<S> {
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

#[cfg(test)]
mod tests {
    use domain::TurnId;

    use super::*;

    fn state() -> State {
        let mut state = State::default();
        let kind = ItemKind::UserMessage { text: "hello".into(), parts: Vec::new() };
        let item = Item { id: ItemId(1), turn: TurnId(1), step: 3, parent: None, kind };
        state.fold(1, &Fact::ItemEnded { item });
        let kind = ItemKind::Flag { text: "known".into() };
        let item = Item { id: ItemId(2), turn: TurnId(1), step: 3, parent: Some(ItemId(1)), kind };
        state.fold(2, &Fact::ItemEnded { item });
        state
    }

    fn add(after: u64, text: &str) -> Result<Item, String> {
        let change = FlagChange::Add { after: ItemId(after), text: text.into() };
        changed(&state(), &change, ItemId(9)).map_err(|failure| failure.message)
    }

    #[test]
    fn a_flag_stands_behind_an_item_with_a_short_text() {
        let flag = add(1, "  look here ").unwrap();
        assert_eq!((flag.id, flag.parent, flag.step), (ItemId(9), Some(ItemId(1)), 3));
        assert_eq!(flag.kind, ItemKind::Flag { text: "look here".into() });
        // Behind another flag it belongs to the same item.
        assert_eq!(add(2, "again").unwrap().parent, Some(ItemId(1)));
        let long = add(1, &"ü".repeat(500)).unwrap();
        assert_eq!(long.kind, ItemKind::Flag { text: "ü".repeat(MAX_CHARACTERS) });
        assert_eq!(add(1, " \n").unwrap_err(), "A flag needs a text.");
        assert!(add(7, "x").unwrap_err().contains("There is no"));
    }

    #[test]
    fn a_flag_that_is_removed_stays_without_text() {
        let remove = |flag: u64| changed(&state(), &FlagChange::Remove { flag: ItemId(flag) }, ItemId(flag));
        assert_eq!(remove(2).unwrap().kind, ItemKind::Flag { text: String::new() });
        assert!(remove(1).unwrap_err().message.contains("is not a flag"));
        assert!(remove(5).is_err());
    }
}
