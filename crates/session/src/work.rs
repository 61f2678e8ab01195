//! What the layers above do in a session. The actor calls them here and knows nothing else of them.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use domain::command::{Accepted, Command, SessionSettings, UserPrompt};
use domain::{Failure, ItemId, Outcome, Reply, SessionId, Store, TurnId};

use crate::actor_data::Actor;
use crate::attached_frontend::AttachedFrontend;
use crate::session_core::SessionCore;
use crate::state::State;

/// A session as the layers above hold it. It has everything of a [`SessionCore`].
pub trait SessionWork: Deref<Target = SessionCore> + Send + Sync + Sized + 'static {
    /// What the layers above make their part of a session of.
    type Parts: Send + 'static;

    /// Opens a session whose journal was read. `roots`: its folders; empty where it has none of its own.
    fn open(
        id: SessionId,
        store: Arc<dyn Store>,
        state: State,
        roots: Vec<PathBuf>,
        parts: Self::Parts,
    ) -> impl Future<Output = Result<Arc<Self>, Failure>> + Send;

    /// Whether this chat takes prompts at all.
    fn check_prompt(&self) -> Result<(), Failure>;

    /// Begins a turn. No turn runs, and this process may commit.
    fn begin_turn(
        actor: &mut Actor<Self>,
        frontend: Option<AttachedFrontend>,
        prompt: UserPrompt,
        reply: Reply<Accepted>,
    ) -> impl Future<Output = ()> + Send;

    /// What a running turn is told for a line that the user typed meanwhile.
    fn steered_text(&self, text: String) -> Result<String, Failure>;

    /// The last turn has ended, and its last facts are committed.
    fn turn_ended(&self, outcome: Outcome);

    /// Checks a change of the settings and completes it.
    fn settle_settings(&self, change: &mut SessionSettings, behavior: Option<&str>) -> Result<(), Failure>;

    /// Takes back what was done since this turn began. `keep`: set where the history is shortened with it, up to this item.
    fn roll_back(
        &self,
        first: TurnId,
        keep: Option<Option<ItemId>>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The chat of a process that died goes on: finishes what it had begun beside the journal.
    fn finish_interrupted(&self) -> impl Future<Output = ()> + Send;

    /// The chat was deleted.
    fn forget(&self) -> impl Future<Output = ()> + Send;

    /// Answers a command that the actor does not know.
    fn answer(&self, command: Command);

    /// The lease may end: what works for this chat in the background is stopped.
    fn stop_jobs(&self) -> impl Future<Output = ()> + Send;

    /// The same for programs that can be started again.
    fn suspend_programs(&self) -> impl Future<Output = ()> + Send;

    /// The lease is safe again.
    fn resume_programs(&self);

    /// The chat closes: the programs that live with it end.
    fn end_programs(&self) -> impl Future<Output = ()> + Send;
}
