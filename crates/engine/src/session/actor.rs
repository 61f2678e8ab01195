//! The actor of one chat: handles its commands in order and runs one turn at a time.
//!
//! Must not know models or tools. Invariants: every turn ends with `TurnEnded`, and with it everything that is open in
//! it, even after a panic; a command never waits for a model, a tool or a person.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::HookEvent;
use domain::command::{Accepted, Command, RollbackScope, SessionInfo, SessionSettings, UserPrompt};
use domain::event::{Fact, SessionOpened};
use domain::queue::EventSender;
use domain::{Abilities, CancellationToken, Failure, ItemId, Outcome, Peers, RemoteChat, Reply, TurnId};
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};

use super::ending::Ending;
use super::lease::{LeaseState, next_change, taken};
use super::remote::remote_event;
use super::start::{Create, SessionDeps, Start};
use super::{LoadedSession, Session, SessionParts, load};
use crate::attached_frontend::AttachedFrontend;
use crate::hooks;
use crate::refusal::{refuse, reject_all};
use crate::router::workspaces::own_workspace;
use crate::slash;
use crate::subagents::EndedSubagent;
use crate::turn::instructions::Instructions;
use crate::turn::start;
use crate::{LiveSessions, behavior};

/// What a turn may take to stop at a shutdown; then it is aborted.
pub(crate) const TURN_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(250);
/// What the servers of one session may take to end.
const SERVERS_END_TIMEOUT: Duration = Duration::from_secs(2);

/// A message to a session's actor.
pub(crate) struct Message {
    pub(crate) frontend: Option<AttachedFrontend>,
    pub(crate) command: Command,
}

pub(crate) fn spawn(start: Start) -> mpsc::UnboundedSender<Message> {
    let (sender, mailbox) = mpsc::unbounded_channel();
    tokio::spawn(run(start, mailbox));
    sender
}

pub(crate) async fn run(start: Start, mut mailbox: mpsc::UnboundedReceiver<Message>) {
    let returned = start.deps.returned.clone();
    let mut actor = match Actor::load(start).await {
        Ok(actor) => actor,
        Err(failure) => return reject_all(mailbox, &failure).await,
    };
    loop {
        tokio::select! {
            biased;
            ended = turn_end(&mut actor.turn) => actor.turn_ended(ended),
            message = mailbox.recv() => match message {
                Some(message) => {
                    if let ControlFlow::Break(ending) = actor.handle(message).await {
                        actor.end().await;
                        // The receiver of the reply may open the chat again at once, with a new actor.
                        mailbox.close();
                        return ending.finish(mailbox, &returned).await;
                    }
                }
                None => break,
            },
            received = remote_event(&mut actor.remote) => actor.handle_remote(received).await,
            () = next_change(&actor.session, actor.next_look), if actor.is_follower() => actor.follow().await,
        }
    }
    actor.end().await;
}

/// Never resolves while no turn runs.
async fn turn_end(turn: &mut Option<RunningTurn>) -> Result<Outcome, JoinError> {
    match turn {
        Some(running) => (&mut running.task).await,
        None => std::future::pending().await,
    }
}

struct RunningTurn {
    id: TurnId,
    cancel: CancellationToken,
    task: JoinHandle<Outcome>,
}

pub(crate) struct Actor {
    pub(crate) session: Arc<Session>,
    pub(crate) lease: LeaseState,
    pub(crate) updated_at: u64,
    pub(crate) peers: Option<Arc<dyn Peers>>,
    /// Set while another process holds the chat and this one works through it.
    pub(crate) remote: Option<RemoteChat>,
    /// The link to the holder is lost or could not be made yet: it is tried again.
    pub(crate) wants_remote: bool,
    /// When a chat of another process is looked at again.
    pub(crate) next_look: tokio::time::Instant,
    /// Why there is no link to the holder.
    pub(crate) unattached: Option<Failure>,
    /// What the person in front of this process can be asked.
    pub(crate) abilities: Option<Abilities>,
    /// Windows of other processes on this chat; they leave it with this actor.
    pub(super) visitors: Vec<EventSender>,
    created_at: u64,
    turn: Option<RunningTurn>,
    /// All loaded chats, until a task watches over the lease.
    pub(crate) unguarded: Option<LiveSessions>,
    /// The instructions by behavior, model and whether it uses tools, made once so that the provider's cache holds.
    pub(crate) instructions: Option<((String, String, bool), Instructions)>,
    /// The parent of a subagent waits for its end.
    ended: Option<oneshot::Sender<EndedSubagent>>,
}

