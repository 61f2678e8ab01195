//! The check between a caller and the engine: one function decides about each command.
//!
//! Must not know HTTP or WebSockets. Invariants: a command that `rule` does not name is refused; a caller reaches only chats
//! whose folders are all among its own, by their real paths; grants, trust, servers, environment and settings of a client
//! are refused unless the administrator named them; what changes something is in the audit log before it happens.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use domain::command::{Reply, SessionInfo, UserPrompt, reply};
use domain::link::{Engine, Envelope};
use domain::queue::EventSender;
use domain::store::SessionSummary;
use domain::{Abilities, Command, Fact, Failure, FrontendId, SessionId, Store};
use tokio::sync::mpsc;

use crate::audit::{Act, Audit};
use crate::caller::{Caller, Role};
use crate::client_input::{
    check_change, check_contexts, check_id, check_server_action, check_server_command, check_servers,
    check_settings, detail_of, name_of,
};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::policy::{Policy, least};

/// Chats that are remembered until they are stored.
const MOST_OPENED: usize = 10_000;
/// The longest name of a client.
const LONGEST_CLIENT: usize = 60;

/// The guard of one server. Cheap to clone.
#[derive(Clone)]
pub struct Guard(Arc<Shared>);

struct Shared {
    engine: Engine,
    store: Arc<dyn Store>,
    policy: Policy,
    audit: Audit,
    ledger: Ledger,
    limits: Limits,
    /// The folders of chats that were opened here and may not be stored yet.
    opened: Mutex<HashMap<SessionId, Vec<PathBuf>>>,
}

/// Who may send a command, and to which chat.
enum Rule<'c> {
    /// Done where the server runs, by no client.
    Nobody,
    Needs {
        role: Role,
        chat: Option<&'c SessionId>,
        /// The command works in the folder that the front-end has entered.
        entered: bool,
        /// What the log calls it; `None`: it changes nothing.
        action: Option<&'static str>,
    },
}

impl Guard {
    pub fn new(engine: Engine, store: Arc<dyn Store>, policy: Policy) -> Self {
        let audit = Audit::new(store.clone());
        let ledger = Ledger::new(engine.clone(), store.clone(), audit.clone(), policy.team_budget);
        let (limits, opened) = (Limits::default(), Mutex::default());
        Self(Arc::new(Shared { engine, store, policy, audit, ledger, limits, opened }))
    }

    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// The engine as this caller may use it. It ends with the caller's token.
    pub fn engine_for(&self, caller: Caller) -> Engine {
        let (engine, commands) = domain::link::engine();
        let proxy = Proxy { shared: self.0.clone(), caller, fronts: HashMap::new(), entered: HashMap::new() };
        tokio::spawn(proxy.run(commands));
        engine
    }

    /// Whether the caller may know that there is such a chat.
    pub async fn may_see(&self, caller: &Caller, chat: &SessionId) -> Result<bool, Failure> {
        Ok(self.0.folders_of(chat).await?.is_some_and(|folders| is_inside(caller, &folders)))
    }
}

