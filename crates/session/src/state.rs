//! The state of a session: the fold of its facts.
//!
//! Must not know the store, models or protocols. Invariants: folding is pure, and the only way to change a state: all
//! fields are private to this file; loading a chat and committing to it are the same fold, so the fold of the journal
//! equals the live state.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use domain::command::SessionSettings;
use domain::event::{Channel, Fact, SessionUsage};
use domain::item::{Item, ItemKind};
use domain::taint::Taint;
use domain::tool_call::{ToolInput, next};
use domain::{Answer, Ask, AskId, ItemId, Outcome, SessionId, TurnId};

/// So many of the newest answers are remembered, for a second window that answers late.
const ANSWERS: usize = 64;

/// What the facts of a session say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Ordered by id.
    items: Vec<Item>,
    /// For each item, the number of the fact that changed it last.
    stamps: Vec<u64>,
    workspace: Vec<PathBuf>,
    parent: Option<SessionId>,
    settings: SessionSettings,
    usage: SessionUsage,
    taint: Taint,
    /// Questions without an answer.
    asks: BTreeMap<AskId, Ask>,
    /// The newest answers, oldest first.
    answers: VecDeque<(AskId, Answer)>,
    /// A turn without an end: it runs, or its process died.
    open_turn: Option<TurnId>,
    /// Items that were started and have not ended.
    open_items: Vec<ItemId>,
    last_item: u64,
    last_turn: u64,
    last_ask: u64,
    newest: u64,
}

impl State {
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items with the number of the fact that changed each last: an equal number means an equal item.
    pub fn stamped_items(&self) -> impl DoubleEndedIterator<Item = (u64, &Item)> + ExactSizeIterator {
        self.stamps.iter().copied().zip(&self.items)
    }

    /// The items without bookmarks that were removed.
    pub fn visible_items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.iter().filter(|item| !matches!(&item.kind, ItemKind::Flag { text } if text.is_empty()))
    }

    pub fn last_compaction(&self) -> Option<ItemId> {
        let is_compaction = |item: &&Item| matches!(item.kind, ItemKind::Compaction { .. });
        self.items.iter().rev().find(is_compaction).map(|item| item.id)
    }

    pub fn workspace(&self) -> &[PathBuf] {
        &self.workspace
    }

    pub fn parent(&self) -> Option<&SessionId> {
        self.parent.as_ref()
    }

    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    pub fn usage(&self) -> &SessionUsage {
        &self.usage
    }

    /// What the chat has read that could misuse it.
    pub fn taint(&self) -> &Taint {
        &self.taint
    }

    pub fn open_turn(&self) -> Option<TurnId> {
        self.open_turn
    }

    pub fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.values()
    }

    /// The answer that settled a question, where it is among the newest.
    pub fn answer_to(&self, ask: AskId) -> Option<&Answer> {
        self.answers.iter().rev().find(|(id, _)| *id == ask).map(|(_, answer)| answer)
    }

    pub fn last_turn(&self) -> u64 {
        self.last_turn
    }

    pub(super) fn last_item(&self) -> u64 {
        self.last_item
    }

    pub(super) fn last_ask(&self) -> u64 {
        self.last_ask
    }

    /// The number of the newest fact; 0 where there is none.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    pub fn has_user_message(&self) -> bool {
        self.items.iter().any(|item| matches!(item.kind, ItemKind::UserMessage { .. }))
    }

    /// Takes in one fact. Pure.
    pub fn fold(&mut self, number: u64, fact: &Fact) {
        self.newest = number;
        match fact {
            Fact::SessionOpened(opened) => {
                self.workspace = opened.workspace.clone();
                self.settings = opened.settings.clone();
                self.parent = opened.parent.clone();
            }
            Fact::SessionChanged { change } => self.settings.apply(change),
            Fact::TurnStarted { turn, .. } => {
                self.open_turn = Some(*turn);
                self.last_turn = self.last_turn.max(turn.0);
            }
            Fact::TurnEnded { .. } => {
                self.open_turn = None;
                self.open_items.clear();
            }
            Fact::ItemStarted { item } => {
                self.open_items.push(item.id);
                self.put(number, item);
            }
            Fact::ItemChanged { item } => self.put(number, item),
            Fact::ItemGrew { item, channel, offset, text } => {
                self.grow(number, *item, *channel, *offset, text);
            }
            Fact::ItemEnded { item } => {
                self.open_items.retain(|id| *id != item.id);
                self.put(number, item);
            }
            Fact::HistoryReplaced { keep } => self.cut(*keep),
            Fact::AskRaised { ask } => {
                self.last_ask = self.last_ask.max(ask.id.0);
                self.asks.insert(ask.id, ask.clone());
            }
            Fact::AskSettled { id, answer } => {
                self.asks.remove(id);
                if self.answers.len() == ANSWERS {
                    self.answers.pop_front();
                }
                self.answers.push_back((*id, answer.clone()));
            }
            Fact::UsageChanged { usage } => self.usage = usage.clone(),
            Fact::TaintChanged { taint } => self.taint = taint.clone(),
            Fact::Notice { .. } => {}
        }
    }

    /// Adds an item or replaces the one with its id.
    fn put(&mut self, number: u64, item: &Item) {
        self.last_item = self.last_item.max(item.id.0);
        match self.position(item.id) {
            Ok(at) => {
                self.items[at] = item.clone();
                self.stamps[at] = number;
            }
            Err(at) => {
                self.items.insert(at, item.clone());
                self.stamps.insert(at, number);
            }
        }
    }

    fn grow(&mut self, number: u64, id: ItemId, channel: Channel, offset: u64, text: &str) {
        let Ok(at) = self.position(id) else { return };
        self.stamps[at] = number;
        if let Some(whole) = self.items[at].channel_text_mut(channel)
            && whole.len() as u64 == offset
        {
            whole.push_str(text);
        }
    }

    /// Drops the items after `keep`. A bookmark stays with its item.
    fn cut(&mut self, keep: Option<ItemId>) {
        let length = match keep {
            // Nothing is left that could have misled the model.
            None => {
                self.taint = Taint::default();
                0
            }
            Some(keep) => self.position(keep).map_or_else(|at| at, |at| at + 1),
        };
        let is_kept_flag = |item: &Item| {
            matches!(item.kind, ItemKind::Flag { .. }) && item.parent.is_some_and(|of| Some(of) <= keep)
        };
        let (dropped, stamps) = (self.items.split_off(length), self.stamps.split_off(length));
        for (item, stamp) in dropped.into_iter().zip(stamps).filter(|(item, _)| is_kept_flag(item)) {
            self.items.push(item);
            self.stamps.push(stamp);
        }
        let left = keep.map_or(0, |keep| keep.0);
        self.open_items.retain(|id| id.0 <= left);
    }

    fn position(&self, id: ItemId) -> Result<usize, usize> {
        self.items.binary_search_by_key(&id, |item| item.id)
    }

    /// The facts that end the open turn with everything that is open in it; empty where no turn is open.
    pub fn closing_facts(&self, outcome: Outcome) -> Vec<Fact> {
        let Some(turn) = self.open_turn else { return Vec::new() };
        let asks = self.asks.keys().map(|id| Fact::AskSettled { id: *id, answer: Answer::Cancelled });
        let items = self.items.iter().filter(|item| self.open_items.contains(&item.id));
        let items = items.map(|item| Fact::ItemEnded { item: interrupted(item.clone()) });
        asks.chain(items).chain([Fact::TurnEnded { turn, outcome }]).collect()
    }
}

