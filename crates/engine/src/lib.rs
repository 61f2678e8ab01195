//! The engine: sessions, turns, tool calls, approvals, commands. Commands come in by one queue, events leave by others.
//!
//! Owns what happens and in which order. Knows models, tools, files and the store only by domain's traits, and no
//! protocol at all. Invariant: every fact is in the journal before a front-end sees it; streamed text follows within a
//! quarter of a second.

#![warn(unreachable_pub)]

mod behavior;
mod catalog;
mod chat_list;
mod completion;
mod context_use;
mod decisions;
mod destruction;
pub mod families;
mod hooks;
pub mod instruction_files;
mod jobs;
pub mod memory;
mod own_text;
mod paid_call;
mod queries;
mod recall;
pub mod recorded;
mod router;
mod rules;
mod session;
mod skills;
mod slash;
mod spending;
mod subagents;
mod title;
mod tool_calls;
mod tool_search;
mod turn;
mod undo;
mod undo_log;
mod web_search;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use domain::event::CatalogKind;
use domain::link::Engine;
use domain::{Peers, Store};
use tokio::sync::mpsc;

pub use crate::session::{LiveSessions, is_subagent};
pub use crate::undo_log::UndoLog;
pub use ::session::state::State;
use decisions::ByRules;
pub use decisions::{CommandOutput, Decisions};
pub use hooks::{HookExit, HookRunner};
pub use instruction_files::{LIMIT as INSTRUCTIONS_LIMIT, instruction_file};
pub use spending::record_of_today;
pub use tool_calls::approval;
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
    start_router(store, source, changes, Some(peers), Arc::new(ByRules))
}

/// The same for a test that looks at the states of the sessions.
pub fn start_observed(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
) -> (Engine, LiveSessions) {
    start_router(store, source, changes, None, Arc::new(ByRules))
}

/// The same with other decisions than those of the user's rules and settings: those that were recorded, for instance.
pub fn start_with_decisions(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
    decisions: Arc<dyn Decisions>,
) -> Engine {
    start_router(store, source, changes, None, decisions).0
}

fn start_router(
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    changes: CatalogChangesReceiver,
    peers: Option<Arc<dyn Peers>>,
    decisions: Arc<dyn Decisions>,
) -> (Engine, LiveSessions) {
    let (engine, commands) = domain::link::engine();
    let live = LiveSessions::default();
    tokio::spawn(router::Router::new(store, source, live.clone(), peers, decisions).run(commands, changes.0));
    (engine, live)
}
