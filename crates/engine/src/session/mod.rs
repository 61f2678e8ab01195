//! One chat as the layers of the engine hold it: the session itself, and what turns, tools, hooks and subagents keep of it.
//!
//! Must not know protocols, nor how turns run. Invariant: nothing here is in the journal; it is gone with the process.

pub(crate) mod start;
mod work;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use domain::command::{Accepted, SessionSettings, TurnLimits, UserPrompt};
use domain::event::{Fact, Level, Notice};
use domain::ids::SUBAGENT_PREFIX;
use domain::taint::Taint;
use domain::tool::{Tool, ToolServer, ToolSource};
use domain::tool_call::Origin;
use domain::{ItemId, Outcome, Reply, SessionId, TurnId};
use session::state::State;
use session::{AttachedFrontend, Message, Remembered, SessionCore};
use tokio::sync::{mpsc, oneshot, watch};

use crate::decisions::Decisions;
use crate::families::KnownProfile;
use crate::instruction_files::{InstructionSet, Looks};
use crate::memory::PendingMemory;
use crate::workspace::{NamedText, OpenWorkspace, Workspace};

/// The actor of a chat.
pub(crate) type Actor = session::Actor<Session>;

/// Whether an agent of another chat works in this chat. Its id says so.
pub fn is_subagent(id: &SessionId) -> bool {
    id.as_str().starts_with(SUBAGENT_PREFIX)
}

pub(crate) struct Session {
    core: SessionCore,
    pub(crate) workspace: Arc<OpenWorkspace>,
    /// Tool servers that live with this session.
    pub(crate) own_sources: Vec<Arc<dyn ToolSource>>,
    /// All chats that are loaded.
    live: LiveSessions,
    /// Starts subagents.
    pub(crate) subagents: mpsc::UnboundedSender<StartSubagent>,
    /// Set in the chat of a subagent that runs.
    pub(crate) inherited: Option<Inherited>,
    /// The parent of a subagent waits for its end.
    ended: Mutex<Option<oneshot::Sender<EndedSubagent>>>,
    /// `chatStart` hooks have run in this process.
    pub(crate) hooks_started: AtomicBool,
    /// Entries of the memory that wait for the user's word.
    pub(crate) memory: PendingMemory,
    pub(crate) instructions: KnownInstructions,
    pub(crate) profile: KnownProfile,
    /// What the user was told last about settings that changed.
    told_settings: Mutex<Option<String>>,
    /// Decides about tool calls and other choices.
    pub(crate) decisions: Arc<dyn Decisions>,
    /// The descriptions of servers' tools have tainted the chat; a user who cleared that has seen it.
    has_described_tools: AtomicBool,
}

impl Deref for Session {
    type Target = SessionCore;

    fn deref(&self) -> &SessionCore {
        &self.core
    }
}

/// What is before the history, and the rules that the model reads later.
#[derive(Clone, Default)]
pub(crate) struct Instructions {
    pub(crate) system: Vec<Arc<str>>,
    pub(crate) fetched_rules: Arc<[NamedText]>,
}

/// The instructions of a chat, made once so that the provider's cache holds.
#[derive(Clone, Default)]
pub(crate) struct KnownInstructions(Arc<Mutex<Option<Known>>>);

/// The instructions that were made last.
pub(crate) struct Known {
    pub(crate) key: InstructionsKey,
    pub(crate) instructions: Instructions,
    /// The files as the model has them.
    pub(crate) files: Arc<InstructionSet>,
    /// What the disk had when they were read last.
    pub(crate) looks: Looks,
}

/// Behavior, model and whether it uses tools: rules may be for some models only.
pub(crate) type InstructionsKey = (String, String, bool);

impl KnownInstructions {
    /// They are made anew at their next use.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    pub(crate) fn is_forgotten(&self) -> bool {
        self.lock().is_none()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a subagent has of the turn that started it.
pub(crate) struct Inherited {
    pub(crate) parent: Arc<Session>,
    pub(crate) limits: TurnLimits,
    /// What the parent's chat had cost before its turn.
    pub(crate) cost_before: f64,
    /// Set: the person who answers questions sees the parent's chat alone.
    pub(crate) relay: Option<Relay>,
}

/// Where the questions of a subagent go.
#[derive(Clone)]
pub(crate) struct Relay {
    pub(crate) turn: TurnId,
    /// The call that started the subagent.
    pub(crate) call: ItemId,
    pub(crate) agent: String,
}

/// A request to the router.
pub(crate) struct StartSubagent {
    pub(crate) id: SessionId,
    pub(crate) inherited: Inherited,
    pub(crate) frontend: Option<AttachedFrontend>,
    pub(crate) settings: SessionSettings,
    /// Where it works; `None`: where its parent does.
    pub(crate) workspace: Option<Arc<Workspace>>,
    pub(crate) prompt: UserPrompt,
    pub(crate) accepted: Reply<Accepted>,
    pub(crate) ended: oneshot::Sender<EndedSubagent>,
    /// The router hands the chat's mailbox back.
    pub(crate) started: oneshot::Sender<mpsc::UnboundedSender<Message>>,
}

/// What is left of a subagent for its parent.
pub(crate) struct EndedSubagent {
    pub(crate) outcome: Outcome,
    pub(crate) answer: String,
    pub(crate) steps: u32,
}

impl Session {
    /// What a person allowed or refused for the rest of the session. A subagent shares it with its parent.
    pub(crate) fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.root().approvals.lock()
    }

    /// Questions that are open look at it again.
    pub(crate) fn change_remembered(&self, change: impl FnOnce(&mut Remembered)) {
        self.root().approvals.change(change);
    }

    /// Tells of every change of what is remembered.
    pub(crate) fn remembered_changes(&self) -> watch::Receiver<()> {
        self.root().approvals.changes()
    }

    /// The chat that a person began: this one, or that of a subagent's outermost parent.
    pub(crate) fn root(&self) -> &Self {
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

/// The sessions that are loaded.
#[derive(Clone, Default)]
pub struct LiveSessions(Arc<Mutex<HashMap<SessionId, Weak<Session>>>>);

impl LiveSessions {
    pub(crate) fn add(&self, session: &Arc<Session>) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, known| known.strong_count() > 0);
        sessions.insert(session.id.clone(), Arc::downgrade(session));
    }

    /// A copy of the state of a session.
    pub fn state(&self, session: &SessionId) -> Option<State> {
        let state = self.find(session)?.state().clone();
        Some(state)
    }

    pub(crate) fn title(&self, session: &SessionId) -> Option<String> {
        let session = self.find(session)?;
        session.state().settings().title.clone()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn find(&self, session: &SessionId) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(session).and_then(Weak::upgrade)
    }
}
