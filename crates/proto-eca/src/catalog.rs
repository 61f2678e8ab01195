//! What clients show beside chats: models, behaviors, defaults, tool servers.
//!
//! Invariants: `selectModel` names a model of `models`; a server is sent again only when something about it changed.

use domain::Command;
use domain::command::{Catalog, SlashArgument};
use domain::event::CatalogKind;
use domain::tool::{Resource, ServerPrompt, ServerStatus, ToolServer};
use domain::tool_call::Origin;

use crate::from_wire;
use crate::jobs;
use crate::providers;
pub(crate) use crate::selection::agent_name;
use crate::sent::ServersStart;
use crate::server::Server;
use crate::wire::notifications::{
    BehaviorConfig, ChatConfig, ConfigUpdated, InitProgress, McpDetails, OfferedArgument, OfferedPrompt,
    OfferedResource, OfferedTool, ServerRemoved, ServerUpdated,
};

/// Sends everything for the first time.
pub(crate) async fn announce(server: &mut Server) {
    let catalog = server.catalog.clone();
    let select_model = selectable(&catalog);
    server.sent.selected_model = select_model.clone();
    let behavior = catalog.default_behavior.clone();
    let agent = agent_name(&behavior).to_owned();
    let chat = ChatConfig {
        models: Some(model_ids(&catalog)),
        default_model: select_model.clone(),
        variants: select_model.as_deref().map(|model| variants(&catalog, model)),
        select_model,
        behaviors: Some(BehaviorConfig {
            agents: catalog.behaviors.iter().map(|name| agent_name(name).to_owned()).collect(),
            behaviors: catalog.behaviors,
            select_behavior: behavior.clone(),
            select_agent: agent.clone(),
            default_behavior: behavior,
            default_agent: agent,
        }),
        welcome_message: Some(catalog.welcome),
        ..ChatConfig::default()
    };
    server.notify(&InitProgress::start("models", "Models"));
    server.notify(&ConfigUpdated { chat_id: None, chat });
    server.notify(&InitProgress::finish("models", "Models"));
    server.sent.is_announced = true;
    server
        .engine
        .call(
            |reply| Command::Servers { session: None, reply },
            |server, servers| send_servers(server, servers.unwrap_or_default()),
        )
        .await;
    if std::mem::take(&mut server.sent.is_stale) {
        handle_change(server, CatalogKind::Models);
    }
}

/// A list changed: asks for it and sends the difference.
pub(crate) fn handle_change(server: &mut Server, kind: CatalogKind) {
    if !server.sent.is_announced {
        server.sent.is_stale = true;
        return;
    }
    let Some(commands) = server.engine.commands() else { return };
    match kind {
        CatalogKind::Models => server.engine.later(
            async move { commands.call(|reply| Command::Catalog { reply }).await },
            |server, catalog| {
                if let Ok(catalog) = catalog {
                    send_models(server, catalog);
                }
                providers::update(server);
            },
        ),
        CatalogKind::Jobs => jobs::update(server),
        // The protocol has no place for what an agent offers.
        CatalogKind::Agents => {}
        CatalogKind::ToolServers => server.engine.later(
            async move { commands.call(|reply| Command::Servers { session: None, reply }).await },
            |server, servers| send_servers(server, servers.unwrap_or_default()),
        ),
    }
}

/// The list of models changed; the user's selection stays.
pub(crate) fn send_models(server: &mut Server, catalog: Catalog) {
    let select_model = selectable(&catalog).filter(|_| server.sent.selected_model.is_none());
    server.sent.selected_model = select_model.clone().or(server.sent.selected_model.take());
    let chat = ChatConfig { models: Some(model_ids(&catalog)), select_model, ..ChatConfig::default() };
    server.notify(&ConfigUpdated { chat_id: None, chat });
    server.catalog = catalog;
}

/// The default model, where the client can show it as selected.
fn selectable(catalog: &Catalog) -> Option<String> {
    let default = from_wire::model(catalog, catalog.default_model.clone()?);
    catalog.models.iter().any(|model| model.id == default).then_some(default)
}

fn model_ids(catalog: &Catalog) -> Vec<String> {
    catalog.models.iter().map(|model| model.id.clone()).collect()
}

