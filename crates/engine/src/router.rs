//! The router: receives every command in arrival order and hands it to a session or to a task of its own.
//!
//! Must not know what sessions do. Invariants: the router never waits for the store, the disk or a model, and reads nothing
//! from the disk; the commands of one front-end keep their order; a workspace ends with the last front-end and session that
//! use it.

mod resolver;
mod sessions;
mod shutdown;
mod workspaces;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use domain::command::{Command, SessionSettings, WorkspaceSpec};
use domain::event::{CatalogKind, EventBody};
use domain::link::{Envelope, FrontendPort};
use domain::{Event, Failure, FrontendId, Peers, SessionId, Store};
use session::refusal::refuse;
use session::{AttachedFrontend, Message};
use tokio::sync::mpsc;

use crate::decisions::Decisions;
use crate::jobs;
use crate::queries;
use crate::session::start::{self, SessionDeps, Start, WorkspaceRequest};
use crate::session::{LiveSessions, StartSubagent};
use crate::workspace::{OpenWorkspace, Workspace, WorkspaceSource};
use resolver::{ResolveRequest, ResolvedWorkspace};

pub(crate) struct Router {
    deps: SessionDeps,
    frontends: HashMap<FrontendId, AttachedFrontend>,
    /// Where front-ends work, once they have entered a workspace.
    entered: HashMap<FrontendId, Arc<OpenWorkspace>>,
    /// Commands of front-ends that wait for a workspace, in order.
    waiting: HashMap<FrontendId, VecDeque<Command>>,
    sessions: HashMap<SessionId, mpsc::UnboundedSender<Message>>,
    /// The chats of one folder share its servers and indexes.
    workspaces: Vec<KnownWorkspace>,
    released: mpsc::UnboundedSender<()>,
    releases: mpsc::UnboundedReceiver<()>,
    subagent_requests: mpsc::UnboundedReceiver<StartSubagent>,
    returns: mpsc::UnboundedReceiver<Message>,
    workspace_requests: mpsc::UnboundedReceiver<WorkspaceRequest>,
    resolver: mpsc::UnboundedSender<ResolveRequest>,
    /// The program ends: nothing new begins.
    is_down: bool,
    resolved: mpsc::UnboundedReceiver<ResolvedWorkspace>,
}

struct KnownWorkspace {
    /// `None`: it belongs to one subagent.
    spec: Option<WorkspaceSpec>,
    workspace: Arc<Workspace>,
    /// Gone when the last user of the workspace is gone.
    open: Weak<OpenWorkspace>,
}

