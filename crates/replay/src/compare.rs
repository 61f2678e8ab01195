//! The comparison of two journals of a chat. Pure.
//!
//! Facts are compared in lanes: those of one item, of one question, of the turns, of the settings and of the usage keep
//! their order among themselves. Facts of different lanes may come in any order, because calls of one answer run at the
//! same time and a title is made beside the answer. Invariant: the differences that are ignored are those that
//! docs/replay.md lists, and no others.

use std::collections::{BTreeMap, BTreeSet};

use domain::event::{Fact, SessionUsage, Spent};
use domain::item::{Item, ItemKind};
use domain::model::Tokens;
use domain::note::NoteAbout;
use domain::tool_call::{Details, ToolState};
use domain::{AskId, ItemId, Recorded, SessionId};
use engine::recorded::{ASIDE_PURPOSE, MEMORY_PURPOSE, REVIEWER_PURPOSE, TOOLS_PURPOSE, WEB_SEARCH_PURPOSE};

use super::outcome::Difference;

/// How the notices of a failover name the next model.
pub(super) const FAILOVER: &str = " Going on with ";
/// How the messages of hooks begin.
pub(super) const HOOK_MESSAGE: &str = "Hook '";

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Lane {
    Turns,
    Item(u64),
    /// Of the item with this rank.
    Ask(Option<u64>),
    Settings,
    Title,
    Usage(String),
    Failover,
}

/// A fact as it is compared.
#[derive(Clone, PartialEq, Debug)]
enum Entry {
    Fact(Box<Fact>),
    Used { model: String, tokens: Tokens },
}

type Lanes = BTreeMap<Lane, Vec<(u64, Entry)>>;

/// The first difference by the number of the recorded fact. The first `given` facts are the same by construction.
pub(super) fn first_difference(
    recorded: &[Recorded],
    replayed: &[Recorded],
    given: usize,
) -> Option<Difference> {
    let (recorded, replayed) = (lanes(recorded, given), lanes(replayed, given));
    let names: BTreeSet<&Lane> = recorded.keys().chain(replayed.keys()).collect();
    let differences = names.into_iter().filter_map(|name| {
        let empty = Vec::new();
        let (one, other) = (recorded.get(name).unwrap_or(&empty), replayed.get(name).unwrap_or(&empty));
        let at = (0..one.len().max(other.len()))
            .find(|at| one.get(*at).map(|(_, entry)| entry) != other.get(*at).map(|(_, entry)| entry))?;
        let text = |entry: Option<&(u64, Entry)>| entry.map(|(_, entry)| describe(entry));
        // A fact that only the replay has follows the last one that both have.
        let number = one.get(at).or(one.last()).map_or(u64::MAX, |(number, _)| *number);
        Some(Difference { number, recorded: text(one.get(at)), replayed: text(other.get(at)) })
    });
    differences.min_by_key(|difference| difference.number)
}

fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Fact(fact) => format!("{fact:?}"),
        Entry::Used { model, tokens } => format!("{model} used {tokens:?}"),
    }
}

fn lanes(facts: &[Recorded], given: usize) -> Lanes {
    let ranks = Ranks::of(facts);
    let mut lanes = Lanes::new();
    let mut usage = SessionUsage::default();
    let mut asks: BTreeMap<AskId, Option<u64>> = BTreeMap::new();
    for (at, Recorded { number, fact, .. }) in facts.iter().enumerate() {
        let mut add = |lane, entry| {
            if at >= given {
                lanes.entry(lane).or_default().push((*number, entry));
            }
        };
        if let Fact::UsageChanged { usage: now } = fact {
            for Spent { purpose, model, tokens, .. } in added_calls(&usage, now) {
                // The chats of subagents are replayed by themselves, and no tool and command runs again.
                let of_others =
                    [REVIEWER_PURPOSE, WEB_SEARCH_PURPOSE, ASIDE_PURPOSE, MEMORY_PURPOSE, TOOLS_PURPOSE];
                if purpose != "subagents" && !of_others.contains(&purpose.as_str()) {
                    add(Lane::Usage(purpose), Entry::Used { model, tokens });
                }
            }
            usage = now.clone();
            continue;
        }
        if let Fact::AskRaised { ask } = fact {
            asks.insert(ask.id, ask.item.map(|item| ranks.rank(item)));
        }
        if let Some(lane) = lane_of(fact, &ranks, &asks) {
            add(lane, Entry::Fact(Box::new(normalize(fact.clone(), &ranks))));
        }
    }
    lanes
}