pub(crate) fn variants(catalog: &Catalog, model: &str) -> Vec<String> {
    let info = catalog.models.iter().find(|info| info.id == model);
    info.map(|info| info.variants.clone()).unwrap_or_default()
}

fn send_servers(server: &mut Server, servers: Vec<ToolServer>) {
    let now: Vec<ServerUpdated> = servers.into_iter().map(server_updated).collect();
    let gone: Vec<String> = {
        let is_gone = |name: &&String| !now.iter().any(|it| it.name == **name);
        server.sent.servers.keys().filter(is_gone).cloned().collect()
    };
    for name in gone {
        server.sent.servers.remove(&name);
        server.notify(&ServerRemoved { name });
    }
    let is_starting = now.iter().any(|update| update.status == "starting");
    if now.iter().any(|update| update.mcp.is_some()) {
        begin_servers_start(server);
    }
    for update in now {
        let before = server.sent.servers.get(&update.name);
        if before != Some(&update) {
            if is_start_unseen(before.map(|before| before.status), &update) {
                server.notify(&update.as_starting());
            }
            server.notify(&update);
            server.sent.servers.insert(update.name.clone(), update);
        }
    }
    if !is_starting {
        finish_servers_start(server);
    }
}

/// Whether a server started, and perhaps failed, before its start could be shown.
fn is_start_unseen(before: Option<&str>, now: &ServerUpdated) -> bool {
    let has_tried = match before {
        Some("starting" | "running") => false,
        Some("failed" | "requires-auth") => now.status == "running",
        _ => matches!(now.status, "running" | "failed" | "requires-auth"),
    };
    now.mcp.is_some() && has_tried
}

/// The first start of the servers is a task with a beginning and an end. A client waits for the end of each task.
const SERVERS_TASK: (&str, &str) = ("mcp-servers", "MCP servers");

fn begin_servers_start(server: &mut Server) {
    if server.sent.servers_start == ServersStart::Unshown {
        server.sent.servers_start = ServersStart::Shown;
        server.notify(&InitProgress::start(SERVERS_TASK.0, SERVERS_TASK.1));
    }
}

fn finish_servers_start(server: &mut Server) {
    if server.sent.servers_start == ServersStart::Shown {
        server.sent.servers_start = ServersStart::Finished;
        server.notify(&InitProgress::finish(SERVERS_TASK.0, SERVERS_TASK.1));
    }
}

pub(crate) fn server_updated(server: ToolServer) -> ServerUpdated {
    let status = match server.status {
        ServerStatus::Starting => "starting",
        ServerStatus::Running => "running",
        ServerStatus::Stopping => "stopping",
        ServerStatus::Stopped => "stopped",
        ServerStatus::Failed => "failed",
        ServerStatus::Disabled => "disabled",
        ServerStatus::RequiresAuth => "requires-auth",
    };
    let is_native = server.origin == Origin::Native;
    let tools = server.tools.into_iter().map(|tool| OfferedTool {
        name: tool.name,
        description: tool.description,
        parameters: tool.input_schema,
    });
    ServerUpdated {
        kind: if is_native { "native" } else { "mcp" },
        name: server.name,
        status,
        tools: tools.collect(),
        mcp: (!is_native).then_some(McpDetails {
            command: server.command,
            args: server.args,
            url: server.url,
            disabled: server.status == ServerStatus::Disabled,
            has_auth: server.has_login,
            error: server.error,
            prompts: server.prompts.into_iter().map(offered_prompt).collect(),
            resources: server.resources.into_iter().map(offered_resource).collect(),
        }),
    }
}

fn offered_prompt(prompt: ServerPrompt) -> OfferedPrompt {
    let argument = |argument: SlashArgument| OfferedArgument {
        name: argument.name,
        description: argument.description,
        required: argument.required,
    };
    OfferedPrompt {
        name: prompt.name,
        description: prompt.description,
        arguments: prompt.arguments.into_iter().map(argument).collect(),
    }
}

fn offered_resource(resource: Resource) -> OfferedResource {
    let Resource { uri, name, description, mime, server: _ } = resource;
    OfferedResource { uri, name, description, mime_type: mime }
}
