//! The engine's desk: takes every command in arrival order and hands it to whom it concerns.
//!
//! Invariant: the desk never waits; what needs the store, the disk or a model runs in a task of its own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{Command, SessionSettings, WorkspaceSpec};
use domain::event::{CatalogKind, EventBody};
use domain::link::Envelope;
use domain::{Event, Failure, FrontendId, ItemId, Reply, SessionId, Store};
use tokio::sync::{mpsc, oneshot};

use crate::attached_frontend::AttachedFrontend;
use crate::completion;
use crate::refusal::refuse;
use crate::session::actor::{self, Create, Message, Start};
use crate::session::fork::forked;
use crate::slash;
use crate::spending;
use crate::workspace::{Workspace, WorkspaceSource};

/// How long shutdown waits for one session.
const SHUTDOWN: Duration = Duration::from_millis(800);

pub struct Router {
    pub store: Arc<dyn Store>,
    pub source: Arc<dyn WorkspaceSource>,
    fronts: HashMap<FrontendId, AttachedFrontend>,
    sessions: HashMap<SessionId, mpsc::UnboundedSender<Message>>,
    /// Workspace by workspace, so that two chats of one folder share servers and indexes.
    known: Vec<(WorkspaceSpec, Arc<Workspace>)>,
}

impl Router {
    pub fn new(store: Arc<dyn Store>, source: Arc<dyn WorkspaceSource>) -> Self {
        Self { store, source, fronts: HashMap::new(), sessions: HashMap::new(), known: Vec::new() }
    }

    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Envelope>,
        mut changes: mpsc::UnboundedReceiver<CatalogKind>,
    ) {
        loop {
            tokio::select! {
                biased;
                envelope = commands.recv() => match envelope {
                    Some(envelope) => self.take(envelope),
                    None => break,
                },
                Some(kind) = changes.recv() => self.publish_to_all(EventBody::Catalog(kind)),
            }
        }
    }

    fn take(&mut self, Envelope { front, command }: Envelope) {
        match command {
            Command::Attach { port } => self.attach(front, port),
            Command::Detach => {
                self.fronts.remove(&front);
            }
            Command::Enter { workspace, reply } => self.enter(front, workspace, reply),
            Command::Open { id, workspace, settings, servers, reply } => {
                self.open(front, id, workspace, settings, servers, reply);
            }
            Command::Load { session, servers, reply } => {
                let start = self.start_of(front, session.clone(), &servers, None);
                self.send(front, &session.clone(), Command::Load { session, servers, reply }, start);
            }
            Command::Fork { session, until, reply } => self.fork(front, session, until, reply),
            Command::Configure { session: None, change, reply } => {
                let _ = reply.send(self.set_defaults(front, change));
            }
            Command::Shutdown { reply } => self.shutdown(reply),
            Command::Close { session, reply } if !self.is_live(&session) => {
                let _ = reply.send(Ok(()));
            }
            other => match addressee(&other) {
                Some((session, Reach::Live)) => self.only_live(front, &session, other),
                Some((session, Reach::Loaded)) => self.forward(front, &session, other),
                None => self.query(front, other),
            },
        }
    }

    fn attach(&mut self, front: FrontendId, port: domain::link::FrontendPort) {
        let port = AttachedFrontend {
            id: front,
            abilities: port.abilities,
            events: port.events,
            calls: port.host,
            workspace: None,
            defaults: SessionSettings::default(),
        };
        self.fronts.insert(front, port);
    }

    /// Commands that change nothing.
    fn query(&mut self, front: FrontendId, command: Command) {
        let workspace = match self.workspace_of(front) {
            Ok(workspace) => workspace,
            Err(failure) => return refuse(command, failure),
        };
        let store = self.store.clone();
        match command {
            Command::Catalog { reply } => {
                let _ = reply.send(Ok(workspace.catalog()));
            }
            Command::Servers { reply } => {
                let _ = reply.send(Ok(workspace.servers()));
            }
            // A chat may have servers of its own, and these prompts. Who asks does not join it.
            Command::SlashCommands { session: Some(session), query, reply } if self.is_live(&session) => {
                if let Some(mailbox) = self.sessions.get(&session) {
                    let command = Command::SlashCommands { session: Some(session.clone()), query, reply };
                    let _ = mailbox.send(Message { front: None, command });
                }
            }
            Command::SlashCommands { query, reply, .. } => {
                let _ = reply.send(Ok(slash::list(None, &workspace, &query)));
            }
            other => {
                tokio::spawn(answer_query(store, workspace, other));
            }
        }
    }

    fn enter(&mut self, front: FrontendId, workspace: WorkspaceSpec, reply: Reply<domain::command::Catalog>) {
        let workspace = self.workspace(workspace);
        if let Some(front) = self.fronts.get_mut(&front) {
            front.workspace = Some(workspace.clone());
        }
        workspace.files.warm(&workspace.roots);
        let _ = reply.send(Ok(workspace.catalog()));
    }

    fn workspace(&mut self, workspace: WorkspaceSpec) -> Arc<Workspace> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == workspace) {
            return known.clone();
        }
        let made = self.source.workspace(&workspace);
        self.known.push((workspace, made.clone()));
        made
    }

    fn workspace_of(&mut self, front: FrontendId) -> Result<Arc<Workspace>, Failure> {
        let known = self.fronts.get(&front).ok_or_else(Failure::closed)?.workspace.clone();
        Ok(known.unwrap_or_else(|| self.workspace(WorkspaceSpec::default())))
    }

    fn open(
        &mut self,
        front: FrontendId,
        id: Option<SessionId>,
        workspace: Option<Vec<PathBuf>>,
        mut settings: SessionSettings,
        servers: Vec<domain::command::ServerSpec>,
        reply: Reply<domain::command::SessionInfo>,
    ) {
        let id = id.unwrap_or_else(|| SessionId::new(uuid::Uuid::now_v7().to_string()));
        let create = match self.create(front, workspace.as_deref(), &mut settings) {
            Ok(create) => create,
            Err(failure) => {
                let _ = reply.send(Err(failure));
                return;
            }
        };
        let start = self.start_of(front, id.clone(), &servers, Some(create));
        let command = Command::Open { id: Some(id.clone()), workspace, settings, servers, reply };
        self.send(front, &id, command, start);
    }

    /// How a chat begins that is not there yet.
    fn create(
        &mut self,
        front: FrontendId,
        workspace: Option<&[PathBuf]>,
        settings: &mut SessionSettings,
    ) -> Result<Create, Failure> {
        if let Some(roots) = workspace {
            must_be_folders(roots)?;
            // A front-end that names a workspace per session works there from now on.
            let workspace = self.workspace(WorkspaceSpec { roots: roots.to_vec(), options: None });
            if let Some(front) = self.fronts.get_mut(&front) {
                front.workspace = Some(workspace);
            }
        }
        let workspace = self.workspace_of(front)?;
        crate::behavior::settle(settings, None, &workspace.settings)?;
        let front = self.fronts.get(&front).ok_or_else(Failure::closed)?;
        let (client, mut all) = (front.abilities.client.clone(), front.defaults.clone());
        all.apply(settings);
        all.behavior.get_or_insert_with(|| crate::behavior::default_name(&workspace.settings));
        // Where nobody can be asked, the user says on the command line how far a chat may go.
        if workspace.settings.chat.default_trust && front.abilities.approvals {
            all.trust.get_or_insert(true);
        }
        let workspace = workspace.roots.clone();
        Ok(Create { workspace, settings: all, parent: None, client, facts: Vec::new() })
    }

    /// What new chats of a front-end begin with.
    fn set_defaults(
        &mut self,
        front: FrontendId,
        mut change: SessionSettings,
    ) -> Result<SessionSettings, Failure> {
        let workspace = self.workspace_of(front)?;
        crate::behavior::settle(&mut change, None, &workspace.settings)?;
        let front = self.fronts.get_mut(&front).ok_or_else(Failure::closed)?;
        front.defaults.apply(&change);
        Ok(front.defaults.clone())
    }

    fn start_of(
        &mut self,
        front: FrontendId,
        id: SessionId,
        servers: &[domain::command::ServerSpec],
        create: Option<Create>,
    ) -> Option<Start> {
        if self.is_live(&id) {
            return None;
        }
        let workspace = self.workspace_of(front).ok()?;
        let own_sources = if servers.is_empty() {
            Vec::new()
        } else {
            self.source.session_servers(servers, &workspace.roots)
        };
        Some(Start { id, store: self.store.clone(), workspace, own_sources, create })
    }

    fn is_live(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|mailbox| !mailbox.is_closed())
    }

    /// To a session that runs, or one that is loaded for it.
    fn forward(&mut self, front: FrontendId, session: &SessionId, command: Command) {
        let start = self.start_of(front, session.clone(), &[], None);
        self.send(front, session, command, start);
    }

    fn send(&mut self, front: FrontendId, session: &SessionId, command: Command, start: Option<Start>) {
        if let Some(start) = start {
            self.sessions.retain(|_, mailbox| !mailbox.is_closed());
            self.sessions.insert(session.clone(), actor::start(start));
        }
        let front = self.fronts.get(&front).cloned();
        match self.sessions.get(session) {
            Some(mailbox) => {
                if let Err(mpsc::error::SendError(message)) = mailbox.send(Message { front, command }) {
                    refuse(message.command, Failure::closed());
                }
            }
            None => refuse(command, Failure::closed()),
        }
    }

    fn only_live(&mut self, front: FrontendId, session: &SessionId, command: Command) {
        if let Some(mailbox) = self.sessions.get(session) {
            let front = self.fronts.get(&front).cloned();
            let _ = mailbox.send(Message { front, command });
        }
    }

    /// Reads the other chat first, then opens the new one with its facts.
    fn fork(
        &mut self,
        front: FrontendId,
        session: SessionId,
        until: Option<ItemId>,
        reply: Reply<domain::command::SessionInfo>,
    ) {
        let id = SessionId::new(uuid::Uuid::now_v7().to_string());
        let (Ok(workspace), Some(front)) = (self.workspace_of(front), self.fronts.get(&front).cloned())
        else {
            let _ = reply.send(Err(Failure::closed()));
            return;
        };
        let store = self.store.clone();
        let (mailbox, mut incoming) = mpsc::unbounded_channel::<Message>();
        self.sessions.insert(id.clone(), mailbox.clone());
        let command = Command::Load { session: id.clone(), servers: Vec::new(), reply };
        let _ = mailbox.send(Message { front: Some(front.clone()), command });
        tokio::spawn(async move {
            let create = match forked(store.as_ref(), &session, until, front.abilities.client).await {
                Ok(create) => create,
                Err(failure) => {
                    incoming.close();
                    while let Some(message) = incoming.recv().await {
                        refuse(message.command, failure.clone());
                    }
                    return;
                }
            };
            let start = Start { id, store, workspace, own_sources: Vec::new(), create: Some(create) };
            actor::run_with(start, incoming).await;
        });
    }

    fn publish_to_all(&self, body: EventBody) {
        for front in self.fronts.values() {
            front.events.push(Event { session: None, body: body.clone() });
        }
    }

    /// Every session stops its turn and flushes; then the servers end.
    fn shutdown(&mut self, reply: Reply<()>) {
        let sessions: Vec<_> = self.sessions.drain().map(|(_, mailbox)| mailbox).collect();
        let known: Vec<_> = self.known.drain(..).map(|(_, workspace)| workspace).collect();
        tokio::spawn(async move {
            let waits = sessions.into_iter().map(|mailbox| async move {
                let (reply, done) = oneshot::channel();
                if mailbox.send(Message { front: None, command: Command::Shutdown { reply } }).is_ok() {
                    let _ = tokio::time::timeout(SHUTDOWN, done).await;
                }
            });
            futures_util::future::join_all(waits).await;
            let ends = known.iter().flat_map(|workspace| &workspace.sources).map(|source| source.shutdown());
            let _ = tokio::time::timeout(SHUTDOWN, futures_util::future::join_all(ends)).await;
            let _ = reply.send(Ok(()));
        });
    }
}