impl Shared {
    /// The real folders of a chat; `None` where there is no such chat.
    async fn folders_of(&self, chat: &SessionId) -> Result<Option<Vec<PathBuf>>, Failure> {
        let known = self.opened().get(chat).cloned();
        let folders = match known {
            Some(folders) => folders,
            None => match self.store.read(chat, 0, 1).await?.into_iter().next().map(|first| first.fact) {
                Some(Fact::SessionOpened(opened)) => opened.workspace,
                Some(_) | None => return Ok(None),
            },
        };
        let mut real = Vec::new();
        for folder in folders {
            match tokio::fs::canonicalize(&folder).await {
                Ok(path) => real.push(path),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(real))
    }

    /// The folders of a chat that may not be stored yet.
    fn remember(&self, chat: SessionId, folders: Vec<PathBuf>) {
        let mut opened = self.opened();
        if opened.len() >= MOST_OPENED {
            // All but the newest are stored.
            opened.clear();
        }
        opened.insert(chat, folders);
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<PathBuf>>> {
        self.opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A chat without a folder is nobody's.
fn is_inside(caller: &Caller, folders: &[PathBuf]) -> bool {
    !folders.is_empty() && folders.iter().all(|folder| caller.workspaces.contains(folder))
}

struct Proxy {
    shared: Arc<Shared>,
    caller: Caller,
    /// The front-ends that attached, and their queues.
    fronts: HashMap<FrontendId, EventSender>,
    /// Front-ends that work in a folder of the caller.
    entered: HashMap<FrontendId, Vec<PathBuf>>,
}

impl Proxy {
    async fn run(mut self, mut commands: mpsc::Receiver<Envelope>) {
        loop {
            let received = tokio::select! {
                biased;
                () = self.caller.ended.cancelled() => None,
                received = commands.recv() => received,
            };
            let Some(Envelope { front, command }) = received else { break };
            self.handle(front, command).await;
        }
        // Their streams end.
        for (front, events) in self.fronts {
            events.close();
            let _ = self.shared.engine.pass(Envelope { front, command: Command::Detach }).await;
        }
    }

    async fn handle(&mut self, front: FrontendId, mut command: Command) {
        let name = name_of(&command);
        if let Err(failure) = self.check(front, &mut command).await {
            self.slow_down().await;
            let detail = format!("{name}: {}", failure.message);
            let act = Act { who: &self.caller.name, action: "refused", chat: None, detail: Some(&detail) };
            if let Err(failure) = self.shared.audit.write(act).await {
                tracing::error!(%failure, "a refusal could not be written to the audit log");
            }
            return command.refuse(failure);
        }
        if let Command::Shutdown { reply } = command {
            // The client leaves; the server stays.
            let _ = self.shared.engine.pass(Envelope { front, command: Command::Detach }).await;
            let _ = reply.send(Ok(()));
            return;
        }
        if let Err(failure) = self.shared.engine.pass(Envelope { front, command }).await {
            tracing::debug!(%failure, "the engine is gone");
        }
    }

    /// A caller whose commands come too fast waits, so that nobody fills the log; other callers do not.
    async fn slow_down(&self) {
        while let Err(wait) = self.shared.limits.account(&self.caller.name, Instant::now()) {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.caller.ended.cancelled() => return,
            }
        }
    }

    /// The one place that decides. What a client may not set is taken out of the command or refused.
    async fn check(&mut self, front: FrontendId, command: &mut Command) -> Result<(), Failure> {
        let Rule::Needs { role, chat, entered, action } = rule(command) else {
            return Err(Failure::user("A client of a server cannot do this.")
                .hint("Do it in a terminal where the server runs."));
        };
        if self.caller.role < role {
            return Err(Failure::user(format!(
                "This needs the role {}; {} has the role {}.",
                role.as_str(),
                self.caller.name,
                self.caller.role.as_str()
            ))
            .hint("Ask the administrator of the server for a token with this role."));
        }
        if !self.fronts.contains_key(&front) && !matches!(command, Command::Attach { .. }) {
            return Err(Failure::closed());
        }
        if entered && !self.entered.contains_key(&front) {
            return Err(no_folder());
        }
        let chat = chat.cloned();
        if let Some(chat) = &chat {
            let folders = self.shared.folders_of(chat).await?;
            if !folders.is_some_and(|folders| is_inside(&self.caller, &folders)) {
                return Err(no_chat());
            }
        }
        self.restrict(front, command).await?;
        if let Some(action) = action {
            self.slow_down().await;
            let detail = detail_of(command);
            let (chat, detail) = (chat.as_ref().map(SessionId::as_str), detail.as_deref());
            self.shared.audit.write(Act { who: &self.caller.name, action, chat, detail }).await?;
        }
        Ok(())
    }

    /// Checks and narrows what a command carries.
    #[allow(clippy::wildcard_enum_match_arm, reason = "`rule` names every command")]
    async fn restrict(&mut self, front: FrontendId, command: &mut Command) -> Result<(), Failure> {
        match command {
            Command::Attach { port } => {
                port.abilities = self.abilities(&port.abilities);
                self.fronts.insert(front, port.events.clone());
            }
            Command::Detach => {
                self.fronts.remove(&front);
                self.entered.remove(&front);
            }
            Command::Enter { workspace, .. } => {
                check_settings(&mut workspace.options, &self.shared.policy.settings)?;
                workspace.roots = self.real_folders(&workspace.roots).await?;
                self.entered.insert(front, workspace.roots.clone());
            }
            Command::Open { .. } => self.restrict_open(front, command).await?,
            Command::Load { servers, .. } => check_servers(servers, &self.shared.policy)?,
            Command::Fork { id, reply, .. } => {
                if let Some(id) = id
                    && !self.check_new(id).await?
                {
                    return Err(Failure::user("There is a chat with this id.").hint("Choose another one."));
                }
                self.learn(reply, None);
            }
            Command::List { filter, reply } => {
                filter.workspace = Some(self.named_folders(filter.workspace.take()).await);
                self.hide_others(reply);
            }
            Command::Configure { change, .. } => check_change(change)?,
            Command::Prompt { session, prompt, .. } => self.restrict_prompt(session, prompt).await?,
            Command::Complete { completion, .. } => {
                self.shared.ledger.check(&self.caller).await?;
                completion.gate = self.shared.ledger.gate(&self.caller, None);
            }
            Command::ServerAction { action, .. } => check_server_action(action)?,
            // A chat that is deleted is no longer known; one that is not stays stored.
            Command::Delete { session, .. } => drop(self.shared.opened().remove(session)),
            _ => {}
        }
        Ok(())
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "only this command comes here")]
    async fn restrict_open(&self, front: FrontendId, command: &mut Command) -> Result<(), Failure> {
        let Command::Open { id, workspace, settings, servers, reply } = command else { return Ok(()) };
        let is_new = match id {
            Some(id) => self.check_new(id).await?,
            None => false,
        };
        match workspace {
            Some(roots) => *roots = self.real_folders(roots).await?,
            None if self.entered.contains_key(&front) => {}
            None => return Err(no_folder()),
        }
        check_change(settings)?;
        check_servers(servers, &self.shared.policy)?;
        let chosen = id.clone().filter(|_| is_new);
        if let Some(id) = &chosen {
            // The next command for the chat may come before the reply.
            let roots = workspace.clone().or_else(|| self.entered.get(&front).cloned());
            self.shared.remember(id.clone(), roots.unwrap_or_default());
        }
        self.learn(reply, chosen);
        Ok(())
    }

    async fn restrict_prompt(&self, session: &SessionId, prompt: &mut UserPrompt) -> Result<(), Failure> {
        check_change(&mut prompt.change)?;
        check_server_command(&prompt.text, self.caller.role)?;
        check_contexts(&prompt.contexts)?;
        prompt.limits.listed_resources = true;
        let left = self.shared.ledger.check(&self.caller).await?;
        prompt.limits.max_cost = least(prompt.limits.max_cost, left);
        prompt.limits.gate = self.shared.ledger.gate(&self.caller, Some(session.clone()));
        let folders = self.shared.folders_of(session).await?.unwrap_or_default();
        self.shared.ledger.watch(&self.caller.name, session, folders).await
    }

    /// Chats that also have other folders are not listed.
    fn hide_others(&self, reply: &mut Reply<Vec<SessionSummary>>) {
        let (caller, theirs) = (self.caller.clone(), take(reply));
        let (ours, listed) = domain::command::reply();
        *reply = ours;
        tokio::spawn(async move {
            let listed = listed.await.map(|mut chats: Vec<SessionSummary>| {
                chats.retain(|chat| is_inside(&caller, &chat.workspace));
                chats
            });
            let _ = theirs.send(listed);
        });
    }

    /// Files are where the server is, nothing is granted without asking, and a viewer is not asked.
    fn abilities(&self, claimed: &Abilities) -> Abilities {
        let may_answer = self.caller.role >= Role::Drive;
        let client: String = claimed.client.chars().take(LONGEST_CLIENT).collect();
        Abilities {
            client: format!("{} ({client})", self.caller.name),
            approvals: claimed.approvals && may_answer,
            questions: claimed.questions && may_answer,
            forms: claimed.forms && may_answer,
            subagents: claimed.subagents,
            ..Abilities::default()
        }
    }

    /// The real paths of these folders, if all of them are the caller's.
    async fn real_folders(&self, folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        let mut real = Vec::new();
        for folder in folders {
            // A relative path would mean the folder of the server's process.
            let path = if folder.is_absolute() { tokio::fs::canonicalize(folder).await.ok() } else { None };
            match path.filter(|path| self.caller.workspaces.contains(path)) {
                Some(path) => real.push(path),
                None => return Err(foreign_folder(folder, &self.caller.workspaces)),
            }
        }
        if real.is_empty() { Err(no_folder()) } else { Ok(real) }
    }

    /// The folders of a list: those of the caller, or those of them that were named.
    async fn named_folders(&self, named: Option<Vec<PathBuf>>) -> Vec<PathBuf> {
        let Some(named) = named else { return self.caller.workspaces.clone() };
        let mut real = Vec::new();
        for folder in named {
            if let Ok(path) = tokio::fs::canonicalize(folder).await
                && self.caller.workspaces.contains(&path)
            {
                real.push(path);
            }
        }
        real
    }

    /// An id that a client chose: of no chat, or of one that the caller may see. Whether it is of no chat.
    async fn check_new(&self, id: &SessionId) -> Result<bool, Failure> {
        match self.shared.folders_of(id).await? {
            Some(folders) if !is_inside(&self.caller, &folders) => Err(no_chat()),
            None if self.shared.store.newest(id).await?.is_some() => Err(no_chat()),
            Some(_) => Ok(false),
            None => check_id(id).map(|()| true),
        }
    }

    /// Remembers the folders of a chat before it is stored. `chosen`: forgotten again where it could not be opened.
    fn learn(&self, reply: &mut Reply<SessionInfo>, chosen: Option<SessionId>) {
        let (shared, theirs) = (self.shared.clone(), take(reply));
        let (ours, opened) = domain::command::reply();
        *reply = ours;
        tokio::spawn(async move {
            let opened: Result<SessionInfo, Failure> = opened.await;
            match (&opened, chosen) {
                (Ok(info), _) => {
                    shared.remember(info.id.clone(), info.workspace.clone());
                }
                (Err(_), Some(id)) => {
                    shared.opened().remove(&id);
                }
                (Err(_), None) => {}
            }
            let _ = theirs.send(opened);
        });
    }
}

/// Takes a reply out of its command; the caller puts another one in.
fn take<T>(place: &mut Reply<T>) -> Reply<T> {
    let (unused, _) = reply();
    std::mem::replace(place, unused)
}

/// Which role a command needs. A new command is refused until it is here.
fn rule(command: &Command) -> Rule<'_> {
    let needs = |role, chat, action| Rule::Needs { role, chat, entered: false, action };
    let inside = |role, chat| Rule::Needs { role, chat, entered: true, action: None };
    match command {
        Command::Attach { .. }
        | Command::Detach
        | Command::Enter { .. }
        | Command::List { .. }
        // Becomes the end of this front-end.
        | Command::Shutdown { .. } => needs(Role::View, None, None),
        Command::Catalog { .. } => inside(Role::View, None),
        Command::Load { session, .. }
        | Command::Preview { session, .. }
        | Command::Read { session, .. }
        | Command::Close { session, .. } => needs(Role::View, Some(session), None),
        Command::Open { .. } => needs(Role::Drive, None, Some("open")),
        Command::Fork { session, .. } => needs(Role::Drive, Some(session), Some("fork")),
        Command::Rollback { session, .. } => needs(Role::Drive, Some(session), Some("rollback")),
        Command::Flag { session, .. } => needs(Role::Drive, Some(session), Some("flag")),
        Command::Configure { session, .. } => needs(Role::Drive, session.as_ref(), Some("configure")),
        Command::Agent { session, .. } => needs(Role::Drive, Some(session), Some("configure")),
        Command::Prompt { session, .. } => needs(Role::Drive, Some(session), Some("prompt")),
        Command::Steer { session, .. } => needs(Role::Drive, Some(session), Some("steer")),
        Command::Cancel { session } | Command::CancelCall { session, .. } => {
            needs(Role::Drive, Some(session), Some("stop"))
        }
        Command::Answer { session, .. } => needs(Role::Drive, Some(session), Some("answer")),
        Command::Contexts { session, .. }
        | Command::SlashCommands { session, .. }
        | Command::Servers { session, .. }
        | Command::ReadFile { session, .. }
        | Command::Stat { session, .. }
        | Command::Glob { session, .. } => inside(Role::Drive, session.as_ref()),
        Command::CompleteArgument { .. } => inside(Role::Drive, None),
        Command::Complete { .. } => {
            Rule::Needs { role: Role::Drive, chat: None, entered: true, action: Some("complete") }
        }
        Command::Delete { session, .. } => needs(Role::Admin, Some(session), Some("delete")),
        Command::ServerAction { .. } => {
            Rule::Needs { role: Role::Admin, chat: None, entered: true, action: Some("server") }
        }
        Command::Providers { .. } => inside(Role::Admin, None),
        // The user's own facts; jobs of all chats, also of those in other folders.
        Command::Memory { .. } | Command::Jobs { .. } | Command::StopJob { .. } | Command::JobOutput { .. } => {
            Rule::Nobody
        }
        // The accounts of the server's owner.
        Command::Login { .. } | Command::FinishLogin { .. } | Command::Logout { .. } => Rule::Nobody,
    }
}

/// The same words whether there is none or it is in another folder.
fn no_chat() -> Failure {
    Failure::user("There is no such chat in your folders.").hint("Open one from the list.")
}

fn no_folder() -> Failure {
    Failure::user("No folder was named.").hint("Open one of the folders that this server names.")
}

/// Names the folders that can be opened: the editor's own path may be another one.
fn foreign_folder(folder: &Path, workspaces: &[PathBuf]) -> Failure {
    let names: Vec<String> = workspaces.iter().map(|path| path.display().to_string()).collect();
    let hint = if names.is_empty() {
        "Ask the administrator to name it with --workspace.".to_owned()
    } else {
        format!("There: {}. The administrator names others with --workspace.", names.join(", "))
    };
    let told = format!("{} is not a folder that this server lets you open.", folder.display());
    Failure::user(told).hint(hint)
}
