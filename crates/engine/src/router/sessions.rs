//! How sessions begin: new, loaded, forked from another one, or as the chat of a subagent.
//!
//! Must not know what sessions do. Invariant: the router starts an actor and goes on; the actor reads the store.

use std::path::PathBuf;

use domain::command::{Command, ServerSpec, SessionInfo, SessionSettings, WorkspaceSpec};
use domain::{Failure, FrontendId, ItemId, Reply, SessionId};
use session::fork::fork;
use session::refusal::reject_all;
use session::{Create, Message, actor};
use tokio::sync::mpsc;

use super::Router;
use crate::behavior;
use crate::session::StartSubagent;
use crate::session::start::{self, Start};

impl Router {
    pub(super) fn open(
        &mut self,
        front: FrontendId,
        id: Option<SessionId>,
        workspace: Option<Vec<PathBuf>>,
        mut settings: SessionSettings,
        servers: Vec<ServerSpec>,
        reply: Reply<SessionInfo>,
    ) {
        let id = id.unwrap_or_else(new_session_id);
        if self.is_live(&id) {
            let command = Command::Load { session: id.clone(), servers: Vec::new(), reply };
            return self.send(front, &id, command, None);
        }
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
            // A front-end that names a workspace per session works there from now on.
            let workspace = self.workspace(&WorkspaceSpec { roots: roots.to_vec(), options: None })?;
            self.set_entered(front, workspace);
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
    pub(super) fn set_defaults(
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
    pub(super) fn start_of(
        &mut self,
        front: FrontendId,
        id: SessionId,
        servers: &[ServerSpec],
        create: Option<Create>,
    ) -> Option<Start> {
        // A front-end of another process works with the chats that are here.
        let is_remote = self.frontends.get(&front).is_some_and(|frontend| frontend.abilities.remote);
        if is_remote || self.is_live(&id) {
            return None;
        }
        let workspace = self.workspace_of(front).ok()?;
        let (deps, servers) = (self.deps.clone(), servers.to_vec());
        Some(Start { id, deps, workspace, servers, create, subagent: None })
    }

    /// Opens the chat of a subagent and prompts it.
    pub(super) fn start_subagent(&mut self, request: StartSubagent) {
        if self.is_down {
            return;
        }
        let StartSubagent { id, inherited, frontend, settings, workspace, prompt, accepted, ended, started } =
            request;
        let parent = &inherited.parent;
        let (roots, workspace) = match workspace {
            Some(workspace) => (workspace.roots.clone(), self.add_workspace(workspace)),
            None => (parent.roots.to_vec(), parent.workspace.clone()),
        };
        let create = Create {
            workspace: roots,
            settings,
            parent: Some(parent.id.clone()),
            client: "subagent".to_owned(),
            facts: Vec::new(),
        };
        let mailbox = start::spawn(Start {
            id: id.clone(),
            deps: self.deps.clone(),
            workspace,
            servers: Vec::new(),
            create: Some(create),
            subagent: Some((inherited, ended)),
        });
        self.sessions.insert(id.clone(), mailbox.clone());
        let command = Command::Prompt { session: id, prompt, reply: accepted };
        let _ = mailbox.send(Message { frontend, command });
        let _ = started.send(mailbox);
    }

    /// Reads the other chat first, then opens the new one with its facts.
    pub(super) fn fork(
        &mut self,
        front: FrontendId,
        session: SessionId,
        until: Option<ItemId>,
        id: Option<SessionId>,
        reply: Reply<SessionInfo>,
    ) {
        let id = id.unwrap_or_else(new_session_id);
        if self.is_live(&id) {
            let command = Command::Load { session: id.clone(), servers: Vec::new(), reply };
            return self.send(front, &id, command, None);
        }
        let (Ok(workspace), Some(frontend)) = (self.workspace_of(front), self.frontends.get(&front).cloned())
        else {
            let _ = reply.send(Err(Failure::closed()));
            return;
        };
        let (deps, client) = (self.deps.clone(), frontend.abilities.client.clone());
        let (mailbox, incoming) = mpsc::unbounded_channel::<Message>();
        let command = Command::Load { session: id.clone(), servers: Vec::new(), reply };
        let _ = mailbox.send(Message { frontend: Some(frontend), command });
        self.sessions.insert(id.clone(), mailbox);
        tokio::spawn(async move {
            match fork(deps.store.as_ref(), &session, until, client).await {
                Ok(create) => {
                    let (servers, create, subagent) = (Vec::new(), Some(create), None);
                    let start = Start { id, deps, workspace, servers, create, subagent };
                    actor::run(start.into(), incoming).await;
                }
                Err(failure) => reject_all(incoming, &failure).await,
            }
        });
    }
}

fn new_session_id() -> SessionId {
    SessionId::new(uuid::Uuid::now_v7().to_string())
}