impl Actor {
    async fn load(start: Start) -> Result<Self, Failure> {
        let Start { id, deps, workspace, own_sources, create, subagent } = start;
        let SessionDeps { store, live, peers, subagents, workspaces, approver, .. } = deps;
        let (inherited, ended) = subagent.unzip();
        let LoadedSession { state, created_at, updated_at } = load(store.as_ref(), &id).await?;
        let create = match create {
            _ if state.newest() > 0 => None,
            Some(create) => Some(create),
            None => {
                return Err(Failure::user(format!("There is no chat {id}."))
                    .hint("List the chats to see which exist."));
            }
        };
        let roots = create.as_ref().map_or(state.workspace(), |create| &create.workspace);
        let roots: Arc<[PathBuf]> = if roots.is_empty() { &workspace.roots } else { roots }.into();
        let workspace = own_workspace(workspace, &roots, inherited.is_some(), &workspaces).await?;
        let parts =
            SessionParts { id, store, workspace, own_sources, roots, state, subagents, inherited, approver };
        let session = Arc::new(Session::new(parts));
        live.add(&session);
        let mut actor = Self {
            session,
            lease: LeaseState::Unknown,
            updated_at,
            peers,
            remote: None,
            wants_remote: false,
            next_look: tokio::time::Instant::now(),
            unattached: None,
            abilities: None,
            visitors: Vec::new(),
            created_at,
            turn: None,
            unguarded: Some(live),
            instructions: None,
            ended,
        };
        if let Some(create) = create {
            actor.create(create).await?;
        }
        Ok(actor)
    }

