//! The state of a session: the fold of its facts, and the one function that changes it.
//!
//! Must not know the store, models or protocols. Invariants: [`SessionLog::commit`] is number → fold → journal →
//! publish, in one step that no other commit can interrupt; loading a chat is the same fold, so the fold of the journal
//! equals the live state; no other file can assign to a field here, because all are private.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::command::SessionSettings;
use domain::event::{Channel, EventBody, Fact, SessionUsage};
use domain::item::{Item, ItemKind};
use domain::tool_call::{ToolInput, next};
use domain::{Answer, Ask, AskId, Failure, ItemId, Outcome, Recorded, SessionId, TurnId};

use super::journal::{Journal, PendingCommit};

/// What the facts of a session say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Ordered by id.
    items: Vec<Item>,
    workspace: Vec<PathBuf>,
    parent: Option<SessionId>,
    settings: SessionSettings,
    usage: SessionUsage,
    /// Questions without an answer.
    asks: BTreeMap<AskId, Ask>,
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

    pub fn open_turn(&self) -> Option<TurnId> {
        self.open_turn
    }

    pub fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.values()
    }

    pub fn last_turn(&self) -> u64 {
        self.last_turn
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
                self.put(item);
            }
            Fact::ItemChanged { item } => self.put(item),
            Fact::ItemGrew { item, channel, offset, text } => self.grow(*item, *channel, *offset, text),
            Fact::ItemEnded { item } => {
                self.open_items.retain(|id| *id != item.id);
                self.put(item);
            }
            Fact::HistoryReplaced { keep } => self.cut(*keep),
            Fact::AskRaised { ask } => {
                self.last_ask = self.last_ask.max(ask.id.0);
                self.asks.insert(ask.id, ask.clone());
            }
            Fact::AskSettled { id, .. } => {
                self.asks.remove(id);
            }
            Fact::UsageChanged { usage } => self.usage = usage.clone(),
            Fact::Notice { .. } => {}
        }
    }

    /// Adds an item or replaces the one with its id.
    fn put(&mut self, item: &Item) {
        self.last_item = self.last_item.max(item.id.0);
        match self.position(item.id) {
            Ok(at) => self.items[at] = item.clone(),
            Err(at) => self.items.insert(at, item.clone()),
        }
    }

    fn grow(&mut self, id: ItemId, channel: Channel, offset: u64, text: &str) {
        let Ok(at) = self.position(id) else { return };
        if let Some(whole) = self.items[at].channel_text_mut(channel)
            && whole.len() as u64 == offset
        {
            whole.push_str(text);
        }
    }

    /// Drops the items after `keep`.
    fn cut(&mut self, keep: Option<ItemId>) {
        let length = match keep {
            None => 0,
            Some(keep) => self.position(keep).map_or_else(|at| at, |at| at + 1),
        };
        self.items.truncate(length);
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

/// The item as it stands when its turn ends without it.
fn interrupted(mut item: Item) -> Item {
    match &mut item.kind {
        ItemKind::AgentMessage { interrupted, .. } => *interrupted = true,
        ItemKind::ToolCall(call) => {
            if let Ok(state) = next(&call.state, ToolInput::Crashed) {
                call.state = state;
            }
            call.error = true;
        }
        _ => {}
    }
    item
}

/// The state of a live session behind its one mutator.
pub struct SessionLog {
    live: Mutex<Live>,
    items: AtomicU64,
    asks: AtomicU64,
}

struct Live {
    state: State,
    journal: Journal,
}

/// The state, to be read.
pub struct StateGuard<'a>(MutexGuard<'a, Live>);

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl SessionLog {
    pub fn new(state: State, journal: Journal) -> Self {
        let (items, asks) = (AtomicU64::new(state.last_item), AtomicU64::new(state.last_ask));
        Self { live: Mutex::new(Live { state, journal }), items, asks }
    }

    /// Numbers the facts, folds them into the state and hands them to the journal, which publishes them once they are
    /// on disk. The caller may wait for that or not.
    pub fn commit(&self, facts: Vec<Fact>) -> PendingCommit {
        self.commit_with(|_| facts)
    }

    /// The same for facts that depend on the state: no other commit comes in between.
    pub fn commit_with(&self, make: impl FnOnce(&State) -> Vec<Fact>) -> PendingCommit {
        let mut live = self.lock();
        let facts = make(&live.state);
        let first = live.state.newest + 1;
        for (number, fact) in (first..).zip(&facts) {
            live.state.fold(number, fact);
        }
        self.skip_ids(&live.state);
        live.journal.append(first, facts)
    }

    /// Folds facts that are in the journal already because another process wrote them; others are passed over.
    pub fn adopt(&self, records: &[Recorded]) {
        let mut live = self.lock();
        for Recorded { number, fact, .. } in records {
            if *number == live.state.newest + 1 {
                live.state.fold(*number, fact);
                live.journal.skip_to(*number);
            }
        }
        self.skip_ids(&live.state);
    }

    /// Goes on from what the store holds after the journal failed: everything that did not reach the disk is dropped.
    pub fn restart(&self, state: State, journal: Journal) {
        self.skip_ids(&state);
        *self.lock() = Live { state, journal };
    }

    /// Publishes an event that is not kept, after all facts committed before it.
    pub fn publish(&self, body: EventBody) {
        self.lock().journal.publish(body);
    }

    /// Waits until everything committed before is on disk.
    pub async fn flush(&self) -> Result<(), Failure> {
        let pending = self.lock().journal.append(0, Vec::new());
        pending.on_disk().await
    }

    pub fn state(&self) -> StateGuard<'_> {
        StateGuard(self.lock())
    }

    /// The number of the newest fact that is on disk and published.
    pub fn published(&self) -> u64 {
        self.lock().journal.published()
    }

    /// Why the journal takes nothing any more.
    pub fn failure(&self) -> Option<Failure> {
        self.lock().journal.failure()
    }

    pub fn next_item(&self) -> ItemId {
        ItemId(self.items.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn next_ask(&self) -> AskId {
        AskId(self.asks.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Ids that stand in the journal are never given again.
    fn skip_ids(&self, state: &State) {
        self.items.fetch_max(state.last_item, Ordering::Relaxed);
        self.asks.fetch_max(state.last_ask, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        // Folding does not panic, and a guard only reads.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
