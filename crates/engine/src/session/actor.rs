//! The actor of one chat: takes its commands in order, owns its history between turns, runs one turn at a time.
//!
//! Invariants: only the holder of the store's lease appends; every turn ends with `TurnEnded` in the journal; what a
//! dead process left open is closed before anything new is recorded; a command never waits for a model, a tool or a
//! person.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{Accepted, Command, SessionInfo, SessionSettings, UserPrompt};
use domain::event::{Fact, SessionOpened};
use domain::store::Lease;
use domain::tool::ToolSource;
use domain::{CancellationToken, Event, Failure, ItemId, Outcome, Reply, SessionId, Store, TurnId};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::attached_frontend::AttachedFrontend;
use crate::refusal::{refuse, reject_all};
use crate::session::Session;
use crate::session::audience::Audience;
use crate::session::journal::Journal;
use crate::session::state::History;
use crate::slash;
use crate::turn::prompt as prompting;
use crate::turn::{FinishedTurn, Turn};
use crate::workspace::Workspace;

/// How often a chat that another process writes is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(400);
/// Facts read at a time while loading.
const PAGE: usize = 1024;

/// A message to a session's actor.
pub struct Message {
    pub front: Option<AttachedFrontend>,
    pub command: Command,
}

/// How a session begins.
pub struct Start {
    pub id: SessionId,
    pub store: Arc<dyn Store>,
    pub workspace: Arc<Workspace>,
    pub own_sources: Vec<Arc<dyn ToolSource>>,
    /// Set: make the chat where it does not exist.
    pub create: Option<Create>,
}

pub struct Create {
    pub workspace: Vec<PathBuf>,
    pub settings: SessionSettings,
    pub parent: Option<SessionId>,
    pub client: String,
    /// Facts of another chat that a fork begins with.
    pub facts: Vec<Fact>,
}

pub fn start(start: Start) -> mpsc::UnboundedSender<Message> {
    let (sender, mailbox) = mpsc::unbounded_channel();
    tokio::spawn(run_with(start, mailbox));
    sender
}

pub async fn run_with(start: Start, mut mailbox: mpsc::UnboundedReceiver<Message>) {
    let mut actor = match Actor::load(start).await {
        Ok(actor) => actor,
        Err(failure) => return reject_all(mailbox, &failure).await,
    };
    loop {
        tokio::select! {
            biased;
            ended = turn_end(&mut actor.turn) => actor.turn_ended(ended).await,
            message = mailbox.recv() => match message {
                Some(message) => {
                    if let ControlFlow::Break(final_reply) = actor.take(message).await {
                        actor.end().await;
                        // Who is told may open the chat again at once, with an actor of its own.
                        mailbox.close();
                        final_reply();
                        return reject_all(mailbox, &gone()).await;
                    }
                }
                None => break,
            },
            () = tokio::time::sleep(FOLLOW_EVERY), if actor.follows() => actor.follow().await,
        }
    }
    actor.end().await;
}

/// Never resolves while no turn runs.
async fn turn_end(turn: &mut Option<Running>) -> Result<FinishedTurn, JoinError> {
    match turn {
        Some(running) => (&mut running.task).await,
        None => std::future::pending().await,
    }
}

/// The reply to the command that ended a chat's actor.
type FinalReply = Box<dyn FnOnce() + Send>;

pub(crate) struct Running {
    id: TurnId,
    cancel: CancellationToken,
    task: JoinHandle<FinishedTurn>,
}

pub(crate) struct Actor {
    pub session: Arc<Session>,
    /// Not here while a turn runs.
    pub history: Option<History>,
    turn: Option<Running>,
    /// This process may append.
    leased: bool,
    held_by: Option<String>,
    created_at: u64,
    updated_at: u64,
    pub turns_made: u64,
    /// The system prompt by behavior, made once so that the cached prefix stays.
    pub system: Option<(String, Vec<Arc<str>>)>,
}

