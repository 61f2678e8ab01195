//! The router: receives every command in arrival order and hands it to a session or to a task of its own.
//!
//! Must not know what sessions do. Invariants: the router never waits for the store, the disk or a model; a workspace
//! ends with the last front-end and session that use it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use config::HookEvent;
use domain::command::{Catalog, Command, ServerSpec, SessionInfo, SessionSettings, WorkspaceSpec};
use domain::event::{CatalogKind, EventBody};
use domain::link::{Envelope, FrontendPort};
use domain::{CancellationToken, Event, Failure, FrontendId, ItemId, Reply, SessionId, Store};
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::attached_frontend::AttachedFrontend;
use crate::hooks;
use crate::queries;
use crate::refusal::{refuse, reject_all};
use crate::session::actor::{self, Create, Message, Start, TURN_SHUTDOWN_TIMEOUT};
use crate::session::fork::fork;
use crate::slash;
use crate::subagents::StartSubagent;
use crate::workspace::{OpenWorkspace, Workspace, WorkspaceSource};
use crate::{LiveSessions, SESSION_END_HOOKS_TIMEOUT, SHUTDOWN_TIMEOUT, behavior};

/// `sessionStart` hooks run after this delay, so that they do not slow the first answer.
const START_DELAY: Duration = Duration::from_millis(150);
/// What the sessions may take of [`SHUTDOWN_TIMEOUT`]: to stop their turns and to flush.
const SESSIONS_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(450);
/// What the servers of a workspace may take to end when nothing waits for it.
const SERVERS_END_TIMEOUT: Duration = Duration::from_secs(5);

// Each deadline leaves time for what comes after it.
const _: () = assert!(TURN_SHUTDOWN_TIMEOUT.as_millis() + 100 <= SESSIONS_SHUTDOWN_TIMEOUT.as_millis());
const _: () = assert!(SESSIONS_SHUTDOWN_TIMEOUT.as_millis() + 100 <= SHUTDOWN_TIMEOUT.as_millis());

pub(crate) struct Router {
    store: Arc<dyn Store>,
    source: Arc<dyn WorkspaceSource>,
    live: LiveSessions,
    frontends: HashMap<FrontendId, AttachedFrontend>,
    sessions: HashMap<SessionId, mpsc::UnboundedSender<Message>>,
    /// The chats of one folder share its servers and indexes.
    workspaces: Vec<KnownWorkspace>,
    released: mpsc::UnboundedSender<()>,
    releases: mpsc::UnboundedReceiver<()>,
    subagents: mpsc::UnboundedSender<StartSubagent>,
    subagent_requests: mpsc::UnboundedReceiver<StartSubagent>,
}

struct KnownWorkspace {
    spec: WorkspaceSpec,
    workspace: Arc<Workspace>,
    /// Gone when nothing uses the workspace any more.
    open: Weak<OpenWorkspace>,
}

