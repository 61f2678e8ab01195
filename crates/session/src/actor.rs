//! The actor of one chat: handles its commands in order and runs one turn at a time.
//!
//! Must not know models or tools. Invariants: every turn ends with `TurnEnded`, and with it everything that is open in
//! it, even after a panic; a command never waits for a model, a tool or a person.

use std::ops::ControlFlow;
use std::time::Duration;

use domain::command::{Accepted, Command, RollbackScope, SessionInfo, SessionSettings, UserPrompt};
use domain::event::{Fact, SessionOpened};
use domain::{CancellationToken, Failure, ItemId, Outcome, Reply, TurnId};
use tokio::sync::mpsc;
use tokio::task::JoinError;

use super::actor_data::{Actor, LeaseState, Message, RunningTurn};
use super::ending::Ending;
use super::lease::{next_change, taken};
use super::remote::remote_event;
use super::start::{Create, Start};
use super::{LoadedSession, load};
use crate::attached_frontend::AttachedFrontend;
use crate::refusal::reject_all;
use crate::work::SessionWork;

/// What a turn may take to stop at a shutdown; then it is aborted.
pub const TURN_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(250);
/// What the programs of one session may take to end.
const PROGRAMS_END_TIMEOUT: Duration = Duration::from_secs(2);

pub fn spawn<S: SessionWork>(start: Start<S>) -> mpsc::UnboundedSender<Message> {
    let (sender, mailbox) = mpsc::unbounded_channel();
    tokio::spawn(run(start, mailbox));
    sender
}

pub async fn run<S: SessionWork>(start: Start<S>, mut mailbox: mpsc::UnboundedReceiver<Message>) {
    let returned = start.returned.clone();
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

impl<S: SessionWork> Actor<S> {
    async fn load(start: Start<S>) -> Result<Self, Failure> {
        let Start { id, store, peers, returned: _, create, above } = start;
        let LoadedSession { state, created_at, updated_at } = load(store.as_ref(), &id).await?;
        let create = match create {
            _ if state.newest() > 0 => None,
            Some(create) => Some(create),
            None => {
                return Err(Failure::user(format!("There is no chat {id}."))
                    .hint("List the chats to see which exist."));
            }
        };
        let roots = create.as_ref().map_or(state.workspace(), |create| &create.workspace).to_vec();
        let session = S::open(id, store, state, roots, above).await?;
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
            is_guarded: false,
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
            Command::CancelCall { call, reply, .. } => {
                let _ = reply.send(self.session.running_calls.stop(call));
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
            Command::Close { reply, .. } => return self.close(frontend, reply).await,
            Command::Detach => return self.detach(frontend).await,
            Command::Delete { reply, .. } => match self.delete().await {
                Ok(()) => {
                    return ControlFlow::Break(Ending::Gone(Box::new(move || drop(reply.send(Ok(()))))));
                }
                refused => drop(reply.send(refused)),
            },
            Command::Shutdown { reply } => return self.shutdown(reply).await,
            other => self.session.answer(other),
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
        if let Err(failure) = self.session.check_prompt() {
            let _ = reply.send(Err(failure));
            return;
        }
        if let Err(failure) = self.ensure_writable().await {
            let _ = reply.send(Err(failure));
            return;
        }
        S::begin_turn(self, frontend, prompt, reply).await;
    }

    pub fn next_turn(&self) -> TurnId {
        TurnId(self.session.state().last_turn() + 1)
    }

    /// Runs the work of a turn that has started; its result ends the turn.
    pub fn run_turn(
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
        self.session.turn_ended(outcome);
    }

    fn steer(&mut self, text: Option<String>) -> Result<(), Failure> {
        match text {
            None => self.session.steering.withdraw(),
            Some(text) => {
                let text = self.session.steered_text(text)?;
                if !self.session.steering.add(text) {
                    return Err(Failure::user("Nothing runs in this chat.").hint("Send it as a prompt."));
                }
            }
        }
        Ok(())
    }

    pub async fn configure(&mut self, mut change: SessionSettings) -> Result<SessionSettings, Failure> {
        let current = self.session.state().settings().clone();
        self.session.settle_settings(&mut change, current.behavior.as_deref())?;
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
            return self.session.roll_back(first, keep).await;
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
        self.session.forget().await;
        Ok(())
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
        if tokio::time::timeout(PROGRAMS_END_TIMEOUT, self.session.end_programs()).await.is_err() {
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
