//! The engine's end of a link, scripted: a front-end is tested without a model, a tool or a disk.
//!
//! It answers what every front-end asks from a journal in memory and hands the rest to the test, which says what
//! happens. Invariant: like the engine's, its facts are in the journal before they are published, numbered without gaps.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::command::{
    Accepted, AcceptedStatus, Catalog, FileContent, FileStat, FlagChange, RollbackScope, ServerSpec,
    SessionInfo, SessionSettings, SlashCommand, UserPrompt,
};
use domain::event::{Channel, EventBody, SessionOpened, SessionUsage};
use domain::host::{HostReply, HostRequest};
use domain::item::{Item, ItemKind, Part};
use domain::link::{Engine, Envelope, FrontendPort};
use domain::memory::MemoryList;
use domain::store::{Preview, SessionSummary};
use domain::tool::{ServerAction, ToolServer};
use domain::{
    Abilities, Answer, AskId, Command, Event, Fact, Failure, FrontendId, HostCall, ItemDelta, ItemId,
    Outcome, Recorded, SessionId, TurnId,
};
use tokio::sync::{mpsc, oneshot};

/// How long a test waits for a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// A command that a front-end sent, without its reply.
#[derive(Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a test keeps a few of them")]
pub enum Seen {
    Open { session: SessionId, workspace: Option<Vec<PathBuf>>, servers: Vec<ServerSpec> },
    Load { session: SessionId, servers: Vec<ServerSpec> },
    Prompt { session: SessionId, turn: TurnId, prompt: UserPrompt },
    Cancel { session: SessionId },
    CancelCall { session: SessionId, call: ItemId },
    Answer { session: SessionId, ask: AskId, answer: Answer },
    Configure { session: Option<SessionId>, change: SessionSettings },
    Rollback { session: SessionId, from: Option<ItemId>, scope: RollbackScope },
    Fork { session: SessionId, until: Option<ItemId> },
    Flag { session: SessionId, change: FlagChange },
    Steer { session: SessionId, text: Option<String> },
    ServerAction { name: String, action: ServerAction },
    Close { session: SessionId },
    Delete { session: SessionId },
    ReadFile { session: Option<SessionId>, path: PathBuf },
    Stat { session: Option<SessionId>, path: PathBuf },
    Glob { session: Option<SessionId>, pattern: String },
    Detach,
}

/// What it answers with.
#[derive(Default)]
struct FakeState {
    /// In the order in which they attached.
    ports: Vec<(FrontendId, FrontendPort)>,
    catalog: Catalog,
    commands: Vec<SlashCommand>,
    servers: Vec<ToolServer>,
    /// The model that prompts are accepted with; `None`: `a/plain`.
    accepted_model: Option<String>,
    chats: HashMap<SessionId, Chat>,
    files: HashMap<PathBuf, Vec<u8>>,
    refusals: Vec<Failure>,
    opened: u64,
}

#[derive(Default)]
struct Chat {
    facts: Vec<Arc<Recorded>>,
    settings: SessionSettings,
    workspace: Vec<PathBuf>,
    usage: SessionUsage,
    turns: u64,
    busy: bool,
}