impl Actor {
    async fn load(start: Start) -> Result<Self, Failure> {
        let Start { id, store, workspace, own_sources, create } = start;
        let mut history = read_all(store.as_ref(), &id, History::default()).await?;
        let exists = history.newest > 0;
        let audience = Audience::default();
        let journal = Journal::start(id.clone(), store.clone(), audience.clone(), history.newest);
        let Some(create) = create.filter(|_| !exists) else {
            if !exists {
                return Err(Failure::user(format!("There is no chat {id}."))
                    .hint("List the chats to see which exist."));
            }
            return Ok(Self::assemble(id, store, journal, audience, workspace, own_sources, history));
        };
        history.workspace = create.workspace.clone();
        history.settings = create.settings.clone();
        let mut actor = Self::assemble(id, store, journal, audience, workspace, own_sources, history);
        actor.take_lease().await?;
        let Create { workspace, settings, parent, client, facts } = create;
        let mut all = vec![Fact::SessionOpened(SessionOpened { workspace, settings, parent, client })];
        all.extend(facts);
        // Not awaited: the first prompt shares its commit. A front-end that needs it durable flushes.
        let recording = actor.session.journal.record(all.clone());
        if let Some(history) = &mut actor.history {
            for (number, fact) in (1..).zip(all) {
                history.fold(&domain::Recorded { number, at: now(), fact });
            }
            actor.session.skip_ids(history);
            actor.turns_made = history.next_turn;
        }
        drop(recording);
        actor.created_at = now();
        actor.updated_at = actor.created_at;
        Ok(actor)
    }

    fn assemble(
        id: SessionId,
        store: Arc<dyn Store>,
        journal: Journal,
        audience: Audience,
        workspace: Arc<Workspace>,
        own_sources: Vec<Arc<dyn ToolSource>>,
        history: History,
    ) -> Self {
        let roots = if history.workspace.is_empty() { &workspace.roots } else { &history.workspace };
        let roots: Arc<[PathBuf]> = roots.clone().into();
        let session = Session::new(id, store, journal, audience, workspace, own_sources, roots, &history);
        Self {
            session: Arc::new(session),
            turn: None,
            leased: false,
            held_by: None,
            created_at: history.created_at,
            updated_at: history.updated_at,
            turns_made: history.next_turn,
            history: Some(history),
            system: None,
        }
    }

    async fn take(&mut self, message: Message) -> ControlFlow<FinalReply> {
        let Message { front, command } = message;
        if let Some(front) = &front
            && !matches!(command, Command::Close { .. } | Command::Delete { .. })
        {
            self.session.audience.add(front.id, front.events.clone());
        }
        match command {
            Command::Open { reply, .. } | Command::Load { reply, .. } => {
                let recovered = self.recover().await;
                let _ = reply.send(recovered.map(|()| self.info()));
            }
            Command::Prompt { prompt, reply, .. } => self.prompt(front, prompt, reply).await,
            Command::Steer { text, reply, .. } => {
                let _ = reply.send(self.steer(text));
            }
            Command::Cancel { .. } => {
                if let Some(running) = &self.turn {
                    running.cancel.cancel();
                }
            }
            Command::Answer { ask, answer, .. } => self.session.asks.settle(ask, answer),
            Command::Configure { change, reply, .. } => {
                let _ = reply.send(self.configure(change).await);
            }
            Command::Rollback { from, reply, .. } => {
                let _ = reply.send(self.rollback(from).await);
            }
            Command::SlashCommands { query, reply, .. } => {
                let _ = reply.send(Ok(slash::list(Some(&self.session), &self.session.workspace, &query)));
            }
            Command::Close { reply, .. } => return self.close(front, reply).await,
            Command::Delete { reply, .. } => match self.delete().await {
                Ok(()) => return ControlFlow::Break(Box::new(move || drop(reply.send(Ok(()))))),
                refused => drop(reply.send(refused)),
            },
            Command::Shutdown { reply } => return self.close_session(reply).await,
            other => refuse(other, Failure::internal("A chat does not take this command.")),
        }
        ControlFlow::Continue(())
    }

    /// One front-end lets go; with the last one the chat is put away.
    async fn close(&mut self, front: Option<AttachedFrontend>, reply: Reply<()>) -> ControlFlow<FinalReply> {
        if let Some(front) = &front {
            self.session.audience.remove(front.id);
        }
        if self.session.audience.is_empty() {
            return self.close_session(reply).await;
        }
        let _ = reply.send(Ok(()));
        ControlFlow::Continue(())
    }

