//! A stored chat as the facts that still count, for front-ends that show it anew.
//!
//! Invariant: what a rollback dropped is left out; bookmarks follow their items, and the order of the rest stays.

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

/// The items of these facts, in the order in which they are shown.
pub fn items(visible: &[Arc<Recorded>]) -> Vec<ItemId> {
    let mut seen = HashSet::new();
    visible.iter().filter_map(|it| item_of(&it.fact)).filter(|id| seen.insert(*id)).collect()
}

/// The last turns of a chat, out of its newest facts: at least `wanted` items are shown of them. `None` where these facts
/// do not tell: too few, or one of them changes what came before.
pub fn last_turns(newest: Vec<Arc<Recorded>>, wanted: usize) -> Option<Vec<Arc<Recorded>>> {
    let is_whole = newest.first()?.number == 1;
    let (at, first) = newest.iter().enumerate().find_map(|(at, recorded)| {
        let Fact::TurnStarted { turn, .. } = &recorded.fact else { return None };
        Some((at, *turn))
    })?;
    if is_whole {
        return Some(newest);
    }
    let turns = newest[at..].to_vec();
    let mut known: HashSet<ItemId> = HashSet::new();
    for recorded in &turns {
        let is_told = if let Fact::HistoryReplaced { keep } = &recorded.fact {
            keep.is_some_and(|keep| known.contains(&keep))
        } else if let Some((flag, _)) = flag_of(&recorded.fact) {
            flag.parent.is_some_and(|parent| known.contains(&parent))
        } else if let Fact::ItemStarted { item } | Fact::ItemEnded { item } = &recorded.fact {
            item.turn >= first
        } else {
            item_of(&recorded.fact).is_none_or(|id| known.contains(&id))
        };
        if !is_told {
            return None;
        }
        known.extend(item_of(&recorded.fact));
    }
    let shown = items(&visible_facts(turns.clone())).len();
    (shown >= wanted).then_some(turns)
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

/// An item that has ended appears once, as it ended, where it began.
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

    /// A chat of random turns, with items that run beside each other, bookmarks and rollbacks.
    fn random_chat(steps: &[(u8, u64)]) -> Vec<Arc<Recorded>> {
        let (mut facts, mut items, mut turn) = (Vec::new(), 0, 0);
        // The items that can be seen.
        let mut alive: Vec<u64> = Vec::new();
        let item =
            |id, turn, parent, kind| Item { id: ItemId(id), turn: TurnId(turn), step: 0, parent, kind };
        let text = |text: &str| ItemKind::SystemText { text: text.to_owned() };
        for &(step, number) in steps {
            let any = alive.get(number as usize % alive.len().max(1)).copied();
            match (step, any) {
                (0, Some(any)) => {
                    let keep = (number % 5 > 0).then_some(any);
                    alive.retain(|id| Some(*id) <= keep);
                    facts.push(Fact::HistoryReplaced { keep: keep.map(ItemId) });
                }
                (1, Some(any)) => {
                    items += 1;
                    let kind =
                        ItemKind::Flag { text: if number % 3 > 0 { "here".into() } else { String::new() } };
                    facts.push(Fact::ItemEnded { item: item(items, turn, Some(ItemId(any)), kind) });
                }
                (2, Some(any)) => {
                    facts.push(Fact::ItemEnded { item: item(any, turn.min(1), None, text("late")) });
                }
                _ => {
                    turn += 1;
                    facts.push(Fact::TurnStarted { turn: TurnId(turn), model: String::new() });
                    let (first, second) = (items + 1, items + 2);
                    items += 2;
                    alive.extend([first, second]);
                    facts.push(Fact::ItemStarted { item: item(first, turn, None, text("a")) });
                    facts.push(Fact::ItemStarted { item: item(second, turn, None, text("b")) });
                    let grew = ItemId(second);
                    facts.push(Fact::ItemGrew {
                        item: grew,
                        channel: Channel::Text,
                        offset: 1,
                        text: "b".into(),
                    });
                    facts.push(Fact::ItemEnded { item: item(second, turn, None, text("bb")) });
                    facts.push(Fact::ItemEnded { item: item(first, turn, None, text("aa")) });
                    facts.push(Fact::TurnEnded { turn: TurnId(turn), outcome: Outcome::Done });
                }
            }
        }
        recorded(facts)
    }

    proptest::proptest! {
        #[test]
        fn the_end_of_a_chat_shows_what_the_whole_chat_shows_there(
            steps in proptest::collection::vec((0_u8..12, 0_u64..1000), 1..30),
            length in 1_usize..120,
            wanted in 1_usize..12,
        ) {
            let all = random_chat(&steps);
            let newest = all[all.len().saturating_sub(length)..].to_vec();
            if let Some(turns) = last_turns(newest, wanted) {
                let (end, whole) = (visible_facts(turns), visible_facts(all));
                let (some, every) = (items(&end), items(&whole));
                let last = |items: &[ItemId]| items[items.len().saturating_sub(wanted)..].to_vec();
                proptest::prop_assert_eq!(last(&some), last(&every));
                let shown = last(&every);
                let of = |facts: &[Arc<Recorded>]| -> Vec<Arc<Recorded>> {
                    facts.iter().filter(|it| item_of(&it.fact).is_some_and(|id| shown.contains(&id))).cloned().collect()
                };
                proptest::prop_assert_eq!(of(&end), of(&whole));
            }
        }
    }

    #[test]
    fn the_end_of_a_long_chat_is_found() {
        let all = random_chat(&[(9, 0); 30]);
        let turns = last_turns(all[60..].to_vec(), 10);
        assert!(turns.is_some_and(|turns| turns.first().is_some_and(|first| first.number == 64)));
    }
}
