//! A stored chat as the facts that still count, for front-ends that show it anew.
//!
//! Invariant: what a rollback dropped is left out; bookmarks stand behind their items, and the order of the rest stays.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::command::Command;
use crate::event::{Fact, Recorded};
use crate::failure::Failure;
use crate::ids::{AskId, ItemId, SessionId, TurnId};
use crate::item::{Item, ItemKind};
use crate::link::Commands;

/// Facts read at a time.
const PAGE: usize = 4096;

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

/// What is left to show: without the items that `HistoryReplaced` dropped, without how whole items came about and
/// without questions that were answered.
pub fn visible_facts(all: Vec<Arc<Recorded>>) -> Vec<Arc<Recorded>> {
    place_flags(collapse_ended_items(drop_rolled_back(all)))
}

/// Puts each bookmark behind the facts of its item; one that was removed is left out.
fn place_flags(all: Vec<Arc<Recorded>>) -> Vec<Arc<Recorded>> {
    let (flags, mut kept): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|recorded| flag_of(&recorded.fact).is_some());
    for recorded in flags {
        let Some((item, text)) = flag_of(&recorded.fact) else { continue };
        if text.is_empty() {
            continue;
        }
        let of_parent = |known: &Arc<Recorded>| {
            item.parent.is_some()
                && (item_of(&known.fact) == item.parent || parent_of_flag(known) == item.parent)
        };
        let at = kept.iter().rposition(of_parent).map_or(kept.len(), |at| at + 1);
        kept.insert(at, recorded);
    }
    kept
}

/// The item and the text of a bookmark.
fn flag_of(fact: &Fact) -> Option<(&Item, &str)> {
    let Fact::ItemEnded { item } = fact else { return None };
    let ItemKind::Flag { text } = &item.kind else { return None };
    Some((item, text))
}

fn parent_of_flag(recorded: &Recorded) -> Option<ItemId> {
    flag_of(&recorded.fact).and_then(|(item, _)| item.parent)
}

/// An item that has ended stands once, as it ended, where it began.
fn collapse_ended_items(all: Vec<Arc<Recorded>>) -> Vec<Arc<Recorded>> {
    let mut ended: HashMap<ItemId, Arc<Recorded>> = HashMap::new();
    let mut settled: HashSet<AskId> = HashSet::new();
    for recorded in &all {
        if let Fact::ItemEnded { item } = &recorded.fact {
            ended.insert(item.id, recorded.clone());
        } else if let Fact::AskSettled { id, .. } = &recorded.fact {
            settled.insert(*id);
        }
    }
    let mut shown: HashSet<ItemId> = HashSet::new();
    let mut kept = Vec::with_capacity(all.len());
    for recorded in all {
        if matches!(&recorded.fact, Fact::AskSettled { .. })
            || matches!(&recorded.fact, Fact::AskRaised { ask } if settled.contains(&ask.id))
        {
            continue;
        }
        match item_of(&recorded.fact).and_then(|id| Some((id, ended.get(&id)?))) {
            Some((id, end)) if shown.insert(id) => kept.push(end.clone()),
            Some(_) => {}
            None => kept.push(recorded),
        }
    }
    kept
}

/// Leaves out the items that `HistoryReplaced` dropped, and the replacing itself.
fn drop_rolled_back(all: Vec<Arc<Recorded>>) -> Vec<Arc<Recorded>> {
    let mut order: HashMap<ItemId, usize> = HashMap::new();
    let mut turns: HashMap<ItemId, TurnId> = HashMap::new();
    let mut kept: Vec<Arc<Recorded>> = Vec::new();
    for recorded in all {
        if let Fact::HistoryReplaced { keep } = &recorded.fact {
            let limit = keep.and_then(|keep| order.get(&keep).copied());
            let last_turn = keep.and_then(|keep| turns.get(&keep).copied());
            kept.retain(|known| {
                if let Fact::TurnStarted { turn, .. } | Fact::TurnEnded { turn, .. } = &known.fact {
                    return Some(*turn) <= last_turn;
                }
                // A bookmark goes with its item.
                let id = parent_of_flag(known).or_else(|| item_of(&known.fact));
                let position = id.and_then(|id| order.get(&id));
                position.is_none_or(|position| limit.is_some_and(|limit| *position <= limit))
            });
            continue;
        }
        if let Some(id) = item_of(&recorded.fact) {
            let next = order.len();
            order.entry(id).or_insert(next);
        }
        if let Fact::ItemStarted { item } | Fact::ItemEnded { item } = &recorded.fact {
            turns.insert(item.id, item.turn);
        }
        kept.push(recorded);
    }
    kept
}