impl Router {
    pub(crate) fn new(store: Arc<dyn Store>, source: Arc<dyn WorkspaceSource>, live: LiveSessions) -> Self {
        let (released, releases) = mpsc::unbounded_channel();
        let (subagents, subagent_requests) = mpsc::unbounded_channel();
        Self {
            store,
            source,
            live,
            frontends: HashMap::new(),
            sessions: HashMap::new(),
            workspaces: Vec::new(),
            released,
            releases,
            subagents,
            subagent_requests,
        }
    }

    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Envelope>,
        mut changes: mpsc::UnboundedReceiver<CatalogKind>,
    ) {
        loop {
            tokio::select! {
                biased;
                envelope = commands.recv() => match envelope {
                    Some(envelope) => self.handle(envelope),
                    None => break,
                },
                Some(kind) = changes.recv() => self.publish_to_all(EventBody::Catalog(kind)),
                Some(()) = self.releases.recv() => self.end_unused_workspaces(),
                Some(request) = self.subagent_requests.recv() => self.start_subagent(request),
            }
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "every other command goes on to the session it names")]
    fn handle(&mut self, Envelope { front, command }: Envelope) {
        match command {
            Command::Attach { port } => self.attach(front, port),
            Command::Detach => self.detach(front),
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
                Some((session, Delivery::IfLive)) => self.send(front, &session, other, None),
                Some((session, Delivery::Load)) => {
                    let start = self.start_of(front, session.clone(), &[], None);
                    self.send(front, &session, other, start);
                }
                None => self.query(front, other),
            },
        }
    }

    fn attach(&mut self, id: FrontendId, port: FrontendPort) {
        // Front-ends that went without a word.
        let closed = self.frontends.values().filter(|known| known.events.is_closed());
        for id in closed.map(|known| known.id).collect::<Vec<_>>() {
            self.detach(id);
        }
        self.source.attached(&port.abilities);
        let frontend = AttachedFrontend {
            id,
            abilities: port.abilities,
            events: port.events,
            calls: port.host,
            workspace: None,
            defaults: SessionSettings::default(),
        };
        self.frontends.insert(id, frontend);
    }

    /// Every session drops the front-end from its audience.
    fn detach(&mut self, id: FrontendId) {
        let Some(mut frontend) = self.frontends.remove(&id) else { return };
        frontend.workspace = None;
        self.sessions.retain(|_, mailbox| !mailbox.is_closed());
        for mailbox in self.sessions.values() {
            let _ = mailbox.send(Message { frontend: Some(frontend.clone()), command: Command::Detach });
        }
    }

    /// Commands that change nothing.
    #[allow(clippy::wildcard_enum_match_arm, reason = "every other command goes on to the session it names")]
    fn query(&mut self, front: FrontendId, command: Command) {
        let workspace = match self.workspace_of(front) {
            Ok(workspace) => workspace,
            Err(failure) => return refuse(command, failure),
        };
        match command {
            Command::Catalog { reply } => {
                let _ = reply.send(Ok(workspace.catalog()));
            }
            Command::Servers { reply } => {
                let _ = reply.send(Ok(workspace.servers()));
            }
            // A chat may have servers of its own, and their prompts. The front-end does not join it by asking.
            Command::SlashCommands { session: Some(session), query, reply } if self.is_live(&session) => {
                if let Some(mailbox) = self.sessions.get(&session) {
                    let command = Command::SlashCommands { session: Some(session.clone()), query, reply };
                    let _ = mailbox.send(Message { frontend: None, command });
                }
            }
            Command::SlashCommands { query, reply, .. } => {
                let _ = reply.send(Ok(slash::list(None, &workspace, &query)));
            }
            other => {
                tokio::spawn(queries::answer(self.store.clone(), workspace, other));
            }
        }
    }

    fn enter(&mut self, front: FrontendId, spec: WorkspaceSpec, reply: Reply<Catalog>) {
        let workspace = self.workspace(spec);
        if let Some(frontend) = self.frontends.get_mut(&front) {
            frontend.workspace = Some(workspace.clone());
        }
        workspace.files.warm(&workspace.roots);
        let _ = reply.send(Ok(workspace.catalog()));
    }

    fn workspace(&mut self, spec: WorkspaceSpec) -> Arc<OpenWorkspace> {
        let known = self.workspaces.iter().filter(|known| known.spec == spec);
        if let Some(open) = known.filter_map(|known| known.open.upgrade()).next() {
            return open;
        }
        let workspace = self.source.workspace(&spec);
        run_session_hooks(&workspace, HookEvent::SessionStart);
        let open = Arc::new(OpenWorkspace::new(workspace.clone(), self.released.clone()));
        self.workspaces.push(KnownWorkspace { spec, workspace, open: Arc::downgrade(&open) });
        open
    }

    /// Where a front-end works.
    fn workspace_of(&mut self, front: FrontendId) -> Result<Arc<OpenWorkspace>, Failure> {
        let frontend = self.frontends.get(&front).ok_or_else(Failure::closed)?;
        if let Some(workspace) = &frontend.workspace {
            return Ok(workspace.clone());
        }
        let workspace = self.workspace(WorkspaceSpec::default());
        if let Some(frontend) = self.frontends.get_mut(&front) {
            frontend.workspace = Some(workspace.clone());
        }
        Ok(workspace)
    }

    /// Ends the servers of workspaces that nothing uses any more.
    fn end_unused_workspaces(&mut self) {
        let unused = self.workspaces.extract_if(.., |known| known.open.strong_count() == 0);
        for KnownWorkspace { workspace, .. } in unused {
            tokio::spawn(async move {
                let ends = join_all(workspace.sources.iter().map(|source| source.shutdown()));
                let _ = tokio::time::timeout(SERVERS_END_TIMEOUT, ends).await;
            });
        }
    }

    fn open(
        &mut self,
        front: FrontendId,
        id: Option<SessionId>,
        workspace: Option<Vec<PathBuf>>,
        mut settings: SessionSettings,
        servers: Vec<ServerSpec>,
        reply: Reply<SessionInfo>,
    ) {
        let id = id.unwrap_or_else(new_session_id);
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
        roots: Option<&[PathBuf]>,
        settings: &mut SessionSettings,
    ) -> Result<Create, Failure> {
        if let Some(roots) = roots {
            must_be_folders(roots)?;
            // A front-end that names a workspace per session works there from now on.
            let workspace = self.workspace(WorkspaceSpec { roots: roots.to_vec(), options: None });
            if let Some(frontend) = self.frontends.get_mut(&front) {
                frontend.workspace = Some(workspace);
            }
        }
        let workspace = self.workspace_of(front)?;
        behavior::settle(settings, None, &workspace.settings)?;
        let frontend = self.frontends.get(&front).ok_or_else(Failure::closed)?;
        let (client, mut all) = (frontend.abilities.client.clone(), frontend.defaults.clone());
        all.apply(settings);
        all.behavior.get_or_insert_with(|| behavior::default_name(&workspace.settings));
        // Where nobody can be asked, the user says on the command line how far a chat may go.
        if workspace.settings.chat.default_trust && frontend.abilities.approvals {
            all.trust.get_or_insert(true);
        }
        let workspace = workspace.roots.clone();
        Ok(Create { workspace, settings: all, parent: None, client, facts: Vec::new() })
    }

    /// The settings that new chats of a front-end begin with.
    fn set_defaults(
        &mut self,
        front: FrontendId,
        mut change: SessionSettings,
    ) -> Result<SessionSettings, Failure> {
        let workspace = self.workspace_of(front)?;
        behavior::settle(&mut change, None, &workspace.settings)?;
        let frontend = self.frontends.get_mut(&front).ok_or_else(Failure::closed)?;
        frontend.defaults.apply(&change);
        Ok(frontend.defaults.clone())
    }

    /// `None`: the session is loaded already.
    fn start_of(
        &mut self,
        front: FrontendId,
        id: SessionId,
        servers: &[ServerSpec],
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
        let (store, live, subagents) = (self.store.clone(), self.live.clone(), self.subagents.clone());
        Some(Start { id, store, workspace, own_sources, live, create, subagents, subagent: None })
    }

    /// Opens the chat of a subagent and prompts it.
    fn start_subagent(&mut self, request: StartSubagent) {
        let StartSubagent { id, inherited, frontend, settings, prompt, accepted, ended, started } = request;
        let parent = &inherited.parent;
        let create = Create {
            workspace: parent.roots.to_vec(),
            settings,
            parent: Some(parent.id.clone()),
            client: "subagent".to_owned(),
            facts: Vec::new(),
        };
        let mailbox = actor::spawn(Start {
            id: id.clone(),
            store: self.store.clone(),
            workspace: parent.workspace.clone(),
            own_sources: Vec::new(),
            live: self.live.clone(),
            create: Some(create),
            subagents: self.subagents.clone(),
            subagent: Some((inherited, ended)),
        });
        self.sessions.insert(id.clone(), mailbox.clone());
        let command = Command::Prompt { session: id, prompt, reply: accepted };
        let _ = mailbox.send(Message { frontend, command });
        let _ = started.send(mailbox);
    }

    fn is_live(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|mailbox| !mailbox.is_closed())
    }

    /// Hands a command to a session, which is started first where `start` is given.
    fn send(&mut self, front: FrontendId, session: &SessionId, command: Command, start: Option<Start>) {
        if let Some(start) = start {
            self.sessions.retain(|_, mailbox| !mailbox.is_closed());
            self.sessions.insert(session.clone(), actor::spawn(start));
        }
        let Some(mailbox) = self.sessions.get(session) else { return refuse(command, Failure::closed()) };
        let frontend = self.frontends.get(&front).cloned();
        if let Err(mpsc::error::SendError(message)) = mailbox.send(Message { frontend, command }) {
            refuse(message.command, Failure::closed());
        }
    }

    /// Reads the other chat first, then opens the new one with its facts.
    fn fork(
        &mut self,
        front: FrontendId,
        session: SessionId,
        until: Option<ItemId>,
        reply: Reply<SessionInfo>,
    ) {
        let id = new_session_id();
        let (Ok(workspace), Some(frontend)) = (self.workspace_of(front), self.frontends.get(&front).cloned())
        else {
            let _ = reply.send(Err(Failure::closed()));
            return;
        };
        let (store, live, client) =
            (self.store.clone(), self.live.clone(), frontend.abilities.client.clone());
        let subagents = self.subagents.clone();
        let (mailbox, incoming) = mpsc::unbounded_channel::<Message>();
        let command = Command::Load { session: id.clone(), servers: Vec::new(), reply };
        let _ = mailbox.send(Message { frontend: Some(frontend), command });
        self.sessions.insert(id.clone(), mailbox);
        tokio::spawn(async move {
            match fork(store.as_ref(), &session, until, client).await {
                Ok(create) => {
                    let (own_sources, create, subagent) = (Vec::new(), Some(create), None);
                    let start =
                        Start { id, store, workspace, own_sources, live, create, subagents, subagent };
                    actor::run(start, incoming).await;
                }
                Err(failure) => reject_all(incoming, &failure).await,
            }
        });
    }

    fn publish_to_all(&self, body: EventBody) {
        for frontend in self.frontends.values() {
            frontend.events.push(Event { session: None, body: body.clone() });
        }
    }

    /// Every session stops its turn and flushes; then the servers end.
    fn shutdown(&mut self, reply: Reply<()>) {
        let sessions: Vec<_> = self.sessions.drain().map(|(_, mailbox)| mailbox).collect();
        let workspaces: Vec<_> = self.workspaces.drain(..).map(|known| known.workspace).collect();
        let begun = Instant::now();
        tokio::spawn(async move {
            let stops = sessions.into_iter().map(|mailbox| async move {
                let (reply, stopped) = oneshot::channel();
                if mailbox.send(Message { frontend: None, command: Command::Shutdown { reply } }).is_ok() {
                    let _ = stopped.await;
                }
            });
            let _ = tokio::time::timeout_at(begun + SESSIONS_SHUTDOWN_TIMEOUT, join_all(stops)).await;
            let hooks = workspaces.iter().filter_map(|known| run_session_hooks(known, HookEvent::SessionEnd));
            let hooks = join_all(hooks.collect::<Vec<_>>());
            let sources = workspaces.iter().flat_map(|workspace| &workspace.sources);
            let ends = join_all(sources.map(|source| source.shutdown()));
            let _ = tokio::time::timeout_at(begun + SHUTDOWN_TIMEOUT, ends).await;
            let _ = tokio::time::timeout(SESSION_END_HOOKS_TIMEOUT, hooks).await;
            let _ = reply.send(Ok(()));
        });
    }
}