/// `None`: the fact is not compared.
fn lane_of(fact: &Fact, ranks: &Ranks, asks: &BTreeMap<AskId, Option<u64>>) -> Option<Lane> {
    match fact {
        Fact::TurnStarted { .. } | Fact::TurnEnded { .. } | Fact::HistoryReplaced { .. } => Some(Lane::Turns),
        Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } => {
            (!is_of_hook(item)).then(|| Lane::Item(ranks.rank(item.id)))
        }
        Fact::AskRaised { ask } => Some(Lane::Ask(ask.item.map(|item| ranks.rank(item)))),
        Fact::AskSettled { id, .. } => Some(Lane::Ask(asks.get(id).copied().flatten())),
        // An import takes away what it does not trust.
        Fact::SessionChanged { change } if change.is_empty() => None,
        Fact::SessionChanged { change } => {
            let is_title = change.title.is_some() && {
                let mut rest = change.clone();
                rest.title = None;
                rest.is_empty()
            };
            Some(if is_title { Lane::Title } else { Lane::Settings })
        }
        Fact::Notice { notice } => notice.text.contains(FAILOVER).then_some(Lane::Failover),
        Fact::SessionOpened(_)
        | Fact::ItemGrew { .. }
        | Fact::UsageChanged { .. }
        | Fact::TaintChanged { .. } => None,
    }
}

/// Items of hooks, which do not run in a replay.
pub(super) fn is_of_hook(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Hook(_) => true,
        ItemKind::SystemText { text } => text.starts_with(HOOK_MESSAGE),
        // No reviewer is asked in a replay.
        ItemKind::Note(note) => note.about == NoteAbout::Review,
        ItemKind::UserMessage { .. }
        | ItemKind::AgentMessage { .. }
        | ItemKind::Reasoning { .. }
        | ItemKind::ToolCall(_)
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::Flag { .. } => false,
    }
}

/// The calls that a usage has more than the one before it.
pub(super) fn added_calls(before: &SessionUsage, now: &SessionUsage) -> Vec<Spent> {
    let mut added = Vec::new();
    for row in &now.spent {
        let known =
            before.spent.iter().find(|known| known.purpose == row.purpose && known.model == row.model);
        let (calls, tokens) = known.map_or((0, Tokens::default()), |known| (known.calls, known.tokens));
        if row.calls > calls {
            let tokens = Tokens {
                input: row.tokens.input - tokens.input.min(row.tokens.input),
                cache_read: row.tokens.cache_read - tokens.cache_read.min(row.tokens.cache_read),
                cache_write: row.tokens.cache_write - tokens.cache_write.min(row.tokens.cache_write),
                output: row.tokens.output - tokens.output.min(row.tokens.output),
                reasoning: row.tokens.reasoning - tokens.reasoning.min(row.tokens.reasoning),
            };
            added.push(Spent { calls: row.calls - calls, tokens, cost: None, ..row.clone() });
        }
    }
    added
}

/// The place of each item among the items of a journal. Ids have gaps where hooks or empty blocks took some.
pub(super) struct Ranks(Vec<ItemId>);

impl Ranks {
    pub(super) fn of(facts: &[Recorded]) -> Self {
        let items = facts.iter().filter_map(|recorded| item_of(&recorded.fact));
        let ids: BTreeSet<ItemId> = items.filter(|item| !is_of_hook(item)).map(|item| item.id).collect();
        Self(ids.into_iter().collect())
    }

    /// How many items are at or before this id.
    pub(super) fn rank(&self, id: ItemId) -> u64 {
        self.0.partition_point(|known| *known <= id) as u64
    }
}

pub(super) fn item_of(fact: &Fact) -> Option<&Item> {
    if let Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item } = fact {
        return Some(item);
    }
    None
}

/// Without clocks, ids and prices.
fn normalize(mut fact: Fact, ranks: &Ranks) -> Fact {
    match &mut fact {
        Fact::ItemStarted { item } => {
            normalize_item(item, ranks);
            // Where a stream was cut into pieces depends on the clock; the end of the item has the whole text.
            if let ItemKind::AgentMessage { text, .. } | ItemKind::Reasoning { text, .. } = &mut item.kind {
                text.clear();
            }
        }
        Fact::ItemChanged { item } | Fact::ItemEnded { item } => normalize_item(item, ranks),
        Fact::HistoryReplaced { keep } => *keep = keep.map(|keep| ItemId(ranks.rank(keep))),
        Fact::AskRaised { ask } => {
            ask.id = AskId(0);
            ask.item = ask.item.map(|item| ItemId(ranks.rank(item)));
        }
        Fact::AskSettled { id, .. } => *id = AskId(0),
        Fact::SessionOpened(_)
        | Fact::SessionChanged { .. }
        | Fact::TurnStarted { .. }
        | Fact::TurnEnded { .. }
        | Fact::ItemGrew { .. }
        | Fact::UsageChanged { .. }
        | Fact::Notice { .. }
        | Fact::TaintChanged { .. } => {}
    }
    fact
}

fn normalize_item(item: &mut Item, ranks: &Ranks) {
    item.id = ItemId(ranks.rank(item.id));
    item.parent = item.parent.map(|parent| ItemId(ranks.rank(parent)));
    match &mut item.kind {
        ItemKind::Reasoning { millis, .. } => *millis = 0,
        ItemKind::ToolCall(call) => {
            call.millis = 0;
            if let ToolState::Waiting { ask } = &mut call.state {
                *ask = AskId(0);
            }
            if let Some(Details::Subagent { session, .. }) = &mut call.details {
                *session = SessionId::new("");
            }
        }
        ItemKind::UserMessage { .. }
        | ItemKind::AgentMessage { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => {}
    }
}
