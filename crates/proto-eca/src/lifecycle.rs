//! The beginning and the end of a connection, and its folders.
//!
//! Invariant: no notification leaves before the response to `initialize`, and none about models and servers before
//! `initialized`.

use std::path::PathBuf;

use domain::command::{Catalog, WorkspaceSpec};
use domain::{Command, Failure};
use rpc::Fault;

use crate::catalog;
use crate::dialect;
use crate::dialect_interface::Dialect;
use crate::faults::fault_of;
use crate::from_wire;
use crate::reply::Reply;
use crate::server::Server;
use crate::settings::respond_or_show;
use crate::to_wire;
use crate::wire::Empty;
use crate::wire::requests::{
    ChangeWorkspaceFolders, FoldersParams, Initialize, InitializeParams, InitializeResult, Initialized,
    Shutdown, WorkspaceFolder,
};

pub(crate) async fn initialize(server: &mut Server, params: InitializeParams, reply: Reply<Initialize>) {
    if server.engine.commands().is_some() {
        return reply.refuse(Fault::new(Fault::INVALID_REQUEST, "This connection is initialized already."));
    }
    let is_remote = server.options.is_remote;
    if let Some(pid) = params.process_id.filter(|_| !is_remote).and_then(|pid| u32::try_from(pid).ok()) {
        let _ = server.options.parent.send(pid);
    }
    server.dialect = dialect::of_client(&params);
    let mut abilities = from_wire::abilities(&params);
    server.dialect.adapt(&mut abilities);
    if is_remote {
        (abilities.diagnostics, abilities.definition, abilities.references) = (false, false, false);
    }
    if let Err(failure) = server.engine.attach(abilities.clone()).await {
        return reply.refuse(fault_of(&failure));
    }
    let folders = params.workspace_folders.unwrap_or_default();
    let roots: Vec<PathBuf> = folders.iter().map(|folder| from_wire::path(&folder.uri)).collect();
    let options = params.initialization_options.filter(|options| !options.is_null());
    let workspace = WorkspaceSpec { roots, options };
    server.client_setup = Some((abilities, workspace.clone()));
    server.begin_initializing();
    server
        .engine
        .call(
            |reply| Command::Enter { workspace, reply },
            move |server, entered| finish_initializing(server, entered, reply),
        )
        .await;
}

fn finish_initializing(server: &mut Server, entered: Result<Catalog, Failure>, reply: Reply<Initialize>) {
    let result = entered.map(|catalog| {
        let chat_welcome_message = catalog.welcome.clone();
        server.catalog = catalog;
        let path = server.options.global_config.as_deref();
        let global_config_path = path.map(|path| path.display().to_string());
        InitializeResult { chat_welcome_message, global_config_path }
    });
    server.respond(reply, result);
    server.end_initializing();
}

/// A client whose first prompt has the draft's `context` speaks the draft protocol, which has no approvals.
pub(crate) async fn switch_dialect(server: &mut Server, dialect: &'static dyn Dialect<Server>) {
    let Some((mut abilities, workspace)) = server.client_setup.clone() else { return };
    if server.dialect.name() == dialect.name() || server.has_sessions() {
        return;
    }
    server.dialect = dialect;
    dialect.adapt(&mut abilities);
    server.engine.post(Command::Detach).await;
    if let Err(failure) = server.engine.attach(abilities).await {
        tracing::error!(%failure, "the engine takes no draft client");
    }
    server.engine.call(|reply| Command::Enter { workspace, reply }, |_, _| {}).await;
}

pub(crate) async fn initialized(server: &mut Server, _params: Empty, reply: Reply<Initialized>) {
    server.respond(reply, Ok(Empty {}));
    let notices = std::mem::take(&mut server.catalog.notices);
    for notice in &notices {
        server.notify(&to_wire::message(notice));
    }
    catalog::announce(server).await;
}

/// New chats work in the changed folders; a chat keeps the folders it was opened with.
pub(crate) async fn change_folders(
    server: &mut Server,
    params: FoldersParams,
    reply: Reply<ChangeWorkspaceFolders>,
) {
    let Some((_, workspace)) = &mut server.client_setup else { return server.respond(reply, Ok(Empty {})) };
    let paths = |folders: &[WorkspaceFolder]| -> Vec<PathBuf> {
        folders.iter().map(|folder| from_wire::path(&folder.uri)).collect()
    };
    let (added, removed) = (paths(&params.event.added), paths(&params.event.removed));
    workspace.roots.retain(|root| !removed.contains(root) && !added.contains(root));
    workspace.roots.extend(added);
    let workspace = workspace.clone();
    server
        .engine
        .call(
            |reply| Command::Enter { workspace, reply },
            |server, entered| {
                let done = entered.map(|mut catalog| {
                    for notice in std::mem::take(&mut catalog.notices) {
                        server.notify(&to_wire::message(&notice));
                    }
                    catalog::send_models(server, catalog);
                });
                respond_or_show(server, reply, done);
            },
        )
        .await;
}

pub(crate) async fn shutdown(server: &mut Server, _params: Empty, reply: Reply<Shutdown>) {
    if server.engine.commands().is_none() {
        return server.respond(reply, Ok(()));
    }
    server.engine.call(|reply| Command::Shutdown { reply }, |server, done| server.respond(reply, done)).await;
}