/// The item that a fact is about.
pub fn item_of(fact: &Fact) -> Option<ItemId> {
    match fact {
        Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => Some(item.id),
        Fact::ItemGrew { item, .. } => Some(*item),
        Fact::SessionOpened(_)
        | Fact::SessionChanged { .. }
        | Fact::TurnStarted { .. }
        | Fact::TurnEnded { .. }
        | Fact::HistoryReplaced { .. }
        | Fact::AskRaised { .. }
        | Fact::AskSettled { .. }
        | Fact::UsageChanged { .. }
        | Fact::Notice { .. }
        | Fact::TaintChanged { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Channel, Outcome};
    use crate::ids::TurnId;

    fn recorded(facts: Vec<Fact>) -> Vec<Arc<Recorded>> {
        (1..).zip(facts).map(|(number, fact)| Arc::new(Recorded { number, at: 0, fact })).collect()
    }

    fn shown(id: u64) -> Fact {
        let kind = ItemKind::SystemText { text: id.to_string() };
        Fact::ItemEnded { item: Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind } }
    }

    fn left(facts: Vec<Fact>) -> Vec<u64> {
        visible_facts(recorded(facts)).iter().filter_map(|it| item_of(&it.fact)).map(|id| id.0).collect()
    }

    #[test]
    fn dropped_items_are_not_replayed() {
        let ended = Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done };
        let keep_one = Fact::HistoryReplaced { keep: Some(ItemId(1)) };
        assert_eq!(left(vec![shown(1), shown(2), ended, keep_one, shown(3)]), [1, 3]);
        assert!(left(vec![shown(1), shown(2), Fact::HistoryReplaced { keep: None }]).is_empty());
    }

    #[test]
    fn a_flag_stands_behind_its_item_and_goes_with_it() {
        let flag = |id, parent, text: &str| {
            let kind = ItemKind::Flag { text: text.into() };
            let parent = Some(ItemId(parent));
            Fact::ItemEnded { item: Item { id: ItemId(id), turn: TurnId(1), step: 0, parent, kind } }
        };
        let keep_two = Fact::HistoryReplaced { keep: Some(ItemId(2)) };
        assert_eq!(
            left(vec![shown(1), shown(2), shown(3), flag(4, 1, "a"), flag(5, 1, "b")]),
            [1, 4, 5, 2, 3]
        );
        let rolled_back = vec![shown(1), shown(2), shown(3), flag(4, 1, "a"), flag(5, 3, "b"), keep_two];
        assert_eq!(left(rolled_back), [1, 4, 2]);
        assert_eq!(left(vec![shown(1), flag(2, 1, "a"), flag(2, 1, "")]), [1], "it was removed");
    }

    #[test]
    fn a_whole_item_stands_once_where_it_began() {
        let item = |id, text: &str| Item {
            id: ItemId(id),
            turn: TurnId(1),
            step: 0,
            parent: None,
            kind: ItemKind::SystemText { text: text.to_owned() },
        };
        let facts = vec![
            Fact::ItemStarted { item: item(1, "a") },
            Fact::ItemStarted { item: item(2, "x") },
            Fact::ItemGrew { item: ItemId(1), channel: Channel::Text, offset: 1, text: "b".into() },
            Fact::ItemEnded { item: item(1, "ab") },
            Fact::ItemGrew { item: ItemId(2), channel: Channel::Text, offset: 1, text: "y".into() },
        ];
        let shown = visible_facts(recorded(facts));
        assert!(matches!(&shown[0].fact, Fact::ItemEnded { item } if item.id == ItemId(1)));
        assert!(matches!(&shown[1].fact, Fact::ItemStarted { item } if item.id == ItemId(2)));
        assert!(matches!(&shown[2].fact, Fact::ItemGrew { .. }), "one that runs comes as it came");
        assert_eq!(shown.len(), 3);
    }
}
