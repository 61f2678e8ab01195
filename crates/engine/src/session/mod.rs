//! One chat as the engine holds it: its log, and what its actor, its running turn and its tools have in common.
//!
//! Must not know protocols. Invariant: what a chat is stands in its log alone; everything else here is gone with the
//! process (what a person allowed for the session, text for the running turn, questions that wait for an answer).

pub(crate) mod actor;

mod ending;
mod flags;
pub(crate) mod fork;
pub(crate) mod lease;
pub(crate) mod log;
mod remote;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod steering;
pub(crate) mod title;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::event::{EventBody, Fact, Level, Notice};
use domain::ids::SUBAGENT_PREFIX;
use domain::item::{Item, ItemKind};
use domain::model::WrittenPlace;
use domain::taint::Taint;
use domain::tool::{Tool, ToolServer, ToolSource};
use domain::tool_call::Origin;
use domain::{CancellationToken, Failure, Recorded, SessionId, Store, TurnId};
use tokio::sync::{mpsc, watch};

use crate::instruction_files::InstructionSet;
use crate::memory::PendingMemory;
use crate::spending::Account;
use crate::subagents::{Inherited, StartSubagent};
use crate::tool_calls::Approver;
use crate::tool_calls::approval::Remembered;
use crate::tool_calls::asks::Asks;
use crate::turn::offered_tools::OfferedTools;
use crate::workspace::OpenWorkspace;

use log::{Audience, Journal, PendingCommit, SessionLog, StateGuard};
use state::State;
use steering::Steering;

/// Whether an agent of another chat works in this chat. Its id says so.
pub fn is_subagent(id: &SessionId) -> bool {
    id.as_str().starts_with(SUBAGENT_PREFIX)
}

/// Facts read at a time while loading.
pub(crate) const PAGE: usize = 4096;

pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: SessionLog,
    pub(crate) audience: Audience,
    pub(crate) asks: Asks,
    pub(crate) steering: Steering,
    pub(crate) account: Account,
    pub(crate) workspace: Arc<OpenWorkspace>,
    /// Tool servers that live with this session.
    pub(crate) own_sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) roots: Arc<[PathBuf]>,
    /// Cancelled when the actor has ended: nothing may be committed any more.
    pub(crate) closed: CancellationToken,
    /// The running turn, and what stops it.
    running: Mutex<Option<(TurnId, CancellationToken)>>,
    /// Starts subagents.
    pub(crate) subagents: mpsc::UnboundedSender<StartSubagent>,
    /// Set in the chat of a subagent that runs.
    pub(crate) inherited: Option<Inherited>,
    /// `chatStart` hooks have run in this process.
    pub(crate) hooks_started: AtomicBool,
    /// Where the provider keeps the written history.
    pub(crate) written: WrittenPlace,
    pub(crate) offered_tools: OfferedTools,
    /// Entries of the memory that wait for the user's word.
    pub(crate) memory: PendingMemory,
    /// The files with instructions that the chat was given last.
    instruction_files: Mutex<Option<Arc<InstructionSet>>>,
    /// What the user was told last about settings that changed.
    told_settings: Mutex<Option<String>>,
    /// Decides about tool calls.
    pub(crate) approver: Arc<dyn Approver>,
    remembered: Mutex<Remembered>,
    remembered_changes: watch::Sender<()>,
    /// The descriptions of servers' tools have tainted the chat; a user who cleared that has seen it.
    has_described_tools: AtomicBool,
}

/// What a new [`Session`] is made of.
pub(crate) struct SessionParts {
    pub(crate) id: SessionId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspace: Arc<OpenWorkspace>,
    pub(crate) own_sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) roots: Arc<[PathBuf]>,
    pub(crate) state: State,
    pub(crate) subagents: mpsc::UnboundedSender<StartSubagent>,
    pub(crate) inherited: Option<Inherited>,
    pub(crate) approver: Arc<dyn Approver>,
}

/// A stored chat.
pub(crate) struct LoadedSession {
    pub(crate) state: State,
    /// Milliseconds since 1970.
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
}

