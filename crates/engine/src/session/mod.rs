//! What a session's actor, its running turn and its tools hold in common.

pub(crate) mod actor;
pub(crate) mod audience;
pub(crate) mod fork;
pub(crate) mod journal;
pub mod state;
pub(crate) mod title;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::command::SessionSettings;
use domain::event::{EventBody, SessionUsage};
use domain::item::{Item, ItemKind};
use domain::tool::{Tool, ToolSource};
use domain::{ItemId, SessionId, Store, TurnId};
use tokio::task::JoinHandle;

use crate::session::audience::Audience;
use crate::session::journal::Journal;
use crate::session::state::History;
use crate::spending::Prefix;
use crate::tool_calls::approval::Remembered;
use crate::tool_calls::asks::Asks;
use crate::workspace::Workspace;

pub struct Session {
    pub id: SessionId,
    pub store: Arc<dyn Store>,
    pub journal: Journal,
    pub audience: Audience,
    pub asks: Asks,
    pub workspace: Arc<Workspace>,
    /// Tool servers that live with this session.
    pub own_sources: Vec<Arc<dyn ToolSource>>,
    pub roots: Arc<[PathBuf]>,
    state: Mutex<LiveState>,
    items: AtomicU64,
    asks_made: AtomicU64,
}

/// What changes while a turn runs and others may read.
#[derive(Default)]
pub struct LiveState {
    pub settings: SessionSettings,
    pub usage: SessionUsage,
    pub remembered: Remembered,
    /// Said by the user while the turn runs.
    pub steer: Option<String>,
    pub prefix: Prefix,
    /// The last cost on its way to the day's account.
    pub charging: Option<JoinHandle<()>>,
}

impl Session {
    #[expect(clippy::too_many_arguments, reason = "the one place where a session's belongings are gathered")]
    pub fn new(
        id: SessionId,
        store: Arc<dyn Store>,
        journal: Journal,
        audience: Audience,
        workspace: Arc<Workspace>,
        own_sources: Vec<Arc<dyn ToolSource>>,
        roots: Arc<[PathBuf]>,
        history: &History,
    ) -> Self {
        let state = LiveState {
            settings: history.settings.clone(),
            usage: history.usage.clone(),
            ..LiveState::default()
        };
        Self {
            id,
            store,
            journal,
            audience,
            asks: Asks::default(),
            workspace,
            own_sources,
            roots,
            state: Mutex::new(state),
            items: AtomicU64::new(history.next_item),
            asks_made: AtomicU64::new(history.next_ask),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn next_item(&self) -> u64 {
        self.items.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn next_ask(&self) -> u64 {
        self.asks_made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Another process wrote on: ids must not be used again.
    pub fn skip_ids(&self, history: &History) {
        self.items.fetch_max(history.next_item, Ordering::Relaxed);
        self.asks_made.fetch_max(history.next_ask, Ordering::Relaxed);
    }

    pub fn item(&self, turn: TurnId, step: u32, kind: ItemKind) -> Item {
        Item { id: ItemId(self.next_item()), turn, step, parent: None, kind }
    }

    /// A status line for whoever watches; not kept.
    pub fn progress(&self, text: String) {
        self.journal.publish(EventBody::Progress { text });
    }

    pub fn sources(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        self.workspace.sources.iter().chain(&self.own_sources)
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.sources().flat_map(|source| source.tools()).collect()
    }
}
