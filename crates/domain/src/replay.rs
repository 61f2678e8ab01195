//! A stored chat as the facts that still count, for front-ends that show it anew.
//!
//! Invariant: what a rollback dropped is left out, the order and the numbers of the rest stay.

use std::collections::HashMap;
use std::sync::Arc;

use crate::command::Command;
use crate::event::{Fact, Recorded};
use crate::failure::Failure;
use crate::ids::{ItemId, SessionId, TurnId};
use crate::link::Commands;

/// Facts read at a time.
const PAGE: usize = 512;

/// Everything in the journal of a chat.
pub async fn read(commands: &Commands, session: &SessionId) -> Result<Vec<Arc<Recorded>>, Failure> {
    let mut all: Vec<Arc<Recorded>> = Vec::new();
    loop {
        let after = all.last().map_or(0, |last| last.number);
        let page = commands
            .call(|reply| Command::Read { session: session.clone(), after, limit: PAGE, reply })
            .await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// Leaves out the items that `HistoryReplaced` dropped, and the replacing itself.
pub fn effective(all: Vec<Arc<Recorded>>) -> Vec<Arc<Recorded>> {
    let mut order: HashMap<ItemId, usize> = HashMap::new();
    let mut turns: HashMap<ItemId, TurnId> = HashMap::new();
    let mut kept: Vec<Arc<Recorded>> = Vec::new();
    for recorded in all {
        match &recorded.fact {
            Fact::HistoryReplaced { keep } => {
                let limit = keep.and_then(|keep| order.get(&keep).copied());
                let last_turn = keep.and_then(|keep| turns.get(&keep).copied());
                kept.retain(|known| match &known.fact {
                    Fact::TurnStarted { turn, .. } | Fact::TurnEnded { turn, .. } => Some(*turn) <= last_turn,
                    fact => match item_of(fact).and_then(|id| order.get(&id)) {
                        Some(place) => limit.is_some_and(|limit| *place <= limit),
                        None => true,
                    },
                });
            }
            fact => {
                if let Some(id) = item_of(fact) {
                    let next = order.len();
                    order.entry(id).or_insert(next);
                }
                if let Fact::ItemStarted { item } | Fact::ItemEnded { item } = fact {
                    turns.insert(item.id, item.turn);
                }
                kept.push(recorded);
            }
        }
    }
    kept
}

fn item_of(fact: &Fact) -> Option<ItemId> {
    match fact {
        Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => Some(item.id),
        Fact::ItemGrew { item, .. } => Some(*item),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Outcome;
    use crate::ids::TurnId;
    use crate::item::{Item, ItemKind};

    fn recorded(facts: Vec<Fact>) -> Vec<Arc<Recorded>> {
        (1..).zip(facts).map(|(number, fact)| Arc::new(Recorded { number, at: 0, fact })).collect()
    }

    fn said(id: u64) -> Fact {
        let kind = ItemKind::SystemText { text: id.to_string() };
        Fact::ItemEnded { item: Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind } }
    }

    fn left(facts: Vec<Fact>) -> Vec<u64> {
        effective(recorded(facts)).iter().filter_map(|it| item_of(&it.fact)).map(|id| id.0).collect()
    }

    #[test]
    fn dropped_items_are_not_replayed() {
        let ended = Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done };
        let keep_one = Fact::HistoryReplaced { keep: Some(ItemId(1)) };
        assert_eq!(left(vec![said(1), said(2), ended, keep_one, said(3)]), [1, 3]);
        assert!(left(vec![said(1), said(2), Fact::HistoryReplaced { keep: None }]).is_empty());
    }
}
