//! What clients show beside chats: models, behaviors, defaults, tool servers.

use domain::command::Catalog;
use domain::tool::{ServerStatus, ToolServer};
use domain::tool_call::Origin;
use serde_json::{Value, json};

use crate::serve::Server;
use crate::wire::method;

/// Models, behaviors and defaults in both vocabularies.
pub(crate) fn tell_config(server: &mut Server, catalog: &Catalog) {
    let models: Vec<&str> = catalog.models.iter().map(|model| model.id.as_str()).collect();
    let agents: Vec<&str> = catalog.behaviors.iter().map(|name| agent_name(name)).collect();
    let mut chat = json!({
        "models": models,
        "behaviors": catalog.behaviors,
        "agents": agents,
        "selectBehavior": catalog.default_behavior,
        "selectAgent": agent_name(&catalog.default_behavior),
        "defaultBehavior": catalog.default_behavior,
        "defaultAgent": agent_name(&catalog.default_behavior),
        "welcomeMessage": catalog.welcome,
    });
    if let (Some(model), Some(chat)) = (&catalog.default_model, chat.as_object_mut()) {
        chat.insert("selectModel".into(), json!(model));
        chat.insert("defaultModel".into(), json!(model));
        if let Some(info) = catalog.models.iter().find(|info| info.id == *model) {
            chat.insert("variants".into(), json!(info.variants));
        }
    }
    server.notify(method::CONFIG_UPDATED, &json!({"chat": chat}));
}

/// The list of models changed; what the user selected stays.
pub(crate) fn tell_models(server: &mut Server, catalog: Catalog) {
    let models: Vec<&str> = catalog.models.iter().map(|model| model.id.as_str()).collect();
    let mut chat = json!({"models": models});
    if server.catalog.default_model.is_none()
        && let (Some(model), Some(chat)) = (&catalog.default_model, chat.as_object_mut())
    {
        chat.insert("selectModel".into(), json!(model));
    }
    server.notify(method::CONFIG_UPDATED, &json!({"chat": chat}));
    server.catalog = catalog;
}

pub(crate) fn agent_name(behavior: &str) -> &str {
    if behavior == "agent" { "code" } else { behavior }
}

pub(crate) fn tell_servers(server: &mut Server, servers: &[ToolServer]) {
    for tool_server in servers {
        let params = tool_server_params(tool_server);
        server.notify(method::SERVER_UPDATED, &params);
    }
}

fn tool_server_params(server: &ToolServer) -> Value {
    let status = match server.status {
        ServerStatus::Starting => "starting",
        ServerStatus::Running => "running",
        ServerStatus::Stopping => "stopping",
        ServerStatus::Stopped => "stopped",
        ServerStatus::Failed => "failed",
        ServerStatus::Disabled => "disabled",
        ServerStatus::RequiresAuth => "requires-auth",
    };
    let tools: Vec<Value> = server
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema}))
        .collect();
    let native = server.origin == Origin::Native;
    let mut params = json!({
        "type": if native { "native" } else { "mcp" },
        "name": server.name, "status": status, "tools": tools,
    });
    if let (false, Some(params)) = (native, params.as_object_mut()) {
        params.insert("command".into(), json!(server.command));
        params.insert("args".into(), json!(server.args));
        params.extend(server.url.as_ref().map(|url| ("url".to_owned(), json!(url))));
        params.extend(server.error.as_ref().map(|error| ("error".to_owned(), json!(error))));
    }
    params
}
