//! `mcp/*`: what a client may do with tool servers.
//!
//! Actions that change the configuration are the engine's; here they are only translated.

use domain::tool::ServerAction;
use domain::{Command, Failure};
use serde_json::{Map, Value};

use crate::catalog;
use crate::from_wire;
use crate::reply::Reply;
use crate::server::Server;
use crate::settings::respond_or_show;
use crate::wire::Empty;
use crate::wire::notifications::ShowMessage;
use crate::wire::requests::{
    McpAddServer, McpConnectServer, McpDisableServer, McpEnableServer, McpLogoutServer, McpRemoveServer,
    McpStartServer, McpStopServer, McpUpdateServer, Method,
};
use crate::wire::servers::{
    AddServerParams, AddServerResult, RemoveServerResult, ServerParams, ServerProblem,
};

pub(crate) async fn start_server(server: &mut Server, params: ServerParams, reply: Reply<McpStartServer>) {
    act_on_server(server, params.name, ServerAction::Start, reply).await;
}

pub(crate) async fn stop_server(server: &mut Server, params: ServerParams, reply: Reply<McpStopServer>) {
    act_on_server(server, params.name, ServerAction::Stop, reply).await;
}

pub(crate) async fn connect_server(
    server: &mut Server,
    params: ServerParams,
    reply: Reply<McpConnectServer>,
) {
    act_on_server(server, params.name, ServerAction::Login, reply).await;
}

pub(crate) async fn logout_server(server: &mut Server, params: ServerParams, reply: Reply<McpLogoutServer>) {
    act_on_server(server, params.name, ServerAction::Logout, reply).await;
}

pub(crate) async fn enable_server(server: &mut Server, params: ServerParams, reply: Reply<McpEnableServer>) {
    act_on_server(server, params.name, ServerAction::Enable, reply).await;
}

pub(crate) async fn disable_server(
    server: &mut Server,
    params: ServerParams,
    reply: Reply<McpDisableServer>,
) {
    act_on_server(server, params.name, ServerAction::Disable, reply).await;
}

pub(crate) async fn remove_server(server: &mut Server, params: ServerParams, reply: Reply<McpRemoveServer>) {
    let Some(name) = params.name else { return reply.missing("name") };
    let name = server.sent.known_name(&name).unwrap_or(name);
    let removed = name.clone();
    server
        .engine
        .call(
            |reply| Command::ServerAction { name, action: ServerAction::Remove, reply },
            |server, done| {
                let result = match done {
                    Ok(()) => RemoveServerResult::Removed { name: removed, removed: true },
                    Err(failure) => RemoveServerResult::Problem { error: problem(server, &reply, &failure) },
                };
                server.respond(reply, Ok(result));
            },
        )
        .await;
}

pub(crate) async fn add_server(server: &mut Server, params: AddServerParams, reply: Reply<McpAddServer>) {
    let (name, entry) = (params.name.clone(), Value::Object(members(&params)));
    let folder = params.workspace_uri.as_deref().filter(|_| params.scope.as_deref() == Some("workspace"));
    let folder = folder.map(from_wire::path);
    let (Some(name), Some(commands)) = (name, server.engine.commands()) else { return reply.missing("name") };
    let action = ServerAction::Add { entry, folder };
    let added = async move {
        let called = name.clone();
        commands.call(|reply| Command::ServerAction { name: called, action, reply }).await?;
        let servers = commands.call(|reply| Command::Servers { session: None, reply }).await?;
        let added = servers.into_iter().find(|server| server.name == name);
        added.ok_or_else(|| Failure::user(format!("{name} is in the file, and another file overrides it.")))
    };
    server.engine.later(added, |server, added| {
        let result = match added {
            Ok(added) => AddServerResult::Server(catalog::server_updated(added)),
            Err(failure) => AddServerResult::Error(problem(server, &reply, &failure)),
        };
        server.respond(reply, Ok(result));
    });
}

/// Also shown to a person where the client does not wait for an answer.
fn problem<M: Method>(server: &mut Server, reply: &Reply<M>, failure: &Failure) -> ServerProblem {
    if !reply.is_expected() {
        server.notify(&ShowMessage { kind: "error", message: failure.to_string() });
    }
    ServerProblem { code: "invalid", message: failure.to_string() }
}

pub(crate) async fn update_server(
    server: &mut Server,
    params: AddServerParams,
    reply: Reply<McpUpdateServer>,
) {
    let (name, changes) = (params.name.clone(), Value::Object(members(&params)));
    act_on_server(server, name, ServerAction::Update { changes }, reply).await;
}

/// The members of an entry that the client gave.
fn members(params: &AddServerParams) -> Map<String, Value> {
    let given = [
        ("command", &params.command),
        ("args", &params.args),
        ("env", &params.env),
        ("url", &params.url),
        ("headers", &params.headers),
        ("clientId", &params.client_id),
        ("clientSecret", &params.client_secret),
        ("oauthPort", &params.oauth_port),
        ("disabled", &params.disabled),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
}

async fn act_on_server<M: Method<Result = Empty> + 'static>(
    server: &mut Server,
    name: Option<String>,
    action: ServerAction,
    reply: Reply<M>,
) {
    let Some(name) = name else { return reply.missing("name") };
    let name = server.sent.known_name(&name).unwrap_or(name);
    server
        .engine
        .call(
            |reply| Command::ServerAction { name, action, reply },
            |server, done| respond_or_show(server, reply, done),
        )
        .await;
}