/// The item as it is when its turn ends without it.
fn interrupted(mut item: Item) -> Item {
    match &mut item.kind {
        ItemKind::AgentMessage { interrupted, .. } => *interrupted = true,
        ItemKind::ToolCall(call) => {
            if let Ok(state) = next(&call.state, ToolInput::Crashed) {
                call.state = state;
            }
            call.error = true;
        }
        ItemKind::UserMessage { .. }
        | ItemKind::Reasoning { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => {}
    }
    item
}

#[cfg(test)]
mod tests {
    use domain::item::Part;
    use domain::tool_call::{Origin, ToolCall, ToolState};

    use super::*;

    fn item(id: u64, kind: ItemKind) -> Item {
        Item { id: ItemId(id), turn: TurnId(1), step: 1, parent: None, kind }
    }

    fn user(id: u64, text: &str) -> Item {
        item(id, ItemKind::UserMessage { text: text.into(), parts: vec![Part::text(text)] })
    }

    fn agent(id: u64, text: &str) -> Item {
        item(id, ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None })
    }

    fn call(id: u64, state: ToolState) -> Item {
        let mut call = ToolCall::new(String::new(), "eca".into(), "read".into(), Origin::Native);
        call.state = state;
        item(id, ItemKind::ToolCall(Box::new(call)))
    }

    fn fold(facts: Vec<Fact>) -> State {
        let mut state = State::default();
        for (number, fact) in (1..).zip(&facts) {
            state.fold(number, fact);
        }
        state
    }

    fn ids(state: &State) -> Vec<u64> {
        state.items().iter().map(|item| item.id.0).collect()
    }

    #[test]
    fn items_are_ordered_by_id_and_replaced_by_it() {
        let state = fold(vec![
            Fact::ItemEnded { item: user(3, "third") },
            Fact::ItemEnded { item: user(1, "first") },
            Fact::ItemChanged { item: user(3, "changed") },
        ]);
        assert_eq!(ids(&state), [1, 3]);
        let stamps: Vec<u64> = state.stamped_items().map(|(stamp, _)| stamp).collect();
        assert_eq!(stamps, [2, 3], "the fact that changed an item last");
        assert_eq!(state.items()[1], user(3, "changed"));
        assert_eq!((state.last_item(), state.newest()), (3, 3));
        assert!(state.has_user_message());
    }

    #[test]
    fn text_grows_at_its_end_only() {
        let grew = |offset: u64, text: &str| Fact::ItemGrew {
            item: ItemId(1),
            channel: Channel::Text,
            offset,
            text: text.into(),
        };
        let state = fold(vec![
            Fact::ItemStarted { item: agent(1, "a") },
            grew(1, "b"),
            // A piece that is known already, one behind a gap, and one of an unknown item.
            grew(1, "b"),
            grew(9, "x"),
            Fact::ItemGrew { item: ItemId(5), channel: Channel::Text, offset: 0, text: "y".into() },
        ]);
        assert_eq!(state.items(), [agent(1, "ab")]);
    }

    #[test]
    fn a_rollback_drops_items_and_keeps_flags_of_those_that_stay() {
        let flag = |id: u64, of: u64| Item {
            parent: Some(ItemId(of)),
            ..item(id, ItemKind::Flag { text: "f".into() })
        };
        let facts = [
            Fact::ItemEnded { item: user(1, "one") },
            Fact::ItemEnded { item: user(2, "two") },
            Fact::ItemEnded { item: user(3, "three") },
            Fact::ItemEnded { item: flag(4, 1) },
            Fact::ItemEnded { item: flag(5, 3) },
        ];
        let cut = |keep: Option<u64>| {
            let replaced = Fact::HistoryReplaced { keep: keep.map(ItemId) };
            fold(facts.iter().cloned().chain([replaced]).collect())
        };
        assert_eq!(ids(&cut(Some(2))), [1, 2, 4]);
        assert_eq!(ids(&cut(Some(5))), [1, 2, 3, 4, 5]);
        assert!(ids(&cut(None)).is_empty());
        assert_eq!(cut(None).last_item(), 5, "ids are never given again");
    }

    #[test]
    fn a_chat_without_history_is_not_tainted() {
        let mut taint = Taint::default();
        taint.add_source("a page");
        let facts = vec![Fact::ItemEnded { item: user(1, "one") }, Fact::TaintChanged { taint }];
        assert!(fold(facts.clone()).taint().is_tainted());
        let emptied = [facts.clone(), vec![Fact::HistoryReplaced { keep: None }]].concat();
        assert!(!fold(emptied).taint().is_tainted());
        let shortened = [facts, vec![Fact::HistoryReplaced { keep: Some(ItemId(1)) }]].concat();
        assert!(fold(shortened).taint().is_tainted());
    }

    #[test]
    fn the_end_of_a_turn_ends_what_is_open_in_it() {
        let ask = Ask {
            id: AskId(1),
            turn: TurnId(1),
            item: Some(ItemId(2)),
            kind: domain::AskKind::Approval { reason: String::new(), keys: Vec::new() },
        };
        let open = fold(vec![
            Fact::TurnStarted { turn: TurnId(1), model: "m".into() },
            Fact::ItemStarted { item: agent(1, "half") },
            Fact::ItemStarted { item: call(2, ToolState::Running) },
            Fact::AskRaised { ask },
            Fact::ItemEnded { item: user(3, "whole") },
        ]);
        assert_eq!((open.open_turn(), open.open_asks().count()), (Some(TurnId(1)), 1));
        let closing = open.closing_facts(Outcome::Stopped);
        let mut closed = open.clone();
        for (number, fact) in (6..).zip(&closing) {
            closed.fold(number, fact);
        }
        assert_eq!((closed.open_turn(), closed.open_asks().count()), (None, 0));
        assert!(closed.closing_facts(Outcome::Stopped).is_empty(), "nothing is open any more");
        assert_eq!(closed.answer_to(AskId(1)), Some(&Answer::Cancelled));
        let ItemKind::AgentMessage { interrupted, .. } = &closed.items()[0].kind else { panic!("a message") };
        assert!(interrupted);
        let ItemKind::ToolCall(call) = &closed.items()[1].kind else { panic!("a call") };
        assert!(call.error && call.state == ToolState::Stopped { unknown: true }, "{:?}", call.state);
    }

    #[test]
    fn the_newest_answers_are_remembered() {
        let settled =
            |id: u64| Fact::AskSettled { id: AskId(id), answer: Answer::Text { text: id.to_string() } };
        let many = ANSWERS as u64 + 10;
        let state = fold((1..=many).map(settled).collect());
        assert_eq!(state.answer_to(AskId(1)), None);
        assert_eq!(state.answer_to(AskId(many)), Some(&Answer::Text { text: many.to_string() }));
        assert!(state.answer_to(AskId(many - ANSWERS as u64 + 1)).is_some());
    }
}