    async fn create(&mut self, create: Create) -> Result<(), Failure> {
        self.take_lease().await?;
        let Create { workspace, settings, parent, client, facts } = create;
        let opened = Fact::SessionOpened(SessionOpened { workspace, settings, parent, client });
        let is_fork = !facts.is_empty();
        let committed = self.session.commit([vec![opened], facts].concat());
        // A fork is read at once. A new chat is not waited for: its first prompt shares its commit.
        if is_fork {
            committed.on_disk().await?;
        }
        self.created_at = now();
        self.updated_at = self.created_at;
        Ok(())
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "the router sends no other command here")]
    async fn handle(&mut self, message: Message) -> ControlFlow<Ending> {
        let Message { frontend, command } = message;
        let leaves = matches!(command, Command::Close { .. } | Command::Delete { .. } | Command::Detach);
        if let Some(frontend) = frontend.as_ref().filter(|_| !leaves) {
            self.welcome(frontend);
        }
        let Some(command) = self.forward(command).await else { return ControlFlow::Continue(()) };
        match command {
            Command::Open { reply, .. } | Command::Load { reply, .. } => {
                let recovered = self.recover().await;
                let _ = reply.send(recovered.map(|()| self.info()));
            }
            Command::Prompt { prompt, reply, .. } => self.prompt(frontend, prompt, reply).await,
            Command::Steer { text, reply, .. } => {
                let _ = reply.send(self.steer(text));
            }
            Command::Cancel { .. } => {
                if self.turn.is_some() {
                    self.session.request_stop();
                }
            }
            Command::Answer { ask, answer, reply, .. } => {
                let _ = reply.send(self.settle(frontend.as_ref(), ask, answer));
            }
            Command::Configure { change, reply, .. } => {
                let _ = reply.send(self.configure(change).await);
            }
            Command::Rollback { from, scope, reply, .. } => {
                let _ = reply.send(self.rollback(from, scope).await);
            }
            Command::Flag { change, reply, .. } => {
                let _ = reply.send(self.change_flag(change).await);
            }
            Command::SlashCommands { query, reply, .. } => {
                let _ = reply.send(Ok(slash::list(Some(&self.session), &self.session.workspace, &query)));
            }
            Command::Servers { reply, .. } => drop(reply.send(Ok(self.session.servers()))),
            Command::Close { reply, .. } => return self.close(frontend, reply).await,
            Command::Detach => return self.detach(frontend).await,
            Command::Delete { reply, .. } => match self.delete().await {
                Ok(()) => {
                    return ControlFlow::Break(Ending::Gone(Box::new(move || drop(reply.send(Ok(()))))));
                }
                refused => drop(reply.send(refused)),
            },
            Command::Shutdown { reply } => return self.shutdown(reply).await,
            other => refuse(other, Failure::internal("A chat does not take this command.")),
        }
        ControlFlow::Continue(())
    }

    /// One front-end leaves; with the last one the chat closes.
    async fn close(&mut self, frontend: Option<AttachedFrontend>, reply: Reply<()>) -> ControlFlow<Ending> {
        if let Some(frontend) = &frontend {
            self.session.audience.remove(frontend.id);
        }
        if !self.session.audience.is_empty() {
            let _ = reply.send(Ok(()));
            return ControlFlow::Continue(());
        }
        self.stop_turn(None).await;
        let flushed = self.session.log.flush().await;
        ControlFlow::Break(Ending::Closed(Box::new(move || drop(reply.send(flushed)))))
    }

    async fn detach(&mut self, frontend: Option<AttachedFrontend>) -> ControlFlow<Ending> {
        let removed = frontend.is_some_and(|frontend| self.session.audience.remove(frontend.id));
        if removed && self.session.audience.is_empty() {
            // A shutdown may follow at once, and it does not wait long.
            self.stop_turn(Some(TURN_SHUTDOWN_TIMEOUT)).await;
            return ControlFlow::Break(Ending::Closed(Box::new(|| ())));
        }
        ControlFlow::Continue(())
    }

    async fn shutdown(&mut self, reply: Reply<()>) -> ControlFlow<Ending> {
        self.stop_turn(Some(TURN_SHUTDOWN_TIMEOUT)).await;
        let flushed = self.session.log.flush().await;
        ControlFlow::Break(Ending::Gone(Box::new(move || drop(reply.send(flushed)))))
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let (newest, state) = (self.session.log.published(), self.session.state());
        SessionInfo {
            id: self.session.id.clone(),
            workspace: self.session.roots.to_vec(),
            settings: state.settings().clone(),
            usage: state.usage().clone(),
            newest,
            busy: if self.remote.is_some() { state.open_turn().is_some() } else { self.is_busy() },
            held_by: match &self.lease {
                LeaseState::HeldBy { holder, .. } if self.remote.is_none() => Some(holder.clone()),
                LeaseState::HeldBy { .. } | LeaseState::Held | LeaseState::Unknown => None,
            },
            attached_to: self.remote.as_ref().map(|remote| remote.holder.clone()),
            created_at: self.created_at,
            updated_at: self.updated_at,
            items: state.visible_items().count(),
            last_compaction: state.last_compaction(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    async fn prompt(
        &mut self,
        frontend: Option<AttachedFrontend>,
        prompt: UserPrompt,
        reply: Reply<Accepted>,
    ) {
        if let Some(running) = &self.turn {
            let failure = Failure::user(format!("This chat is still answering ({}).", running.id))
                .hint("Stop it, or wait until it is done.");
            let _ = reply.send(Err(failure));
            return;
        }
        if self.session.is_subagent() && self.session.inherited.is_none() {
            let failure = Failure::user("This chat belongs to a subagent that has ended.")
                .hint("Go on in the chat that started it.");
            let _ = reply.send(Err(failure));
            return;
        }
        if let Err(failure) = self.ensure_writable().await {
            let _ = reply.send(Err(failure));
            return;
        }
        start::begin(self, frontend, prompt, reply).await;
    }

    pub(crate) fn next_turn(&self) -> TurnId {
        TurnId(self.session.state().last_turn() + 1)
    }

    /// Runs the work of a turn that has started; its result ends the turn.
    pub(crate) fn run_turn(
        &mut self,
        id: TurnId,
        cancel: CancellationToken,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) {
        self.session.begin_turn(id, cancel.clone());
        self.turn = Some(RunningTurn { id, cancel, task: tokio::spawn(work) });
    }

    /// The chat is free again before the end is published, so that a prompt sent at once is not refused.
    fn turn_ended(&mut self, ended: Result<Outcome, JoinError>) {
        let Some(turn) = self.turn.take() else { return };
        self.updated_at = now();
        let outcome = ended.unwrap_or_else(|error| {
            if error.is_cancelled() {
                return Outcome::Stopped;
            }
            tracing::error!(session = %self.session.id, %error, "a turn panicked");
            let failure = Failure::internal("The turn broke off because of a mistake in Dragoman.")
                .hint("The log has the details; what was said is kept.");
            Outcome::Failed { failure }
        });
        self.session.steering.close();
        self.session.asks.cancel_all();
        self.session.commit_with(|state| state.closing_facts(outcome.clone()));
        self.session.end_turn(turn.id);
        if let Some(ended) = self.ended.take() {
            let _ = ended.send(EndedSubagent::new(outcome, &self.session.state()));
        }
    }

    fn steer(&mut self, text: Option<String>) -> Result<(), Failure> {
        match text {
            None => self.session.steering.withdraw(),
            Some(text) => {
                let text = slash::steered(&self.session, text)?;
                if !self.session.steering.add(text) {
                    return Err(Failure::user("Nothing runs in this chat.").hint("Send it as a prompt."));
                }
            }
        }
        Ok(())
    }

    pub(crate) async fn configure(
        &mut self,
        mut change: SessionSettings,
    ) -> Result<SessionSettings, Failure> {
        let current = self.session.state().settings().clone();
        behavior::settle(&mut change, current.behavior.as_deref(), &self.session.workspace.settings)?;
        let mut changed = current.clone();
        changed.apply(&change);
        if changed != current {
            self.ensure_writable().await?;
            self.session.commit(vec![Fact::SessionChanged { change }]).on_disk().await?;
        }
        Ok(self.session.state().settings().clone())
    }

    async fn rollback(&mut self, from: Option<ItemId>, scope: RollbackScope) -> Result<(), Failure> {
        if self.is_busy() {
            return Err(Failure::user("This chat is still answering.").hint("Stop it first."));
        }
        self.ensure_writable().await?;
        let (first, keep) = {
            let state = self.session.state();
            let at = match from {
                None => 0,
                Some(from) => state
                    .items()
                    .iter()
                    .position(|item| item.id == from)
                    .ok_or_else(|| Failure::user(format!("There is no {from} in this chat.")))?,
            };
            let first = state.items().get(at).map(|item| item.turn);
            (first, at.checked_sub(1).map(|last| state.items()[last].id))
        };
        if scope != RollbackScope::Files {
            self.session.account.break_prefix("rollback");
        }
        if let Some(first) = first.filter(|_| scope != RollbackScope::Messages) {
            let keep = (scope == RollbackScope::Both).then_some(keep);
            return crate::undo::roll_back(&self.session, first, keep).await;
        }
        if scope == RollbackScope::Files {
            return Ok(());
        }
        self.session.commit(vec![Fact::HistoryReplaced { keep }]).on_disk().await
    }

    async fn delete(&mut self) -> Result<(), Failure> {
        self.stop_turn(None).await;
        if self.lease != LeaseState::Held {
            self.take_lease().await?;
        }
        if let LeaseState::HeldBy { holder, .. } = &self.lease {
            return Err(taken(holder).hint("Close it there, then delete it."));
        }
        self.session.log.flush().await?;
        self.session.store.delete(&self.session.id).await?;
        crate::undo::forget(&self.session).await;
        self.run_chat_end_hooks();
        Ok(())
    }

    /// They may take their time: the chat is gone already.
    fn run_chat_end_hooks(&self) {
        if !hooks::has(&self.session.workspace, HookEvent::ChatEnd) {
            return;
        }
        let (workspace, input) = (self.session.workspace.clone(), hooks::ended_chat(&self.session));
        tokio::spawn(async move {
            hooks::run_outside(&workspace, HookEvent::ChatEnd, input, CancellationToken::new()).await;
        });
    }

    /// Stops the running turn and ends it; `limit`: after so long it is aborted.
    async fn stop_turn(&mut self, limit: Option<Duration>) {
        let Some(running) = &mut self.turn else { return };
        running.cancel.cancel();
        self.session.request_stop();
        let ended = match limit {
            None => (&mut running.task).await,
            Some(limit) => match tokio::time::timeout(limit, &mut running.task).await {
                Ok(ended) => ended,
                Err(_) => {
                    running.task.abort();
                    (&mut running.task).await
                }
            },
        };
        self.turn_ended(ended);
    }

    async fn end(&mut self) {
        self.stop_turn(None).await;
        self.session.closed.cancel();
        let ends = join_all(self.session.own_sources.iter().map(|source| source.shutdown()));
        if tokio::time::timeout(SERVERS_END_TIMEOUT, ends).await.is_err() {
            tracing::warn!(session = %self.session.id, "the servers of a chat did not end in time");
        }
        if self.lease == LeaseState::Held {
            let _ = self.session.log.flush().await;
            let _ = self.session.store.release(&self.session.id).await;
        }
        // Windows of other processes look for the chat's next holder, which may be theirs.
        for visitor in self.visitors.drain(..) {
            visitor.close();
        }
    }
}

fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
