//! What a session is to every layer: its log, its audience, its questions and the data that it stores for others.
//!
//! Must not know what the data is for. Invariant: the state changes by commits alone.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::event::{EventBody, Fact};
use domain::item::{Item, ItemKind};
use domain::model::WrittenPlace;
use domain::{CancellationToken, Failure, Recorded, SessionId, Store, TurnId};

use crate::PAGE;
use crate::account::Account;
use crate::asks::Asks;
use crate::log::{Audience, Journal, PendingCommit, SessionLog, StateGuard};
use crate::offered_tools::OfferedTools;
use crate::remembered::RememberedApprovals;
use crate::running_calls::RunningCalls;
use crate::state::State;
use crate::steering::Steering;

pub struct SessionCore {
    pub id: SessionId,
    pub store: Arc<dyn Store>,
    pub log: SessionLog,
    pub audience: Audience,
    pub asks: Asks,
    pub steering: Steering,
    pub account: Account,
    pub roots: Arc<[PathBuf]>,
    /// Cancelled when the actor has ended: nothing may be committed after that.
    pub closed: CancellationToken,
    /// The running turn, and what stops it.
    running: Mutex<Option<(TurnId, CancellationToken)>>,
    pub running_calls: RunningCalls,
    /// Where the provider keeps the written history.
    pub written: WrittenPlace,
    pub offered_tools: OfferedTools,
    pub approvals: RememberedApprovals,
}

/// What a new [`SessionCore`] is made of.
pub struct SessionParts {
    pub id: SessionId,
    pub store: Arc<dyn Store>,
    pub roots: Arc<[PathBuf]>,
    pub state: State,
}

/// A stored chat.
pub struct LoadedSession {
    pub state: State,
    /// Milliseconds since 1970.
    pub created_at: u64,
    pub updated_at: u64,
}

/// Folds the journal of a chat; the state is empty where there is no such chat.
pub async fn load(store: &dyn Store, id: &SessionId) -> Result<LoadedSession, Failure> {
    let mut loaded = LoadedSession { state: State::default(), created_at: 0, updated_at: 0 };
    let mut page = store.read(id, 0, PAGE).await?;
    while let Some(last) = page.last().map(|last| last.number) {
        // The store decodes the next page while this one is folded.
        let (next, ()) = tokio::join!(store.read(id, last, PAGE), async { loaded.fold(page) });
        page = next?;
    }
    Ok(loaded)
}

impl LoadedSession {
    fn fold(&mut self, page: Vec<Recorded>) {
        for recorded in page {
            if recorded.number == 1 {
                self.created_at = recorded.at;
            }
            self.updated_at = recorded.at;
            self.state.fold(recorded.number, &recorded.fact);
        }
    }
}

impl SessionCore {
    pub fn new(parts: SessionParts) -> Self {
        let SessionParts { id, store, roots, state } = parts;
        let audience = Audience::default();
        let journal = Journal::start(id.clone(), store.clone(), audience.clone(), state.newest());
        Self {
            id,
            store,
            log: SessionLog::new(state, journal),
            audience,
            asks: Asks::default(),
            steering: Steering::default(),
            account: Account::default(),
            roots,
            closed: CancellationToken::new(),
            running: Mutex::default(),
            running_calls: RunningCalls::default(),
            written: WrittenPlace::default(),
            offered_tools: OfferedTools::default(),
            approvals: RememberedApprovals::default(),
        }
    }

    /// A turn begins that this token stops.
    pub fn begin_turn(&self, turn: TurnId, cancel: CancellationToken) {
        *self.running() = Some((turn, cancel));
    }

    /// The turn is over, and its last facts are committed: a stop of it means nothing for what comes later.
    pub fn end_turn(&self, turn: TurnId) {
        let _ = self.running().take_if(|(running, _)| *running == turn);
        self.log.end_stop(turn);
    }

    /// Stops the running turn. Facts that wait for a store that is away are not waited for any longer.
    pub fn request_stop(&self) {
        let running = self.running().clone();
        match running {
            Some((turn, cancel)) => {
                cancel.cancel();
                self.log.stop(turn);
            }
            None => self.log.give_up_waiting(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<(TurnId, CancellationToken)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`SessionLog::commit`].
    pub fn commit(&self, facts: Vec<Fact>) -> PendingCommit {
        self.log.commit(facts)
    }

    /// See [`SessionLog::commit_with`].
    pub fn commit_with(&self, make: impl FnOnce(&State) -> Vec<Fact>) -> PendingCommit {
        self.log.commit_with(make)
    }

    pub fn state(&self) -> StateGuard<'_> {
        self.log.state()
    }

    pub fn new_item(&self, turn: TurnId, step: u32, kind: ItemKind) -> Item {
        Item { id: self.log.next_item(), turn, step, parent: None, kind }
    }

    /// Shows a status line; it is not kept.
    pub fn show_progress(&self, text: impl Into<String>) {
        self.log.publish(EventBody::Progress { text: text.into() });
    }
}
