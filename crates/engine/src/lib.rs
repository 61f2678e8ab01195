//! The engine: sessions, turns, tool calls, approvals, commands. Commands come in by one queue, events leave by others.
//!
//! Owns what happens and in which order. Knows models, tools, files and the store only by domain's traits, and no
//! protocol at all. Invariant: every fact is in the journal before a front-end sees it; streamed text follows within a
//! quarter of a second.

#![warn(unreachable_pub)]

mod attached_frontend;
mod behavior;
mod completion;
mod context_use;
mod destruction;
mod hooks;
pub mod instruction_files;
mod jobs;
pub mod memory;
mod paid_call;
mod queries;
mod recall;
mod refusal;
pub mod replay;
mod router;
mod rules;
mod session;
mod skills;
mod slash;
mod spending;
mod subagents;
mod tool_calls;
mod tool_search;
mod turn;
mod undo;
mod web_search;
mod workspace;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::event::CatalogKind;
use domain::link::Engine;
use domain::{Peers, SessionId, Store};
use tokio::sync::mpsc;

pub use crate::undo::UndoLog;
pub use hooks::{HookExit, HookRunner};
pub use instruction_files::{LIMIT as INSTRUCTIONS_LIMIT, instruction_file};
use session::Session;
pub use session::is_subagent;
pub use session::state::State;
pub use spending::record_of_today;
pub use tool_calls::approval;
use tool_calls::{Approver, Policy};
pub use workspace::{
    NamedText, ProviderAccounts, Skill, Texts, Workspace, WorkspaceSource, Worktree, Worktrees,
};

/// The longest time that `Shutdown` takes. The program waits a little longer before it ends.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(600);

/// What `sessionEnd` hooks may take beyond that, where there are any.
pub const SESSION_END_HOOKS_TIMEOUT: Duration = Duration::from_secs(5);

/// Tells the engine that a list clients show has changed.
#[derive(Clone)]
pub struct CatalogChanges(mpsc::UnboundedSender<CatalogKind>);

impl CatalogChanges {
    pub fn publish(&self, kind: CatalogKind) {
        let _ = self.0.send(kind);
    }
}

/// The receiving end of [`CatalogChanges`], handed to [`start`].
pub struct CatalogChangesReceiver(mpsc::UnboundedReceiver<CatalogKind>);

pub fn changes() -> (CatalogChanges, CatalogChangesReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (CatalogChanges(sender), CatalogChangesReceiver(receiver))
}

/// Starts the engine on the current runtime. It ends when every handle to it is dropped.
pub fn start(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
) -> Engine {
    start_observed(store, source, changes).0
}

/// The same for an engine whose chats other processes may attach to, and that attaches to theirs.
pub fn start_with_peers(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
    peers: Arc<dyn Peers>,
) -> (Engine, LiveSessions) {
    start_router(store, source, changes, Some(peers), Arc::new(Policy))
}

/// The same for a test that looks at the states of the sessions.
pub fn start_observed(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
) -> (Engine, LiveSessions) {
    start_router(store, source, changes, None, Arc::new(Policy))
}

/// The same with other decisions about tool calls than those of the user's rules: those that a replay has recorded.
fn start_replay(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
    approver: Arc<dyn Approver>,
) -> Engine {
    start_router(store, source, changes, None, approver).0
}

fn start_router(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
    peers: Option<Arc<dyn Peers>>,
    approver: Arc<dyn Approver>,
) -> (Engine, LiveSessions) {
    let (engine, commands) = domain::link::engine();
    let live = LiveSessions::default();
    tokio::spawn(router::Router::new(store, source, live.clone(), peers, approver).run(commands, changes.0));
    (engine, live)
}

/// The sessions that are loaded.
#[derive(Clone, Default)]
pub struct LiveSessions(Arc<Mutex<HashMap<SessionId, Weak<Session>>>>);

impl LiveSessions {
    fn add(&self, session: &Arc<Session>) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, known| known.strong_count() > 0);
        sessions.insert(session.id.clone(), Arc::downgrade(session));
    }

    /// A copy of the state of a session.
    pub fn state(&self, session: &SessionId) -> Option<State> {
        let state = self.find(session)?.state().clone();
        Some(state)
    }

    fn title(&self, session: &SessionId) -> Option<String> {
        let session = self.find(session)?;
        session.state().settings().title.clone()
    }

    fn all(&self) -> Vec<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    fn find(&self, session: &SessionId) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(session).and_then(Weak::upgrade)
    }
}