pub struct FakeEngine {
    engine: Engine,
    state: Arc<Mutex<FakeState>>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

/// When everything happened that happens here: 2024-07-30T12:00:00Z.
pub const NOON: u64 = 1_722_340_800_000;

impl FakeEngine {
    pub fn start(catalog: Catalog) -> Self {
        let (engine, mut commands) = domain::link::engine();
        let state = Arc::new(Mutex::new(FakeState { catalog, ..FakeState::default() }));
        let (sender, seen) = mpsc::unbounded_channel();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Some(Envelope { front, command }) = commands.recv().await {
                let seen = shared.lock().unwrap_or_else(PoisonError::into_inner).handle(front, command);
                if let Some(seen) = seen {
                    let _ = sender.send(seen);
                }
            }
        });
        Self { engine, state, seen }
    }

    pub fn engine(&self) -> Engine {
        self.engine.clone()
    }

    /// The next command that is the test's business.
    pub async fn next(&mut self) -> Seen {
        let seen = tokio::time::timeout(COMMAND_TIMEOUT, self.seen.recv()).await;
        seen.expect("a command in time").expect("the engine's end is open")
    }

    /// The next prompt; fails on any other command.
    pub async fn prompt(&mut self) -> (SessionId, TurnId, UserPrompt) {
        match self.next().await {
            Seen::Prompt { session, turn, prompt } => (session, turn, prompt),
            other => panic!("a prompt was expected, not {other:?}"),
        }
    }

    pub fn abilities(&self) -> Abilities {
        self.with(|state| state.ports.last().expect("a front-end is attached").1.abilities.clone())
    }

    /// A stored chat with these facts.
    pub fn store(&self, session: &SessionId, settings: SessionSettings, workspace: &str, facts: Vec<Fact>) {
        self.with(|state| {
            let chat = Chat { settings, workspace: vec![workspace.into()], ..Chat::default() };
            state.chats.insert(session.clone(), chat);
            let opened = SessionOpened {
                workspace: vec![workspace.into()],
                settings: SessionSettings::default(),
                parent: None,
                client: String::new(),
            };
            state.record(session, Fact::SessionOpened(opened));
            for fact in facts {
                state.record(session, fact);
            }
        });
    }

    /// Loses a chat.
    pub fn forget(&self, session: &SessionId) {
        self.with(|state| state.chats.remove(session));
    }

    pub fn set_commands(&self, commands: Vec<SlashCommand>) {
        self.with(|state| state.commands = commands);
    }

    pub fn set_servers(&self, servers: Vec<ToolServer>) {
        self.with(|state| state.servers = servers);
    }

    /// Prompts are accepted with this model; empty: as slash commands are.
    pub fn set_accepted_model(&self, model: &str) {
        self.with(|state| state.accepted_model = Some(model.to_owned()));
    }

    pub fn set_catalog(&self, catalog: Catalog) {
        self.with(|state| state.catalog = catalog);
    }

    pub fn set_busy(&self, session: &SessionId) {
        self.with(|state| state.chats.entry(session.clone()).or_default().busy = true);
    }

    pub fn set_file(&self, path: &str, bytes: &[u8]) {
        self.with(|state| state.files.insert(path.into(), bytes.to_vec()));
    }

    /// The next command with a reply is refused with this.
    pub fn refuse(&self, failure: Failure) {
        self.with(|state| state.refusals.push(failure));
    }

    /// Records a fact and tells it.
    pub fn fact(&self, session: &SessionId, fact: Fact) {
        self.with(|state| {
            let recorded = state.record(session, fact);
            state.publish(Event::fact(session.clone(), recorded));
        });
    }

    pub fn event(&self, session: Option<&SessionId>, body: EventBody) {
        self.with(|state| state.publish(Event { session: session.cloned(), body }));
    }

    pub fn delta(&self, session: &SessionId, item: u64, channel: Channel, offset: u64, text: &str) {
        let delta = ItemDelta { item: ItemId(item), channel, offset, text: text.to_owned() };
        self.event(Some(session), EventBody::Delta(delta));
    }

    /// A turn begins with what the user said.
    pub fn begin(&self, session: &SessionId, turn: TurnId, id: u64, text: &str) {
        self.fact(session, Fact::TurnStarted { turn, model: "a/plain".into() });
        let kind = ItemKind::UserMessage { text: text.to_owned(), parts: vec![Part::text(text)] };
        self.fact(session, Fact::ItemEnded { item: item(id, turn, kind) });
    }

    /// A whole answer at once.
    pub fn say(&self, session: &SessionId, turn: TurnId, id: u64, text: &str) {
        let kind = ItemKind::AgentMessage { text: text.to_owned(), interrupted: false, provider: None };
        self.fact(session, Fact::ItemEnded { item: item(id, turn, kind) });
    }

    pub fn end(&self, session: &SessionId, turn: TurnId, outcome: Outcome) {
        self.fact(session, Fact::TurnEnded { turn, outcome });
    }

    /// Calls the front-end; its reply comes by the receiver.
    pub fn host(
        &self,
        session: &SessionId,
        item: Option<u64>,
        call: HostCall,
        deadline: Duration,
    ) -> oneshot::Receiver<Result<HostReply, Failure>> {
        let (reply, answer) = oneshot::channel();
        let request = HostRequest { session: session.clone(), item: item.map(ItemId), call, deadline, reply };
        self.with(|state| {
            let (_, port) = state.ports.last().expect("a front-end is attached");
            port.host.try_send(request).expect("the front-end takes calls");
        });
        answer
    }

    fn with<T>(&self, work: impl FnOnce(&mut FakeState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub fn item(id: u64, turn: TurnId, kind: ItemKind) -> Item {
    Item { id: ItemId(id), turn, step: 0, parent: None, kind }
}

impl FakeState {
    fn record(&mut self, session: &SessionId, fact: Fact) -> Arc<Recorded> {
        let chat = self.chats.entry(session.clone()).or_default();
        let recorded = Arc::new(Recorded { number: chat.facts.len() as u64 + 1, at: NOON, fact });
        chat.facts.push(recorded.clone());
        recorded
    }

    fn publish(&self, event: Event) {
        let Some(((_, last), others)) = self.ports.split_last() else { return };
        for (_, port) in others {
            port.events.push(event.clone());
        }
        last.events.push(event);
    }

    fn info(&self, session: &SessionId) -> Result<SessionInfo, Failure> {
        let chat = self.chats.get(session);
        let chat = chat.ok_or_else(|| Failure::user(format!("There is no chat {session}.")))?;
        Ok(SessionInfo {
            id: session.clone(),
            workspace: chat.workspace.clone(),
            settings: chat.settings.clone(),
            usage: chat.usage.clone(),
            newest: chat.facts.len() as u64,
            busy: chat.busy,
            held_by: None,
            attached_to: None,
            created_at: NOON,
            updated_at: NOON,
            items: domain::replay::items(&domain::replay::visible_facts(chat.facts.clone())).len(),
            last_compaction: None,
        })
    }

    fn open(&mut self, id: Option<SessionId>, workspace: Option<&Vec<PathBuf>>) -> SessionId {
        self.opened += 1;
        let id = id.unwrap_or_else(|| SessionId::new(format!("chat-{}", self.opened)));
        if !self.chats.contains_key(&id) {
            let workspace = workspace.cloned().unwrap_or_default();
            let opened = SessionOpened {
                workspace: workspace.clone(),
                settings: SessionSettings::default(),
                parent: None,
                client: String::new(),
            };
            self.record(&id, Fact::SessionOpened(opened));
            if let Some(chat) = self.chats.get_mut(&id) {
                chat.workspace = workspace;
            }
        }
        id
    }

    fn list(&self, folders: Option<&Vec<PathBuf>>) -> Vec<SessionSummary> {
        let mut ids: Vec<&SessionId> = self.chats.keys().collect();
        ids.sort();
        ids.into_iter()
            .map(|id| (id, &self.chats[id]))
            .filter(|(_, chat)| {
                folders.is_none_or(|folders| chat.workspace.iter().any(|it| folders.contains(it)))
            })
            .map(|(id, chat)| SessionSummary {
                id: id.clone(),
                title: chat.settings.title.clone(),
                model: None,
                workspace: chat.workspace.clone(),
                parent: None,
                created_at: NOON,
                updated_at: NOON,
                message_count: 0,
                newest: chat.facts.len() as u64,
            })
            .collect()
    }

    /// Answers a command; what is the test's business comes back.
    fn handle(&mut self, front: FrontendId, command: Command) -> Option<Seen> {
        match command {
            Command::Attach { port } => self.ports.push((front, port)),
            Command::Detach => {
                self.ports.retain(|(known, _)| *known != front);
                return Some(Seen::Detach);
            }
            Command::Enter { reply, .. } | Command::Catalog { reply } => {
                let _ = reply.send(Ok(self.catalog.clone()));
            }
            Command::Servers { reply, .. } => drop(reply.send(Ok(self.servers.clone()))),
            Command::Contexts { reply, .. } => drop(reply.send(Ok(Vec::new()))),
            Command::Memory { reply } => drop(reply.send(Ok(Some(MemoryList::default())))),
            Command::Jobs { reply } => drop(reply.send(Ok(Vec::new()))),
            Command::Providers { reply } => drop(reply.send(Ok(Vec::new()))),
            Command::Shutdown { reply } => drop(reply.send(Ok(()))),
            Command::SlashCommands { reply, .. } => drop(reply.send(Ok(self.commands.clone()))),
            Command::Preview { session, limit, reply } => {
                let preview = self.chats.get(&session).map(|chat| {
                    let end = &chat.facts[chat.facts.len().saturating_sub(limit)..];
                    let facts = end.iter().map(|recorded| Recorded::clone(recorded)).collect();
                    Preview { title: chat.settings.title.clone(), facts }
                });
                let _ = reply.send(Ok(preview));
            }
            Command::Read { session, after, limit, reply } => {
                let facts = self.chats.get(&session).map(|chat| chat.facts.iter());
                let page = facts.into_iter().flatten().filter(|it| it.number > after).take(limit).cloned();
                let _ = reply.send(Ok(page.collect()));
            }
            Command::List { filter, reply } => {
                let mut all = self.list(filter.workspace.as_ref());
                if let Some(after) = &filter.after {
                    let position = all.iter().position(|chat| chat.id == after.id).unwrap_or(all.len());
                    all.drain(..all.len().min(position + 1));
                }
                let all = all.into_iter();
                let _ = reply.send(Ok(all.take(filter.limit.unwrap_or(usize::MAX)).collect()));
            }
            Command::Cancel { session } => return Some(Seen::Cancel { session }),
            Command::CancelCall { .. } => return self.cancel_call(command),
            Command::Answer { session, ask, answer, .. } => {
                return Some(Seen::Answer { session, ask, answer });
            }
            other => return self.handle_chat(other),
        }
        None
    }

    fn cancel_call(&mut self, command: Command) -> Option<Seen> {
        let Command::CancelCall { session, call, reply } = command else { return None };
        let _ = reply.send(self.refusals.pop().map_or(Ok(()), Err));
        Some(Seen::CancelCall { session, call })
    }

    fn handle_chat(&mut self, command: Command) -> Option<Seen> {
        let refusal = self.refusals.pop();
        let refused = move || refusal.map_or(Ok(()), Err);
        match command {
            Command::Open { id, workspace, servers, reply, .. } => {
                let session = self.open(id, workspace.as_ref());
                let _ = reply.send(refused().and_then(|()| self.info(&session)));
                Some(Seen::Open { session, workspace, servers })
            }
            Command::Load { session, servers, reply } => {
                let _ = reply.send(refused().and_then(|()| self.info(&session)));
                Some(Seen::Load { session, servers })
            }
            Command::Prompt { session, prompt, reply } => {
                let chat = self.chats.entry(session.clone()).or_default();
                chat.turns += 1;
                let turn = TurnId(chat.turns);
                let model = self.accepted_model.clone().unwrap_or_else(|| "a/plain".into());
                let accepted = Accepted { turn, model, status: AcceptedStatus::Prompting };
                let _ = reply.send(refused().map(|()| accepted));
                Some(Seen::Prompt { session, turn, prompt })
            }
            Command::Configure { session, change, reply } => {
                let mut settings = change.clone();
                if let Some(id) = &session
                    && let Some(chat) = self.chats.get_mut(id)
                {
                    chat.settings.apply(&change);
                    settings = chat.settings.clone();
                    let recorded = self.record(id, Fact::SessionChanged { change: change.clone() });
                    let _ = reply.send(refused().map(|()| settings));
                    self.publish(Event::fact(id.clone(), recorded));
                    return Some(Seen::Configure { session, change });
                }
                let _ = reply.send(refused().map(|()| settings));
                Some(Seen::Configure { session, change })
            }
            Command::Close { session, reply } => {
                let _ = reply.send(refused());
                Some(Seen::Close { session })
            }
            Command::Delete { session, reply } => {
                let known = self.chats.remove(&session).map(|_| ());
                let known = known.ok_or_else(|| Failure::user(format!("There is no chat {session}.")));
                let _ = reply.send(refused().and(known));
                Some(Seen::Delete { session })
            }
            other => self.handle_history(other),
        }
    }

    fn handle_history(&mut self, command: Command) -> Option<Seen> {
        match command {
            Command::Rollback { session, from, scope, reply } => {
                let keep = from.and_then(|from| self.item_before(&session, from));
                let recorded = self.record(&session, Fact::HistoryReplaced { keep });
                let _ = reply.send(Ok(()));
                self.publish(Event::fact(session.clone(), recorded));
                Some(Seen::Rollback { session, from, scope })
            }
            Command::Fork { session, until, id, reply } => {
                let facts = self.chats.get(&session).map(|chat| chat.facts.clone()).unwrap_or_default();
                let fork = id.unwrap_or_else(|| SessionId::new(format!("{session}-fork")));
                let settings = self.chats.get(&session).map(|chat| chat.settings.clone()).unwrap_or_default();
                self.chats.insert(fork.clone(), Chat { facts, settings, ..Chat::default() });
                let _ = reply.send(self.info(&fork));
                Some(Seen::Fork { session, until })
            }
            Command::Flag { session, change, reply } => {
                let _ = reply.send(Ok(()));
                Some(Seen::Flag { session, change })
            }
            Command::Steer { session, text, reply } => {
                let _ = reply.send(Ok(()));
                Some(Seen::Steer { session, text })
            }
            Command::ServerAction { name, action, reply } => {
                let _ = reply.send(Ok(()));
                Some(Seen::ServerAction { name, action })
            }
            other => self.handle_file(other),
        }
    }

    fn item_before(&self, session: &SessionId, item: ItemId) -> Option<ItemId> {
        let facts = self.chats.get(session)?.facts.iter();
        let ended = facts.filter_map(|recorded| match &recorded.fact {
            Fact::ItemEnded { item } => Some(item.id),
            _ => None,
        });
        ended.take_while(|id| *id != item).last()
    }

    fn handle_file(&mut self, command: Command) -> Option<Seen> {
        match command {
            Command::ReadFile { session, path, reply } => {
                let bytes = self.files.get(&path).cloned();
                let file = bytes.map(|bytes| FileContent { version: bytes.len() as u64, bytes });
                let _ = reply.send(file.ok_or_else(|| Failure::user("There is no such file.")));
                Some(Seen::ReadFile { session, path })
            }
            Command::Stat { session, path, reply } => {
                let stat = FileStat { exists: self.files.contains_key(&path), directory: false };
                let _ = reply.send(Ok(stat));
                Some(Seen::Stat { session, path })
            }
            Command::Glob { session, pattern, reply } => {
                let mut paths: Vec<PathBuf> = self.files.keys().cloned().collect();
                paths.sort();
                let _ = reply.send(Ok(paths));
                Some(Seen::Glob { session, pattern })
            }
            other => panic!("the fake engine has no answer to {other:?}"),
        }
    }
}