/// Folds the journal of a chat; the state is empty where there is no such chat.
pub(crate) async fn load(store: &dyn Store, id: &SessionId) -> Result<LoadedSession, Failure> {
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

impl Session {
    pub(crate) fn new(parts: SessionParts) -> Self {
        let SessionParts { id, store, workspace, own_sources, roots, state, subagents, inherited, approver } =
            parts;
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
            workspace,
            own_sources,
            roots,
            closed: CancellationToken::new(),
            running: Mutex::default(),
            subagents,
            inherited,
            hooks_started: AtomicBool::new(false),
            written: WrittenPlace::default(),
            offered_tools: OfferedTools::default(),
            memory: PendingMemory::default(),
            instruction_files: Mutex::default(),
            told_settings: Mutex::default(),
            approver,
            remembered: Mutex::default(),
            remembered_changes: watch::Sender::new(()),
            has_described_tools: AtomicBool::new(false),
        }
    }

    /// A turn begins that this token stops.
    pub(crate) fn begin_turn(&self, turn: TurnId, cancel: CancellationToken) {
        *self.running() = Some((turn, cancel));
    }

    /// The turn is over, and its last facts are committed: a stop of it means nothing for what comes later.
    pub(crate) fn end_turn(&self, turn: TurnId) {
        let _ = self.running().take_if(|(running, _)| *running == turn);
        self.log.end_stop(turn);
    }

    /// Stops the running turn. Facts that wait for a store that is away are not waited for any longer.
    pub(crate) fn request_stop(&self) {
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
    pub(crate) fn commit(&self, facts: Vec<Fact>) -> PendingCommit {
        self.log.commit(facts)
    }

    /// See [`SessionLog::commit_with`].
    pub(crate) fn commit_with(&self, make: impl FnOnce(&State) -> Vec<Fact>) -> PendingCommit {
        self.log.commit_with(make)
    }

    pub(crate) fn state(&self) -> StateGuard<'_> {
        self.log.state()
    }

    /// What a person allowed or refused for the rest of the session. A subagent shares it with its parent.
    pub(crate) fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.root().remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Questions that are open look at it again.
    pub(crate) fn change_remembered(&self, change: impl FnOnce(&mut Remembered)) {
        change(&mut self.remembered());
        self.root().remembered_changes.send_replace(());
    }

    /// Tells of every change of what is remembered.
    pub(crate) fn remembered_changes(&self) -> watch::Receiver<()> {
        self.root().remembered_changes.subscribe()
    }

    /// The chat that a person began: this one, or that of a subagent's outermost parent.
    fn root(&self) -> &Self {
        self.inherited.as_ref().map_or(self, |inherited| inherited.parent.root())
    }

    /// Whether asks are answered yes by themselves; for a subagent its parent's chat says so.
    pub(crate) fn is_trusted(&self) -> bool {
        match &self.inherited {
            Some(inherited) => inherited.parent.is_trusted(),
            None => self.state().settings().trust.unwrap_or(false),
        }
    }

    /// Marks the chat with what it reads.
    pub(crate) fn add_taint(&self, taint: &Taint) {
        if taint.is_empty() {
            return;
        }
        self.commit_with(|state| {
            let mut merged = state.taint().clone();
            merged.merge(taint);
            let is_new = merged != *state.taint();
            is_new.then_some(Fact::TaintChanged { taint: merged }).into_iter().collect()
        });
        // What a subagent reads comes back to its parent in the answer.
        if let Some(inherited) = &self.inherited {
            inherited.parent.add_taint(taint);
        }
    }

    /// What this chat has read, and for a subagent also its parent, which wrote the task.
    pub(crate) fn taint(&self) -> Taint {
        let mut taint = self.state().taint().clone();
        if let Some(inherited) = &self.inherited {
            taint.merge(&inherited.parent.taint());
        }
        taint
    }

    /// The model reads the descriptions of the tools that it is offered; those of servers are text of strangers.
    pub(crate) fn add_description_taint(&self, tools: &[Arc<dyn Tool>]) {
        let Some(tool) = tools.iter().find(|tool| tool.spec().origin == Origin::Mcp) else { return };
        if !self.has_described_tools.swap(true, Ordering::Relaxed) {
            let mut taint = Taint::default();
            taint.add_source(format!("tool descriptions of the MCP server {}", tool.spec().server));
            self.add_taint(&taint);
        }
    }

    pub(crate) fn behavior(&self) -> String {
        self.state().settings().behavior.clone().unwrap_or_default()
    }

    /// The user's own prompts for the behavior in force.
    pub(crate) fn prompts(&self) -> &config::Prompts {
        self.workspace.settings.prompts(&self.behavior())
    }

    /// Whether an agent of another chat works here. Its id says so.
    pub(crate) fn is_subagent(&self) -> bool {
        is_subagent(&self.id)
    }

    pub(crate) fn new_item(&self, turn: TurnId, step: u32, kind: ItemKind) -> Item {
        Item { id: self.log.next_item(), turn, step, parent: None, kind }
    }

    pub(crate) fn instruction_files(&self) -> Option<Arc<InstructionSet>> {
        self.instruction_files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_instruction_files(&self, set: &InstructionSet) {
        let mut known = self.instruction_files.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(Arc::new(set.clone()));
    }

    /// Tells the user, once, that settings have changed which this chat does not follow.
    pub(crate) fn mention_changed_settings(&self) {
        let changed = self.workspace.texts.changed_settings();
        let mut told = self.told_settings.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == changed {
            return;
        }
        told.clone_from(&changed);
        drop(told);
        if let Some(text) = changed {
            self.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
        }
    }

    /// Shows a status line; it is not kept.
    pub(crate) fn show_progress(&self, text: impl Into<String>) {
        self.log.publish(EventBody::Progress { text: text.into() });
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        self.workspace.sources.iter().chain(&self.own_sources)
    }

    /// The servers of the workspace and those that the client brought along.
    pub(crate) fn servers(&self) -> Vec<ToolServer> {
        self.sources().flat_map(|source| source.servers()).collect()
    }

    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.sources().flat_map(|source| source.tools()).collect()
    }
}