    async fn close_session(&mut self, reply: Reply<()>) -> ControlFlow<FinalReply> {
        self.stop_turn().await;
        let flushed = self.session.journal.flush().await;
        ControlFlow::Break(Box::new(move || drop(reply.send(flushed))))
    }

    pub fn info(&self) -> SessionInfo {
        let state = self.session.state();
        SessionInfo {
            id: self.session.id.clone(),
            workspace: self.session.roots.to_vec(),
            settings: state.settings.clone(),
            usage: state.usage.clone(),
            newest: self.session.journal.newest(),
            busy: self.turn.is_some(),
            held_by: self.held_by.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    async fn prompt(&mut self, front: Option<AttachedFrontend>, prompt: UserPrompt, reply: Reply<Accepted>) {
        if let Some(running) = &self.turn {
            let failure = Failure::user(format!("This chat is still answering ({}).", running.id))
                .hint("Stop it, or wait until it is done.");
            let _ = reply.send(Err(failure));
            return;
        }
        if let Err(failure) = self.must_write().await {
            let _ = reply.send(Err(failure));
            return;
        }
        prompting::begin(self, front, prompt, reply).await;
    }

    /// Spawns the turn; the history goes with it and comes back at its end.
    pub(crate) fn spawn(&mut self, turn: Turn) {
        self.spawn_with(turn, Turn::run);
    }

    /// The same for work that only looks like a turn.
    pub(crate) fn spawn_with<F>(&mut self, turn: Turn, work: impl FnOnce(Turn) -> F)
    where
        F: Future<Output = FinishedTurn> + Send + 'static,
    {
        let (id, cancel) = (turn.id, turn.cancel.clone());
        self.turn = Some(Running { id, cancel, task: tokio::spawn(work(turn)) });
    }

    /// The chat is free again before anybody is told, so that a prompt sent at once is not refused.
    async fn turn_ended(&mut self, ended: Result<FinishedTurn, JoinError>) {
        let Some(running) = self.turn.take() else { return };
        self.updated_at = now();
        let (history, outcome) = match ended {
            Ok(over) => (Some(over.history), over.outcome),
            Err(error) => {
                tracing::error!(session = %self.session.id, %error, "a turn broke");
                let failure = Failure::internal("The turn broke off because of a mistake of ours.")
                    .hint("The log has it; what was said is kept.");
                (None, Outcome::Failed { failure })
            }
        };
        let recording = self.session.journal.record(vec![Fact::TurnEnded { turn: running.id, outcome }]);
        if history.is_some() {
            self.history = history;
        } else {
            let _ = recording.done().await;
            self.reload().await;
        }
    }

    /// The right to append, with what a dead holder left open closed.
    pub(crate) async fn must_write(&mut self) -> Result<(), Failure> {
        self.recover().await?;
        match &self.held_by {
            None => Ok(()),
            Some(holder) => Err(taken(holder).hint("Close it there, or fork the chat to go on here.")),
        }
    }

    /// Takes the lease where it is free. Whoever takes it over reads what the other wrote and closes what it left.
    async fn recover(&mut self) -> Result<(), Failure> {
        if self.leased {
            return Ok(());
        }
        self.take_lease().await?;
        if !self.leased {
            return Ok(());
        }
        self.reload().await;
        let closing = self.history.as_ref().map(History::closing_facts).unwrap_or_default();
        if !closing.is_empty() {
            self.session.journal.record(closing).done().await?;
            self.reload().await;
        }
        Ok(())
    }

    async fn take_lease(&mut self) -> Result<(), Failure> {
        match self.session.store.lease(&self.session.id).await? {
            Lease::Held => {
                self.leased = true;
                self.held_by = None;
            }
            Lease::HeldBy { holder } => self.held_by = Some(holder),
        }
        Ok(())
    }

    /// Reads what is new in the journal into the history.
    async fn reload(&mut self) {
        let history = self.history.take().unwrap_or_default();
        match read_all(self.session.store.as_ref(), &self.session.id, history.clone()).await {
            Ok(history) => {
                self.session.journal.set_newest(history.newest);
                self.session.skip_ids(&history);
                self.turns_made = self.turns_made.max(history.next_turn);
                {
                    let mut state = self.session.state();
                    state.settings = history.settings.clone();
                    state.usage = history.usage.clone();
                }
                self.history = Some(history);
            }
            Err(failure) => {
                tracing::error!(session = %self.session.id, %failure, "the journal cannot be read");
                self.history = Some(history);
            }
        }
    }

    fn follows(&self) -> bool {
        self.held_by.is_some() && !self.session.audience.is_empty()
    }

    /// Tells what another process wrote.
    async fn follow(&mut self) {
        let after = self.session.journal.newest();
        let Ok(page) = self.session.store.read(&self.session.id, after, PAGE).await else { return };
        for recorded in page {
            self.session.journal.set_newest(recorded.number);
            self.session.audience.publish(Event::fact(self.session.id.clone(), Arc::new(recorded)));
        }
    }

    fn steer(&mut self, text: Option<String>) -> Result<(), Failure> {
        if self.turn.is_none() && text.is_some() {
            return Err(Failure::user("Nothing runs in this chat.").hint("Send it as a prompt."));
        }
        let mut state = self.session.state();
        state.steer = match (state.steer.take(), text) {
            (Some(before), Some(more)) => Some(format!("{before}\n{more}")),
            (_, text) => text,
        };
        Ok(())
    }

    pub(crate) async fn configure(
        &mut self,
        mut change: SessionSettings,
    ) -> Result<SessionSettings, Failure> {
        let now = self.session.state().settings.behavior.clone();
        crate::behavior::settle(&mut change, now.as_deref(), &self.session.workspace.settings)?;
        let changed = {
            let mut state = self.session.state();
            let before = state.settings.clone();
            state.settings.apply(&change);
            state.settings != before
        };
        if changed {
            self.must_write().await?;
            if let Some(history) = &mut self.history {
                history.settings.apply(&change);
            }
            self.session.state().settings.apply(&change);
            self.session.journal.record(vec![Fact::SessionChanged { change }]).done().await?;
        }
        Ok(self.session.state().settings.clone())
    }

    async fn rollback(&mut self, from: Option<ItemId>) -> Result<(), Failure> {
        if self.turn.is_some() {
            return Err(Failure::user("This chat is still answering.").hint("Stop it first."));
        }
        self.must_write().await?;
        let Some(history) = &mut self.history else { return Ok(()) };
        let at = match from {
            None => 0,
            Some(from) => history
                .items
                .iter()
                .position(|item| item.id == from)
                .ok_or_else(|| Failure::user(format!("There is no {from} in this chat.")))?,
        };
        let keep = at.checked_sub(1).map(|last| history.items[last].id);
        let fact = Fact::HistoryReplaced { keep };
        self.session.state().prefix.break_because("rollback");
        self.session.journal.record(vec![fact.clone()]).done().await?;
        let number = history.newest;
        history.fold(&domain::Recorded { number, at: now(), fact });
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Failure> {
        self.stop_turn().await;
        if !self.leased {
            self.take_lease().await?;
        }
        if let Some(holder) = &self.held_by {
            return Err(taken(holder).hint("Close it there, then delete it."));
        }
        self.session.journal.flush().await?;
        self.session.store.delete(&self.session.id).await.map(|_| ())
    }

    async fn stop_turn(&mut self) {
        if let Some(running) = &mut self.turn {
            running.cancel.cancel();
            let ended = (&mut running.task).await;
            self.turn_ended(ended).await;
        }
    }

    async fn end(&mut self) {
        self.stop_turn().await;
        for source in &self.session.own_sources {
            source.shutdown().await;
        }
        if self.leased {
            let _ = self.session.journal.flush().await;
            let _ = self.session.store.release(&self.session.id).await;
        }
    }
}

/// To who spoke to a chat that was being closed or deleted.
fn gone() -> Failure {
    Failure::user("This chat was just closed or deleted.").hint("Send it again.")
}

fn taken(holder: &str) -> Failure {
    Failure::taken(format!("Another Dragoman writes this chat now: {holder}."))
}

/// Folds everything after what `history` knows.
async fn read_all(store: &dyn Store, id: &SessionId, mut history: History) -> Result<History, Failure> {
    loop {
        let page = store.read(id, history.newest, PAGE).await?;
        if page.is_empty() {
            return Ok(history);
        }
        for recorded in &page {
            history.fold(recorded);
        }
    }
}

pub fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
