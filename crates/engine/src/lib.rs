//! The engine: sessions, turns, tool calls, approvals, commands. Two queues and no idea who listens.
//!
//! Owns what happens and in which order. Knows models, tools, files and the store only by domain's traits, and no
//! protocol at all. Invariant: everything told to a front-end is in the journal first, text of a running answer
//! excepted by at most a quarter of a second.

mod answer;
pub mod approval;
mod asks;
mod audience;
pub mod behavior;
mod calls;
mod commands;
mod compaction;
mod complete;
mod costs;
mod desk;
mod fork;
mod front;
pub mod history;
mod instructions;
mod journal;
mod loops;
mod port;
mod prompting;
mod refusal;
mod session;
mod shared;
mod spending;
pub mod surroundings;
mod title;
mod turn;

use std::sync::Arc;

use domain::Store;
use domain::event::CatalogKind;
use domain::link::Engine;
use tokio::sync::mpsc;

pub use surroundings::{NamedText, Surroundings, SurroundingsSource, Texts};

/// Tells the engine that a list clients show has changed.
#[derive(Clone)]
pub struct Changes(mpsc::UnboundedSender<CatalogKind>);

impl Changes {
    pub fn tell(&self, kind: CatalogKind) {
        let _ = self.0.send(kind);
    }
}

/// The receiving end of [`Changes`], handed to [`start`].
pub struct ChangesReceiver(mpsc::UnboundedReceiver<CatalogKind>);

pub fn changes() -> (Changes, ChangesReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Changes(sender), ChangesReceiver(receiver))
}

/// Starts the engine on the current runtime. It ends when every handle to it is dropped.
pub fn start(store: Arc<dyn Store>, source: Arc<dyn SurroundingsSource>, changes: ChangesReceiver) -> Engine {
    let (engine, commands) = domain::link::engine();
    tokio::spawn(desk::Desk::new(store, source).run(commands, changes.0));
    engine
}
