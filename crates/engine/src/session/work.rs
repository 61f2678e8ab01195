//! What the layers of the engine do for the actor of a session: they open it, begin its turns, and clean up after it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use config::HookEvent;
use domain::command::{Accepted, Command, SessionSettings, UserPrompt};
use domain::item::ItemKind;
use domain::{CancellationToken, Failure, ItemId, Outcome, Reply, SessionId, Store, TurnId};
use futures_util::future::join_all;
use session::lease::is_at_risk;
use session::refusal::refuse;
use session::state::State;
use session::{AttachedFrontend, SessionCore, SessionParts, SessionWork};

use super::start::{Opening, own_sources, own_workspace};
use super::{Actor, EndedSubagent, KnownInstructions, Session};
use crate::families::KnownProfile;
use crate::memory::PendingMemory;
use crate::workspace::Workspace;
use crate::{behavior, hooks, slash, tool_calls, turn, undo};

impl SessionWork for Session {
    type Parts = Opening;

    async fn open(
        id: SessionId,
        store: Arc<dyn Store>,
        state: State,
        roots: Vec<PathBuf>,
        parts: Opening,
    ) -> Result<Arc<Self>, Failure> {
        let Opening { live, subagents, workspaces, decisions, source, workspace, servers, subagent } = parts;
        let (inherited, ended) = subagent.unzip();
        let roots: Arc<[PathBuf]> = if roots.is_empty() { workspace.roots.clone() } else { roots }.into();
        let own_sources = own_sources(source, servers, workspace.roots.clone()).await?;
        let workspace = own_workspace(workspace, &roots, inherited.is_some(), &workspaces).await?;
        let session = Arc::new(Self {
            core: SessionCore::new(SessionParts { id, store, roots, state }),
            workspace,
            own_sources,
            live: live.clone(),
            subagents,
            inherited,
            ended: Mutex::new(ended),
            hooks_started: AtomicBool::new(false),
            memory: PendingMemory::default(),
            instructions: KnownInstructions::default(),
            profile: KnownProfile::default(),
            told_settings: Mutex::default(),
            decisions,
            has_described_tools: AtomicBool::new(false),
        });
        live.add(&session);
        Ok(session)
    }

    fn check_prompt(&self) -> Result<(), Failure> {
        if self.is_subagent() && self.inherited.is_none() {
            let failure = Failure::user("This chat belongs to a subagent that has ended.");
            return Err(failure.hint("Continue in the chat that started it."));
        }
        Ok(())
    }

    async fn begin_turn(
        actor: &mut Actor,
        frontend: Option<AttachedFrontend>,
        mut prompt: UserPrompt,
        reply: Reply<Accepted>,
    ) {
        let change = std::mem::take(&mut prompt.change);
        if !change.is_empty()
            && let Err(failure) = actor.configure(change).await
        {
            let _ = reply.send(Err(failure));
            return;
        }
        actor.session.account.set_gate(prompt.limits.gate.clone());
        let id = actor.next_turn();
        let recorded = actor.session.decisions.message(id);
        let command = match recorded {
            None => slash::parse(&actor.session, &prompt.text),
            // It is known what the model was sent.
            Some(_) => None,
        };
        match command {
            Some(command) => slash::run(actor, id, frontend, prompt.text, command, reply),
            None => turn::start::begin(actor, id, frontend, prompt, recorded, reply),
        }
    }

    fn steered_text(&self, text: String) -> Result<String, Failure> {
        slash::steered(self, text)
    }

    fn turn_ended(&self, outcome: Outcome) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            let _ = ended.send(EndedSubagent::new(outcome, &self.state()));
        }
    }

    fn settle_settings(&self, change: &mut SessionSettings, behavior: Option<&str>) -> Result<(), Failure> {
        behavior::settle(change, behavior, &self.workspace.settings)
    }

    async fn roll_back(&self, first: TurnId, keep: Option<Option<ItemId>>) -> Result<(), Failure> {
        undo::roll_back(self, first, keep).await
    }

    /// Subagents work in the files of their parent, which finishes it.
    async fn finish_interrupted(&self) {
        if self.inherited.is_none()
            && let Err(failure) = undo::finish_rollback(self).await
        {
            tracing::warn!(session = %self.id, %failure, "an interrupted rollback could not be finished");
        }
        tool_calls::settle_interrupted(self).await;
    }

    async fn forget(&self) {
        join_all(self.sources().map(|source| source.forget(&self.id))).await;
        undo::forget(self).await;
        if let Some(memory) = self.workspace.texts.memory() {
            memory.forget_chat(self.id.as_str());
        }
        self.run_chat_end_hooks();
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the router sends no other command here")]
    fn answer(&self, command: Command) {
        match command {
            Command::SlashCommands { query, reply, .. } => {
                let _ = reply.send(Ok(slash::list(Some(self), &self.workspace, &query)));
            }
            Command::Servers { reply, .. } => drop(reply.send(Ok(self.servers()))),
            Command::Agent { choice, reply, .. } => match self.live.find(&self.id) {
                Some(session) => drop(tokio::spawn(async move {
                    let offers = match turn::start::choose_model(&session) {
                        Ok(model) => turn::agent_offers(&session, model, choice).await,
                        Err(failure) => Err(failure),
                    };
                    let _ = reply.send(offers);
                })),
                None => drop(reply.send(Err(Failure::closed()))),
            },
            other => refuse(other, Failure::internal("A chat does not take this command.")),
        }
    }

    async fn stop_jobs(&self) {
        for source in self.sources() {
            source.stop_jobs_of(&self.id).await;
        }
    }

    /// Servers of the workspace work for all its chats: they end with the last one whose lease is safe.
    async fn suspend_programs(&self) {
        let same_workspace =
            |other: &Arc<Self>| std::ptr::eq::<Workspace>(&**other.workspace, &**self.workspace);
        let is_shared = self.live.all().iter().any(|other| same_workspace(other) && !is_at_risk(other));
        let shared: &[_] = if is_shared { &[] } else { &self.workspace.sources };
        join_all(self.own_sources.iter().chain(shared).map(|source| source.suspend())).await;
    }

    fn resume_programs(&self) {
        self.sources().for_each(|source| source.resume());
    }

    async fn end_programs(&self) {
        join_all(self.own_sources.iter().map(|source| source.shutdown())).await;
    }
}

impl Session {
    /// They may take their time: the chat is gone already.
    fn run_chat_end_hooks(&self) {
        if !hooks::has(&self.workspace, HookEvent::ChatEnd) {
            return;
        }
        let (workspace, input) = (self.workspace.clone(), hooks::ended_chat(self));
        tokio::spawn(async move {
            hooks::run_outside(&workspace, HookEvent::ChatEnd, input, CancellationToken::new()).await;
        });
    }
}

impl EndedSubagent {
    fn new(outcome: Outcome, state: &State) -> Self {
        let text = |kind: &ItemKind| {
            let ItemKind::AgentMessage { text, .. } = kind else { return None };
            (!text.trim().is_empty()).then(|| text.clone())
        };
        let answer = state.items().iter().rev().find_map(|item| text(&item.kind)).unwrap_or_default();
        let steps = state.items().iter().map(|item| item.step).max().unwrap_or(0);
        Self { outcome, answer, steps }
    }
}