impl Router {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        source: Arc<dyn WorkspaceSource>,
        live: LiveSessions,
        peers: Option<Arc<dyn Peers>>,
        decisions: Arc<dyn Decisions>,
    ) -> Self {
        let (released, releases) = mpsc::unbounded_channel();
        let (subagents, subagent_requests) = mpsc::unbounded_channel();
        let (returned, returns) = mpsc::unbounded_channel();
        let (workspaces, workspace_requests) = mpsc::unbounded_channel();
        let (resolver, resolved) = resolver::start(source.clone());
        Self {
            deps: SessionDeps { store, live, peers, subagents, returned, workspaces, decisions, source },
            frontends: HashMap::new(),
            entered: HashMap::new(),
            waiting: HashMap::new(),
            sessions: HashMap::new(),
            workspaces: Vec::new(),
            released,
            releases,
            subagent_requests,
            returns,
            workspace_requests,
            resolver,
            is_down: false,
            resolved,
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
                Some(message) = self.returns.recv() => self.handle_again(message),
                Some(request) = self.workspace_requests.recv() => self.find_workspace(request),
                Some(resolved) = self.resolved.recv() => self.go_on_with(resolved),
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

    /// A command that needs a workspace waits until that is there, and the later ones of its front-end with it.
    fn handle(&mut self, Envelope { front, command }: Envelope) {
        // A stop is heard at once, also where its front-end waits, or the actor for a store that is away.
        if let Command::Cancel { session } = &command
            && let Some(live) = self.deps.live.find(session)
        {
            live.request_stop();
        }
        let passes = matches!(command, Command::Shutdown { .. } | Command::Detach);
        match self.waiting.get_mut(&front).filter(|_| !passes) {
            Some(waiting) => waiting.push_back(command),
            None => {
                if let Some(command) = self.resolve_for(front, command) {
                    self.handle_now(front, command);
                }
            }
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "every other command goes on to the session it names")]
    fn handle_now(&mut self, front: FrontendId, command: Command) {
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
            Command::Fork { session, until, id, reply } => self.fork(front, session, until, id, reply),
            Command::Configure { session: None, change, reply } => {
                let _ = reply.send(self.set_defaults(front, change));
            }
            Command::Shutdown { reply } => self.shutdown(reply),
            Command::Jobs { .. } | Command::StopJob { .. } | Command::JobOutput { .. } => {
                // A chat may work in a workspace that its front-end has left.
                let sources = self.workspaces.iter().flat_map(|known| known.workspace.sources.clone());
                tokio::spawn(jobs::answer(sources.collect(), self.deps.live.clone(), command));
            }
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

    /// A command came while its chat was closing: the chat is loaded again where the command does that.
    fn handle_again(&mut self, Message { frontend, command }: Message) {
        match frontend {
            Some(frontend) => self.handle(Envelope { front: frontend.id, command }),
            None => refuse(command, Failure::closed()),
        }
    }

    fn attach(&mut self, id: FrontendId, port: FrontendPort) {
        // Front-ends that went without a word.
        let closed = self.frontends.values().filter(|known| known.events.is_closed());
        for id in closed.map(|known| known.id).collect::<Vec<_>>() {
            self.detach(id);
        }
        if !port.abilities.remote {
            let _ = self.resolver.send(ResolveRequest::Attached(port.abilities.clone()));
        }
        let frontend = AttachedFrontend {
            id,
            abilities: port.abilities,
            events: port.events,
            calls: port.host,
            defaults: SessionSettings::default(),
        };
        self.frontends.insert(id, frontend);
    }

    /// Every session drops the front-end from its audience.
    fn detach(&mut self, id: FrontendId) {
        let Some(frontend) = self.frontends.remove(&id) else { return };
        self.entered.remove(&id);
        for command in self.waiting.remove(&id).into_iter().flatten() {
            refuse(command, Failure::closed());
        }
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
            // A chat may have servers of its own, and their prompts. The front-end does not join it by asking.
            Command::Servers { session: Some(ref session), .. }
            | Command::SlashCommands { session: Some(ref session), .. }
                if self.is_live(session) =>
            {
                if let Some(mailbox) = self.sessions.get(session) {
                    let _ = mailbox.send(Message { frontend: None, command });
                }
            }
            Command::Servers { reply, .. } => {
                let _ = reply.send(Ok(workspace.servers()));
            }
            other => {
                tokio::spawn(queries::answer(self.deps.store.clone(), workspace, other));
            }
        }
    }

    fn is_live(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|mailbox| !mailbox.is_closed())
    }

    /// Hands a command to a session, which is started first where `start` is given.
    fn send(&mut self, front: FrontendId, session: &SessionId, command: Command, start: Option<Start>) {
        if let Some(start) = start {
            self.sessions.retain(|_, mailbox| !mailbox.is_closed());
            self.sessions.insert(session.clone(), start::spawn(start));
        }
        let Some(mailbox) = self.sessions.get(session) else { return refuse(command, Failure::closed()) };
        let frontend = self.frontends.get(&front).cloned();
        if let Err(mpsc::error::SendError(message)) = mailbox.send(Message { frontend, command }) {
            refuse(message.command, Failure::closed());
        }
    }

    fn publish_to_all(&self, body: EventBody) {
        for frontend in self.frontends.values() {
            frontend.events.push(Event { session: None, body: body.clone() });
        }
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
        Command::Cancel { session }
        | Command::CancelCall { session, .. }
        | Command::Answer { session, .. }
        | Command::Agent { session, .. } => Some((session.clone(), Delivery::IfLive)),
        Command::Prompt { session, .. }
        | Command::Rollback { session, .. }
        | Command::Flag { session, .. }
        | Command::Steer { session, .. }
        | Command::Close { session, .. }
        | Command::Delete { session, .. }
        | Command::Configure { session: Some(session), .. } => Some((session.clone(), Delivery::Load)),
        Command::Attach { .. }
        | Command::Detach
        | Command::Enter { .. }
        | Command::Open { .. }
        | Command::Load { .. }
        | Command::Preview { .. }
        | Command::Read { .. }
        | Command::List { .. }
        | Command::Fork { .. }
        | Command::Configure { .. }
        | Command::Catalog { .. }
        | Command::Contexts { .. }
        | Command::SlashCommands { .. }
        | Command::CompleteArgument { .. }
        | Command::Servers { .. }
        | Command::ServerAction { .. }
        | Command::Providers { .. }
        | Command::Login { .. }
        | Command::FinishLogin { .. }
        | Command::Logout { .. }
        | Command::Jobs { .. }
        | Command::StopJob { .. }
        | Command::JobOutput { .. }
        | Command::Memory { .. }
        | Command::ReadFile { .. }
        | Command::Stat { .. }
        | Command::Glob { .. }
        | Command::Complete { .. }
        | Command::Shutdown { .. } => None,
    }
}