/// Runs the hooks of a program's start or end beside everything else.
fn run_session_hooks(workspace: &Arc<Workspace>, event: HookEvent) -> Option<JoinHandle<()>> {
    hooks::has(workspace, event).then(|| {
        let workspace = workspace.clone();
        tokio::spawn(async move {
            if event == HookEvent::SessionStart {
                // Nothing is started before the first answer.
                tokio::time::sleep(START_DELAY).await;
            }
            hooks::run_outside(&workspace, event, serde_json::Map::new(), CancellationToken::new()).await;
        })
    })
}

fn new_session_id() -> SessionId {
    SessionId::new(uuid::Uuid::now_v7().to_string())
}

/// A chat in a folder that does not exist could do nothing but fail.
fn must_be_folders(roots: &[PathBuf]) -> Result<(), Failure> {
    match roots.iter().find(|root| !root.is_dir()) {
        None => Ok(()),
        Some(root) => Err(Failure::user(format!("There is no folder {}.", root.display()))
            .hint("Open the chat in a folder that exists.")),
    }
}

/// How a command reaches a session.
enum Delivery {
    /// Only where it is loaded already.
    IfLive,
    /// It is loaded for the command.
    Load,
}

/// The session whose actor must handle a command.
fn addressee(command: &Command) -> Option<(SessionId, Delivery)> {
    match command {
        Command::Cancel { session } | Command::Answer { session, .. } => {
            Some((session.clone(), Delivery::IfLive))
        }
        Command::Prompt { session, .. }
        | Command::Rollback { session, .. }
        | Command::Steer { session, .. }
        | Command::Close { session, .. }
        | Command::Delete { session, .. }
        | Command::Configure { session: Some(session), .. } => Some((session.clone(), Delivery::Load)),
        Command::Attach { .. }
        | Command::Detach
        | Command::Enter { .. }
        | Command::Open { .. }
        | Command::Load { .. }
        | Command::Read { .. }
        | Command::List { .. }
        | Command::Fork { .. }
        | Command::Configure { .. }
        | Command::Catalog { .. }
        | Command::Contexts { .. }
        | Command::SlashCommands { .. }
        | Command::Servers { .. }
        | Command::ServerAction { .. }
        | Command::ReadFile { .. }
        | Command::Stat { .. }
        | Command::Glob { .. }
        | Command::Complete { .. }
        | Command::Shutdown { .. } => None,
    }
}
