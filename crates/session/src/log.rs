//! The one way to change a session: a commit numbers its facts, folds them into the state, writes them to the store and
//! then publishes them to the audience.
//!
//! Must not know what facts mean. Invariants: a commit is one step that no other commit can interrupt; no fact is
//! published before it is on disk; facts are published in the order of their numbers, and other events between the
//! facts they were published between; after an append failed nothing more is written, so that the numbers in the store
//! never have a gap; publishing never waits, so a stalled front-end cannot slow a turn.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use domain::event::EventBody;
use domain::queue::EventSender;
use domain::{
    Abilities, AskId, AskKind, BoxFuture, Event, Fact, Failure, FrontendId, ItemId, Recorded, SessionId,
    Store, TurnId,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::state::State;

/// Appends that wait together share a commit, up to this many.
const BATCH: usize = 64;
/// An append that takes longer is told of: the store may be on another machine.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// A store that is away keeps no chat from closing.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(20);
const STORE_AWAY: &str = "The store of the chats does not answer; this chat waits for it";

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

/// The state, to be read. It must be gone before the next call of its log in the same task.
pub struct StateGuard<'a>(MutexGuard<'a, Live>);

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl SessionLog {
    pub fn new(state: State, journal: Journal) -> Self {
        let (items, asks) = (AtomicU64::new(state.last_item()), AtomicU64::new(state.last_ask()));
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
        let first = live.state.newest() + 1;
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
            if *number == live.state.newest() + 1 {
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

    /// The user stops a turn: an append that a store does not answer is given up, until the turn has ended.
    pub fn stop(&self, turn: TurnId) {
        self.lock().journal.status.stopping.send_replace(Some(turn));
    }

    /// A stop of this turn is over when everything committed before is written or given up.
    pub fn end_stop(&self, turn: TurnId) {
        let _ = self.lock().journal.entries.send(JournalEntry::EndStop(turn));
    }

    /// An append that a store does not answer now is given up; later ones are waited for again.
    pub fn give_up_waiting(&self) {
        self.lock().journal.status.give_up.notify_waiters();
    }

    /// Waits until everything committed before is on disk, though not for ever.
    pub async fn flush(&self) -> Result<(), Failure> {
        let pending = self.lock().journal.append(0, Vec::new());
        let late = |_| {
            Failure::config("The store of the chats does not answer, so the newest part is not stored yet.")
        };
        tokio::time::timeout(FLUSH_TIMEOUT, pending.on_disk()).await.map_err(late)?
    }

    pub fn state(&self) -> StateGuard<'_> {
        StateGuard(self.lock())
    }

    /// The number of the newest fact that is on disk and published.
    pub fn published(&self) -> u64 {
        self.lock().journal.published()
    }

    /// Why the journal takes no further facts.
    pub fn failure(&self) -> Option<Failure> {
        self.lock().journal.failure()
    }

    pub fn next_item(&self) -> ItemId {
        ItemId(self.items.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn next_ask(&self) -> AskId {
        AskId(self.asks.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Ids that are in the journal are never given again.
    fn skip_ids(&self, state: &State) {
        self.items.fetch_max(state.last_item(), Ordering::Relaxed);
        self.asks.fetch_max(state.last_ask(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        // Folding does not panic, and a guard only reads.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Facts on their way to the disk.
pub struct Journal {
    entries: mpsc::UnboundedSender<JournalEntry>,
    status: Arc<Status>,
}

/// Where the writer has come to.
struct Status {
    published: AtomicU64,
    failure: OnceLock<Failure>,
    /// The turn that the user has stopped.
    stopping: watch::Sender<Option<TurnId>>,
    give_up: Notify,
}

enum JournalEntry {
    /// `last` is the number of the last fact.
    Append {
        first: u64,
        last: u64,
        facts: Vec<Fact>,
        done: oneshot::Sender<Result<(), Failure>>,
    },
    Publish(EventBody),
    EndStop(TurnId),
}

/// Facts on their way to the disk. May be dropped: they get there all the same.
pub struct PendingCommit {
    receiver: oneshot::Receiver<Result<(), Failure>>,
    outcome: Option<Result<(), Failure>>,
}

impl Journal {
    /// Writes for a session whose newest fact on disk has the number `newest`.
    pub fn start(session: SessionId, store: Arc<dyn Store>, audience: Audience, newest: u64) -> Self {
        let (entries, receiver) = mpsc::unbounded_channel();
        let status = Arc::new(Status {
            published: AtomicU64::new(newest),
            failure: OnceLock::new(),
            stopping: watch::Sender::new(None),
            give_up: Notify::new(),
        });
        let writer = Writer { session, store, audience, status: status.clone() };
        tokio::spawn(writer.run(receiver));
        Self { entries, status }
    }

    /// `first` is the number of the first fact. Without facts it resolves after everything appended before.
    pub fn append(&self, first: u64, facts: Vec<Fact>) -> PendingCommit {
        let (done, receiver) = oneshot::channel();
        // A failed send drops `done`, which the pending commit reports.
        let last = (first + facts.len() as u64).saturating_sub(1);
        let _ = self.entries.send(JournalEntry::Append { first, last, facts, done });
        PendingCommit { receiver, outcome: None }
    }

    pub fn publish(&self, body: EventBody) {
        let _ = self.entries.send(JournalEntry::Publish(body));
    }

    pub fn published(&self) -> u64 {
        self.status.published.load(Ordering::Acquire)
    }

    /// Another process wrote on, up to this number.
    pub fn skip_to(&self, number: u64) {
        self.status.published.fetch_max(number, Ordering::AcqRel);
    }

    pub fn failure(&self) -> Option<Failure> {
        self.status.failure.get().cloned()
    }
}

impl PendingCommit {
    /// How it ended, without waiting; `None` while it is under way.
    pub fn outcome(&mut self) -> Option<&Result<(), Failure>> {
        if self.outcome.is_none() {
            self.outcome = match self.receiver.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(oneshot::error::TryRecvError::Empty) => None,
                Err(oneshot::error::TryRecvError::Closed) => Some(Err(Failure::closed())),
            };
        }
        self.outcome.as_ref()
    }

    /// Waits until the facts are on disk and published.
    pub async fn on_disk(self) -> Result<(), Failure> {
        match self.outcome {
            Some(outcome) => outcome,
            None => self.receiver.await.unwrap_or_else(|_| Err(Failure::closed())),
        }
    }
}

struct Writer {
    session: SessionId,
    store: Arc<dyn Store>,
    audience: Audience,
    status: Arc<Status>,
}

impl Writer {
    async fn run(self, mut receiver: mpsc::UnboundedReceiver<JournalEntry>) {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            let (mut expected, mut facts) = (None, Vec::new());
            for entry in &mut batch {
                if let JournalEntry::Append { first, facts: own, .. } = entry
                    && !own.is_empty()
                {
                    expected.get_or_insert(*first);
                    facts.append(own);
                }
            }
            let written = self.write(expected, facts).await;
            self.settle(batch.drain(..), written);
        }
    }

    /// Publishes what was written, entry by entry, and then answers those that wait.
    fn settle(&self, batch: impl Iterator<Item = JournalEntry>, written: Result<Vec<Recorded>, Failure>) {
        let (mut recorded, outcome) = match written {
            Ok(recorded) => (recorded.into_iter().peekable(), Ok(())),
            Err(failure) => (Vec::new().into_iter().peekable(), Err(failure)),
        };
        let mut waiting = Vec::new();
        for entry in batch {
            match entry {
                JournalEntry::Append { last, done, .. } => {
                    while let Some(fact) = recorded.next_if(|fact| fact.number <= last) {
                        self.audience.publish(Event::fact(self.session.clone(), Arc::new(fact)));
                    }
                    waiting.push(done);
                }
                JournalEntry::Publish(body) => self.publish(body),
                JournalEntry::EndStop(turn) => {
                    let stopping = &self.status.stopping;
                    stopping.send_if_modified(|stopped| stopped.take_if(|it| *it == turn).is_some());
                }
            }
        }
        for done in waiting {
            let _ = done.send(outcome.clone());
        }
    }

    async fn write(&self, expected: Option<u64>, facts: Vec<Fact>) -> Result<Vec<Recorded>, Failure> {
        if let Some(failure) = self.status.failure.get() {
            return Err(failure.clone());
        }
        let Some(expected) = expected else { return Ok(Vec::new()) };
        let written = match self.tell_of_delay(self.store.append(&self.session, facts)).await {
            Ok(recorded) if recorded.first().is_some_and(|first| first.number == expected) => recorded,
            Ok(_) => return Err(self.fail(Failure::internal("Another process wrote to this chat."))),
            Err(failure) => return Err(self.fail(failure)),
        };
        if let Some(last) = written.last() {
            self.status.published.store(last.number, Ordering::Release);
        }
        Ok(written)
    }

    /// Waits for the store and says so, until the user stops the turn.
    async fn tell_of_delay<T>(&self, mut append: BoxFuture<'_, Result<T, Failure>>) -> Result<T, Failure> {
        let mut give_up = std::pin::pin!(self.status.give_up.notified());
        // Also a request that comes before the user is told counts.
        give_up.as_mut().enable();
        if let Ok(done) = tokio::time::timeout(TELL_AFTER, &mut append).await {
            return done;
        }
        tracing::warn!(session = %self.session, "the store does not answer");
        self.publish(EventBody::Progress { text: STORE_AWAY.to_owned() });
        let mut stopping = self.status.stopping.subscribe();
        let done = tokio::select! {
            biased;
            done = append => done,
            // A file on this machine is slow at most; a database may be away for long.
            _ = stopping.wait_for(Option::is_some), if self.store.leases_end() => Err(stopped_while_away()),
            () = give_up, if self.store.leases_end() => Err(stopped_while_away()),
        };
        self.publish(EventBody::Progress { text: String::new() });
        done
    }

    fn fail(&self, failure: Failure) -> Failure {
        tracing::error!(session = %self.session, %failure, "the journal cannot be written");
        let _ = self.status.failure.set(failure.clone());
        self.publish(EventBody::Lost { failure: failure.clone() });
        failure
    }

    fn publish(&self, body: EventBody) {
        self.audience.publish(Event { session: Some(self.session.clone()), body });
    }
}

fn stopped_while_away() -> Failure {
    Failure::config(
        "Stopped. The store of the chats does not answer, so the end of this answer is not stored.",
    )
    .hint("All but its last words is stored. Go on in this chat when the store answers again.")
}

/// The front-ends attached to a session.
#[derive(Clone, Default)]
pub struct Audience {
    listeners: Arc<RwLock<Vec<Listener>>>,
}

struct Listener {
    frontend: FrontendId,
    events: EventSender,
    abilities: Abilities,
}

impl Audience {
    /// True where it is new.
    pub fn add(&self, frontend: FrontendId, events: &EventSender, abilities: &Abilities) -> bool {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        if listeners.iter().any(|known| known.frontend == frontend) {
            return false;
        }
        listeners.push(Listener { frontend, events: events.clone(), abilities: abilities.clone() });
        true
    }

    /// Somebody else is there as well.
    pub fn has_others(&self, frontend: FrontendId) -> bool {
        self.has(|known| known.frontend != frontend)
    }

    /// Somebody is there who can be asked this.
    pub fn can_answer(&self, kind: &AskKind) -> bool {
        self.has(|known| known.abilities.can_answer(kind))
    }

    fn has(&self, is_wanted: impl Fn(&Listener) -> bool) -> bool {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().any(|known| !known.events.is_closed() && is_wanted(known))
    }

    /// True where it was there.
    pub fn remove(&self, frontend: FrontendId) -> bool {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        let before = listeners.len();
        listeners.retain(|known| known.frontend != frontend);
        listeners.len() < before
    }

    pub fn is_empty(&self) -> bool {
        self.listeners.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn publish(&self, event: Event) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        let Some((last, others)) = listeners.split_last() else { return };
        for listener in others {
            listener.events.push(event.clone());
        }
        last.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use domain::queue::Received;
    use domain::{Outcome, TurnId};
    use testkit::MemoryStore;

    use super::*;

    fn facts(turn: u64) -> Vec<Fact> {
        let turn = TurnId(turn);
        vec![
            Fact::TurnStarted { turn, model: String::new() },
            Fact::TurnEnded { turn, outcome: Outcome::Done },
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_was_looked_at_is_still_reported() {
        // Without a lease every append fails.
        let store = Arc::new(MemoryStore::default());
        let journal = Journal::start(SessionId::new("s"), store, Audience::default(), 0);
        let mut pending = journal.append(1, facts(1));
        assert!(pending.outcome().is_none(), "it is under way");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(pending.outcome().is_some_and(Result::is_err));
        assert!(pending.on_disk().await.is_err(), "a look does not consume the error");
        assert!(journal.failure().is_some());
        assert!(journal.append(3, facts(2)).on_disk().await.is_err(), "nothing is written after a failure");
        assert_eq!(journal.published(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn events_stand_between_the_facts_they_were_published_between() {
        let (id, store) = (SessionId::new("s"), Arc::new(MemoryStore::default()));
        store.lease(&id).await.unwrap();
        let audience = Audience::default();
        let (sender, mut receiver) = domain::queue::queue();
        audience.add(FrontendId(1), &sender, &Abilities::default());
        let opened = domain::event::SessionOpened {
            workspace: Vec::new(),
            settings: Default::default(),
            parent: None,
            client: String::new(),
        };
        let log = SessionLog::new(State::default(), Journal::start(id, store, audience.clone(), 0));
        log.commit(vec![Fact::SessionOpened(opened)]);
        log.commit(facts(1));
        log.publish(EventBody::Progress { text: "between".into() });
        log.commit(facts(2));
        log.flush().await.unwrap();
        let mut seen = Vec::new();
        while let Some(Received::Event(event)) = receiver.try_recv() {
            seen.push(match event.body {
                EventBody::Fact(recorded) => recorded.number,
                EventBody::Delta(_)
                | EventBody::Progress { .. }
                | EventBody::Catalog(_)
                | EventBody::Lost { .. } => 0,
            });
        }
        assert_eq!(seen, [1, 2, 3, 0, 4, 5]);
        assert_eq!(log.published(), 5);
        assert_eq!(log.state().last_turn(), 2);
        assert!(audience.remove(FrontendId(1)) && audience.is_empty());
    }

    fn opened() -> Vec<Fact> {
        vec![Fact::SessionOpened(domain::event::SessionOpened {
            workspace: Vec::new(),
            settings: Default::default(),
            parent: None,
            client: String::new(),
        })]
    }

    /// A log on a store that takes longer for a commit than is waited without a word.
    async fn slow_log() -> SessionLog {
        let (id, store) = (SessionId::new("s"), Arc::new(MemoryStore::default()));
        store.lease(&id).await.unwrap();
        store.set_leases_end(true);
        store.set_commit_time(Duration::from_secs(5));
        SessionLog::new(State::default(), Journal::start(id, store, Audience::default(), 0))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_gives_up_what_waits_for_a_store_that_is_away() {
        let log = slow_log().await;
        log.stop(TurnId(1));
        assert!(log.commit(opened()).on_disk().await.is_err(), "the turn was stopped");
        assert!(log.failure().is_some());
        // Without a turn: what waits now is given up.
        let log = slow_log().await;
        let pending = log.commit(opened());
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.give_up_waiting();
        assert!(pending.on_disk().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_is_over_with_its_turn_and_one_without_a_turn_at_once() {
        let log = slow_log().await;
        log.give_up_waiting();
        assert!(log.commit(opened()).on_disk().await.is_ok(), "nothing waited when the stop came");
        log.stop(TurnId(1));
        log.end_stop(TurnId(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(log.commit(facts(1)).on_disk().await.is_ok(), "the stopped turn has ended");
        // The end of an earlier turn is not the end of a later stop.
        log.stop(TurnId(2));
        log.end_stop(TurnId(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(log.commit(facts(2)).on_disk().await.is_err());
    }

    #[test]
    fn somebody_else_is_there_only_where_two_are() {
        let audience = Audience::default();
        let (sender, _receiver) = domain::queue::queue();
        audience.add(FrontendId(1), &sender, &Abilities::default());
        assert!(!audience.has_others(FrontendId(1)) && audience.has_others(FrontendId(2)));
        audience.add(FrontendId(2), &sender, &Abilities::default());
        assert!(audience.has_others(FrontendId(1)));
    }
}