/// A chat in a folder that is not there could do nothing but fail.
fn must_be_folders(roots: &[PathBuf]) -> Result<(), Failure> {
    match roots.iter().find(|root| !root.is_dir()) {
        None => Ok(()),
        Some(root) => Err(Failure::user(format!("There is no folder {}.", root.display()))
            .hint("Open the chat in a folder that exists.")),
    }
}

/// How a command reaches a session.
enum Reach {
    /// Only where it runs already.
    Live,
    /// It is loaded for it.
    Loaded,
}

/// The session a command is for, where its actor must take it.
fn addressee(command: &Command) -> Option<(SessionId, Reach)> {
    match command {
        Command::Cancel { session } | Command::Answer { session, .. } => Some((session.clone(), Reach::Live)),
        Command::Prompt { session, .. }
        | Command::Rollback { session, .. }
        | Command::Steer { session, .. }
        | Command::Close { session, .. }
        | Command::Delete { session, .. }
        | Command::Configure { session: Some(session), .. } => Some((session.clone(), Reach::Loaded)),
        _ => None,
    }
}

async fn answer_query(store: Arc<dyn Store>, workspace: Arc<Workspace>, command: Command) {
    let (files, roots) = (&workspace.files, &workspace.roots);
    match command {
        Command::Read { session, after, limit, reply } => {
            let read = store.read(&session, after, limit).await;
            let _ = reply.send(read.map(|page| page.into_iter().map(Arc::new).collect()));
        }
        Command::List { filter, reply } => {
            let _ = reply.send(store.list(filter).await);
        }
        Command::Contexts { query, kind, reply, .. } => {
            let mut contexts = files.query(roots, &query, kind).await;
            if kind == domain::command::ContextQuery::All {
                contexts.extend(resources(&workspace, &query));
            }
            let _ = reply.send(Ok(contexts));
        }
        Command::ReadFile { path, reply, .. } => {
            let _ = reply.send(files.read(roots, path).await);
        }
        Command::Stat { path, reply, .. } => {
            let _ = reply.send(files.stat(roots, path).await);
        }
        Command::Glob { pattern, reply, .. } => {
            let _ = reply.send(files.glob(roots, pattern).await);
        }
        Command::Complete { completion, deltas, reply } => {
            let completed = completion::run(workspace.models.as_ref(), completion, deltas).await;
            if let Some(cost) = completed.as_ref().ok().and_then(|it| it.cost) {
                spending::charge_day(store.as_ref(), cost).await;
            }
            let _ = reply.send(completed);
        }
        Command::ServerAction { name, action, reply } => {
            let found =
                workspace.sources.iter().find(|source| source.servers().iter().any(|s| s.name == name));
            let acted = match found {
                Some(source) => source.act(&name, action).await,
                None => Err(Failure::user(format!("There is no server {name}."))),
            };
            let _ = reply.send(acted);
        }
        other => refuse(other, Failure::internal("The engine does not take this command.")),
    }
}

fn resources(workspace: &Workspace, query: &str) -> Vec<domain::command::Context> {
    let query = query.to_lowercase();
    let all = workspace.sources.iter().flat_map(|source| source.resources());
    all.filter(|resource| {
        resource.name.to_lowercase().contains(&query) || resource.uri.to_lowercase().contains(&query)
    })
    .map(domain::command::Context::McpResource)
    .collect()
}
