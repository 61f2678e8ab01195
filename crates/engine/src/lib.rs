//! The engine: sessions, turns, tool calls, approvals, commands. Two queues and no idea who listens.
//!
//! Owns what happens and in which order. Knows models, tools, files and the store only by domain's traits, and no
//! protocol at all. Invariant: everything told to a front-end is in the journal first, text of a running answer
//! excepted by at most a quarter of a second.

mod attached_frontend;
pub mod behavior;
mod completion;
mod refusal;
mod router;
mod session;
mod slash;
mod spending;
mod tool_calls;
mod turn;
pub mod workspace;

use std::sync::Arc;

use domain::Store;
use domain::event::CatalogKind;
use domain::link::Engine;
use tokio::sync::mpsc;

pub use session::state;
pub use tool_calls::approval;
pub use workspace::{NamedText, Texts, Workspace, WorkspaceSource};

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
    let (engine, commands) = domain::link::engine();
    tokio::spawn(router::Router::new(store, source).run(commands, changes.0));
    engine
}
