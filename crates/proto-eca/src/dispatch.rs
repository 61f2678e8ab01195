//! The table: each method of ECA and the command it becomes.
//!
//! Invariant: every request is answered, unknown ones at once with -32601 (an unanswered one blocks an editor).

use std::path::PathBuf;

use domain::command::{
    AcceptedStatus, Catalog, Context, ContextQuery, SessionInfo, Settings, SlashCommand, SlashOrigin,
    UserPrompt, Workspace,
};
use domain::store::{ListFilter, SessionSummary};
use domain::tool::{ServerAction, ServerStatus, ToolServer};
use domain::tool_call::Origin;
use domain::{Abilities, Answer, Command, Failure, FailureKind, ItemId, SessionId};
use rpc::{Fault, Responder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::from_wire;
use crate::serve::{Inbound, Server};
use crate::wire::{self, ChatParams, InitializeParams, PromptParams, method};

/// ECA has no code of its own for refused requests.
const REFUSED: i64 = -32000;
const NOT_INITIALIZED: i64 = -32002;

pub async fn take(server: &mut Server, message: Inbound) {
    let Inbound { method, params, responder } = message;
    let params = params.as_deref().map_or("null", |raw| raw.get());
    let value = serde_json::from_str(params).map(from_wire::camel_case).unwrap_or(Value::Null);
    match method.as_str() {
        "initialize" => initialize(server, value, responder).await,
        "exit" => server.over = true,
        "initialized" => initialized(server).await,
        "shutdown" => shutdown(server, responder).await,
        _ if server.commands().is_none() => {
            fail(responder, Fault::new(NOT_INITIALIZED, "Send initialize first."));
        }
        "chat/prompt" => prompt(server, value, responder).await,
        _ => chat(server, &method, value, responder).await,
    }
}

/// Everything that reads the small parameters of a chat.
async fn chat(server: &mut Server, method: &str, value: Value, responder: Option<Responder>) {
    let params: ChatParams = match decode(value) {
        Ok(params) => params,
        Err(fault) => return fail(responder, fault),
    };
    match method {
        "chat/promptStop" => {
            if let Some(session) = session_of(&params) {
                server.tell(Command::Cancel { session }).await;
            }
            server.respond(responder, wire::empty());
        }
        "chat/toolCallApprove" | "chat/toolCallReject" => settle(server, method, params, responder).await,
        "chat/selectedBehaviorChanged"
        | "chat/selectedAgentChanged"
        | "chat/selectedModelChanged"
        | "chat/update" => {
            configure(server, params, responder).await;
        }
        "chat/delete" => delete(server, params, responder).await,
        "chat/clear" => rollback(server, params, true, responder).await,
        "chat/rollback" => rollback(server, params, false, responder).await,
        "chat/list" => list(server, params, responder).await,
        "chat/open" => open(server, params, responder).await,
        "chat/promptSteer" => steer(server, params.message.clone(), params, responder).await,
        "chat/promptSteerRemove" => steer(server, None, params, responder).await,
        "chat/queryContext" | "chat/queryFiles" => contexts(server, method, params, responder).await,
        "chat/queryCommands" => slash_commands(server, params, responder).await,
        "mcp/startServer" => server_action(server, params, ServerAction::Start, responder).await,
        "mcp/stopServer" => server_action(server, params, ServerAction::Stop, responder).await,
        _ => match responder {
            Some(responder) => responder.method_not_found(method),
            None => tracing::debug!(method, "an unknown notification"),
        },
    }
}

async fn initialize(server: &mut Server, value: Value, responder: Option<Responder>) {
    let params: InitializeParams = match decode(value) {
        Ok(params) => params,
        Err(fault) => return fail(responder, fault),
    };
    if server.commands().is_some() {
        return fail(
            responder,
            Fault::new(Fault::INVALID_REQUEST, "This connection is initialized already."),
        );
    }
    if let Some(pid) = params.process_id.and_then(|pid| u32::try_from(pid).ok()) {
        let _ = server.outside.parent.send(pid);
    }
    server.draft = is_draft(&params);
    let abilities = abilities(&params, server.draft);
    if let Err(failure) = server.attach(abilities).await {
        return fail(responder, fault(&failure));
    }
    let roots: Vec<PathBuf> = params
        .workspace_folders
        .unwrap_or_default()
        .iter()
        .map(|folder| from_wire::path(&folder.uri))
        .collect();
    let workspace =
        Workspace { roots, options: params.initialization_options.filter(|options| !options.is_null()) };
    server
        .call(
            |reply| Command::Enter { workspace, reply },
            |server, entered| match entered {
                Ok(catalog) => {
                    let chat_welcome_message = catalog.welcome.clone();
                    server.catalog = catalog;
                    let result = serde_json::to_value(wire::InitializeResult { chat_welcome_message });
                    server.respond(responder, result.unwrap_or_default());
                }
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

/// The draft's capabilities have members that no later client sends.
fn is_draft(params: &InitializeParams) -> bool {
    let assistant = params.capabilities.as_ref().and_then(|all| all.code_assistant.as_ref());
    assistant.is_some_and(|it| it.doc.is_some() || it.edit.is_some() || it.fix.is_some())
}

fn abilities(params: &InitializeParams, draft: bool) -> Abilities {
    let client = params.client_info.as_ref().map_or_else(String::new, |info| {
        let name = info.name.as_deref().unwrap_or("eca client");
        let version = info.version.as_deref().and_then(|version| version.lines().next()).unwrap_or_default();
        format!("{name} {version}").trim().to_owned()
    });
    let assistant = params.capabilities.as_ref().and_then(|all| all.code_assistant.as_ref());
    let editor = assistant.and_then(|it| it.editor.as_ref());
    let can = |flag: Option<bool>| flag.unwrap_or(false);
    Abilities {
        client,
        approvals: !draft,
        proposes_changes: draft,
        questions: can(assistant.and_then(|it| it.chat_capabilities.as_ref()).and_then(|it| it.ask_question)),
        diagnostics: can(editor.and_then(|it| it.diagnostics)),
        definition: can(editor.and_then(|it| it.definition)),
        references: can(editor.and_then(|it| it.references)),
        ..Abilities::default()
    }
}

async fn initialized(server: &mut Server) {
    if server.draft || server.commands().is_none() {
        return;
    }
    let catalog = server.catalog.clone();
    for notice in &catalog.notices {
        if let wire::Out::Plain { method, params } = crate::to_wire::message(notice) {
            server.notify(method, &params);
        }
    }
    tell_config(server, &catalog);
    server
        .call(
            |reply| Command::Servers { reply },
            |server, servers| tell_servers(server, &servers.unwrap_or_default()),
        )
        .await;
}

/// Models, behaviors and defaults in both vocabularies.
fn tell_config(server: &mut Server, catalog: &Catalog) {
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
pub fn tell_models(server: &mut Server, catalog: Catalog) {
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

fn agent_name(behavior: &str) -> &str {
    if behavior == "agent" { "code" } else { behavior }
}

pub fn tell_servers(server: &mut Server, servers: &[ToolServer]) {
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

async fn shutdown(server: &mut Server, responder: Option<Responder>) {
    if server.commands().is_none() {
        return server.respond(responder, Value::Null);
    }
    server
        .call(
            |reply| Command::Shutdown { reply },
            |server, done| match done {
                Ok(()) => server.respond(responder, Value::Null),
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

async fn prompt(server: &mut Server, value: Value, responder: Option<Responder>) {
    let speaks_draft = value.get("context").is_some_and(Value::is_array);
    let params: PromptParams = match decode(value) {
        Ok(params) => params,
        Err(fault) => return fail(responder, fault),
    };
    server.draft |= speaks_draft;
    let id = params.chat_id.filter(|id| !id.is_empty()).unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let session = SessionId::new(id);
    let model = if server.draft { draft_model(server, params.model) } else { params.model };
    let change = Settings {
        model: model.filter(|model| !model.is_empty()),
        behavior: from_wire::behavior(params.behavior, params.agent),
        variant: params.variant,
        trust: params.trust,
        title: None,
    };
    let contexts = params.contexts.or(params.context).unwrap_or_default();
    let prompt = UserPrompt {
        text: params.message,
        parts: Vec::new(),
        contexts: contexts.into_iter().filter_map(from_wire::context).collect(),
        change: change.clone(),
        limits: domain::command::TurnLimits::default(),
    };
    if !server.knows(&session) {
        let id = session.clone();
        let opened = session.clone();
        server
            .call(
                |reply| Command::Open {
                    id: Some(id),
                    workspace: None,
                    settings: change,
                    servers: Vec::new(),
                    reply,
                },
                move |server, info| {
                    if let Ok(info) = info {
                        server.follow(opened, info.newest);
                    }
                },
            )
            .await;
        server.learn(&session);
    }
    let chat = session.clone();
    server
        .call(
            |reply| Command::Prompt { session, prompt, reply },
            move |server, accepted| prompted(server, chat, accepted, responder),
        )
        .await;
}

/// Failures are contents: an error response leaves a client spinning.
fn prompted(
    server: &mut Server,
    chat: SessionId,
    accepted: Result<domain::command::Accepted, Failure>,
    responder: Option<Responder>,
) {
    let (status, model, failure) = match accepted {
        Ok(accepted) => (accepted.status, accepted.model, None),
        Err(failure) => {
            let status =
                if failure.kind == FailureKind::Auth { AcceptedStatus::Login } else { AcceptedStatus::Error };
            (status, String::new(), Some(failure))
        }
    };
    if server.draft {
        let good = status == AcceptedStatus::Prompting;
        let message = match &failure {
            Some(failure) => failure.to_string(),
            None if good => format!("The prompt was sent to {model}."),
            None => "The prompt could not be sent; the chat says why.".into(),
        };
        let status = if good { "success" } else { "connection-error" };
        server.respond(responder, json!({"chatId": chat, "status": status, "resultMessage": message}));
        return;
    }
    let status = match status {
        AcceptedStatus::Prompting => "prompting",
        AcceptedStatus::Login => "login",
        AcceptedStatus::Error => "error",
    };
    server.respond(responder, json!({"chatId": chat, "model": model, "status": status}));
    if let Some(failure) = failure {
        let text = json!({"chatId": chat, "role": "system", "content": {"type": "text", "text": format!("\n{failure}\n")}});
        server.notify(method::CONTENT_RECEIVED, &text);
        // A turn that runs already ends by itself; a refused prompt has no turn.
        let done =
            json!({"chatId": chat, "role": "system", "content": {"type": "progress", "state": "finished"}});
        server.notify(method::CONTENT_RECEIVED, &done);
    }
}

/// The draft names models without their provider; what is not configured means the default.
fn draft_model(server: &Server, name: Option<String>) -> Option<String> {
    let name = name?;
    let known = server.catalog.models.iter().map(|model| &model.id);
    known
        .into_iter()
        .find(|id| **id == name || id.split_once('/').is_some_and(|(_, bare)| bare == name))
        .cloned()
}

async fn settle(server: &mut Server, method: &str, params: ChatParams, responder: Option<Responder>) {
    let (session, call) = (session_of(&params), params.tool_call_id.clone());
    let found =
        session.zip(call).and_then(|(session, call)| Some((server.ask_of(&session, &call)?, session)));
    // Clients approve calls that need no approval, and approve twice.
    if let Some((ask, session)) = found {
        let remember = params.save.as_deref() == Some("session");
        let answer = if method == "chat/toolCallApprove" {
            Answer::Allow { remember }
        } else {
            Answer::Deny { remember: false, reason: params.reason }
        };
        server.tell(Command::Answer { session, ask, answer }).await;
    }
    server.respond(responder, wire::empty());
}

async fn configure(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let (session, change) = (session_of(&params), from_wire::settings(&params));
    let session = session.filter(|session| server.knows(session));
    server
        .call(
            |reply| Command::Configure { session, change, reply },
            |server, done| match done {
                Ok(_) => server.respond(responder, wire::empty()),
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

async fn delete(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else { return server.respond(responder, wire::empty()) };
    let deleted = session.clone();
    server
        .call(
            |reply| Command::Delete { session, reply },
            move |server, done| {
                // A chat that is not there is as good as deleted.
                if let Err(failure) = &done
                    && failure.kind != FailureKind::User
                {
                    return fail(responder, fault(failure));
                }
                server.forget(&deleted);
                if !server.draft {
                    server.notify(method::CHAT_DELETED, &json!({"chatId": deleted}));
                }
                server.respond(responder, wire::empty());
            },
        )
        .await;
}

async fn rollback(server: &mut Server, params: ChatParams, all: bool, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "chatId is missing."));
    };
    let from = params.content_id.as_deref().and_then(ItemId::parse);
    if !all && from.is_none() {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "contentId is not one of this chat's."));
    }
    server
        .call(
            |reply| Command::Rollback { session, from: if all { None } else { from }, reply },
            |server, done| match done {
                Ok(()) => server.respond(responder, wire::empty()),
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

async fn list(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let filter = ListFilter { limit: params.limit, ..ListFilter::default() };
    server
        .call(
            |reply| Command::List { filter, reply },
            |server, chats| match chats {
                Ok(chats) => {
                    let chats: Vec<Value> = chats.iter().map(summary).collect();
                    server.respond(responder, json!({"chats": chats}));
                }
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

fn summary(chat: &SessionSummary) -> Value {
    json!({
        "id": chat.id, "title": chat.title, "status": "idle", "messageCount": chat.message_count,
        "model": chat.model, "createdAt": chat.created_at, "updatedAt": chat.updated_at,
    })
}

async fn open(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "chatId is missing."));
    };
    let chat = session.clone();
    server
        .call(
            |reply| Command::Load { session, servers: Vec::new(), reply },
            move |server, info| match info {
                Ok(info) => show_opened(server, chat, info, responder),
                Err(failure) if failure.kind == FailureKind::User => {
                    server.respond(responder, json!({"found": false, "chatId": chat}));
                }
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

/// Cleared, opened, the contents, and then the response.
fn show_opened(server: &mut Server, chat: SessionId, info: SessionInfo, responder: Option<Responder>) {
    let Some(commands) = server.commands() else { return };
    let session = chat.clone();
    server.later(async move { domain::replay::read(&commands, &session).await }, move |server, facts| {
        let facts = match facts {
            Ok(facts) => facts,
            Err(failure) => return fail(responder, fault(&failure)),
        };
        let newest = facts.last().map_or(0, |last| last.number);
        let title = info.settings.title.clone().unwrap_or_default();
        server.notify(method::CHAT_CLEARED, &json!({"chatId": chat, "messages": true}));
        server.notify(method::CHAT_OPENED, &json!({"chatId": chat, "title": title}));
        server.replay(&chat, facts, newest);
        let behavior = info.settings.behavior.as_deref().unwrap_or("agent");
        let mut selection =
            json!({"agent": agent_name(behavior), "trust": info.settings.trust.unwrap_or(false)});
        if let Some(selection) = selection.as_object_mut() {
            selection.extend(info.settings.model.as_ref().map(|model| ("model".to_owned(), json!(model))));
            selection.extend(info.settings.variant.as_ref().map(|it| ("variant".to_owned(), json!(it))));
        }
        server.respond(
            responder,
            json!({"found": true, "chatId": chat, "title": title, "selection": selection}),
        );
    });
}

async fn steer(server: &mut Server, text: Option<String>, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else { return server.respond(responder, wire::empty()) };
    server
        .call(
            |reply| Command::Steer { session, text, reply },
            |server, done| match done {
                Ok(()) => server.respond(responder, wire::empty()),
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

async fn contexts(server: &mut Server, method: &str, params: ChatParams, responder: Option<Responder>) {
    let kind = if method == "chat/queryFiles" { ContextQuery::Files } else { ContextQuery::All };
    let session = session_of(&params);
    let chat = session.clone();
    let query = params.query.unwrap_or_default();
    let taken: Vec<Value> = params
        .contexts
        .unwrap_or_default()
        .into_iter()
        .filter_map(from_wire::context)
        .map(|it| context(&it))
        .collect();
    server
        .call(
            |reply| Command::Contexts { session, query, kind, reply },
            move |server, found| match found {
                Ok(found) => {
                    let mut found: Vec<Value> = found.iter().map(context).collect();
                    found.retain(|context| !taken.contains(context));
                    let member = if kind == ContextQuery::Files { "files" } else { "contexts" };
                    let mut result = json!({member: found});
                    if let (Some(chat), Some(result)) = (chat, result.as_object_mut()) {
                        result.insert("chatId".into(), json!(chat));
                    }
                    server.respond(responder, result);
                }
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

fn context(context: &Context) -> Value {
    match context {
        Context::File { path, lines } => {
            let mut file = json!({"type": "file", "path": path});
            if let (Some((start, end)), Some(file)) = (lines, file.as_object_mut()) {
                file.insert("linesRange".into(), json!({"start": start, "end": end}));
            }
            file
        }
        Context::Directory { path } => json!({"type": "directory", "path": path}),
        Context::Web { url } => json!({"type": "web", "url": url}),
        Context::RepoMap => json!({"type": "repoMap"}),
        Context::Cursor { path, start, end } => {
            json!({"type": "cursor", "path": path, "position": {"start": start, "end": end}})
        }
        Context::McpResource(it) => json!({
            "type": "mcpResource", "server": it.server, "uri": it.uri, "name": it.name,
            "description": it.description, "mimeType": it.mime,
        }),
        Context::Code { content, language, .. } => {
            json!({"type": "code", "content": content, "language": language})
        }
        Context::Text { name, text } => json!({"type": "text", "name": name, "text": text}),
        Context::Image { mime, data } => json!({"type": "image", "mediaType": mime, "base64": data}),
    }
}

async fn slash_commands(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let session = session_of(&params);
    let chat = session.clone();
    let query = params.query.unwrap_or_default();
    server
        .call(
            |reply| Command::SlashCommands { session, query, reply },
            move |server, commands| match commands {
                Ok(commands) => {
                    let commands: Vec<Value> = commands.iter().map(command).collect();
                    server.respond(responder, json!({"chatId": chat, "commands": commands}));
                }
                Err(failure) => fail(responder, fault(&failure)),
            },
        )
        .await;
}

fn command(command: &SlashCommand) -> Value {
    let kind = match command.origin {
        SlashOrigin::Native => "native",
        SlashOrigin::McpPrompt => "mcpPrompt",
        SlashOrigin::Custom => "custom-prompt",
    };
    // Seed 002 writes the kind of MCP prompts with a dash.
    let kind = if kind == "mcpPrompt" { "mcp-prompt" } else { kind };
    let arguments: Vec<Value> = command
        .arguments
        .iter()
        .map(|it| json!({"name": it.name, "description": it.description, "required": it.required}))
        .collect();
    json!({"name": command.name, "description": command.description, "type": kind, "arguments": arguments})
}

async fn server_action(
    server: &mut Server,
    params: ChatParams,
    action: ServerAction,
    responder: Option<Responder>,
) {
    let Some(name) = params.name else {
        return fail(responder, Fault::new(Fault::INVALID_PARAMS, "name is missing."));
    };
    server
        .call(
            |reply| Command::ServerAction { name, action, reply },
            |server, done| match done {
                Ok(()) => server.respond(responder, wire::empty()),
                Err(failure) => {
                    if responder.is_none() {
                        let message = json!({"type": "error", "message": failure.to_string()});
                        server.notify(method::SHOW_MESSAGE, &message);
                    }
                    fail(responder, fault(&failure));
                }
            },
        )
        .await;
}

fn session_of(params: &ChatParams) -> Option<SessionId> {
    params.chat_id.as_deref().filter(|id| !id.is_empty()).map(SessionId::new)
}

/// `null` params are empty params.
fn decode<T: DeserializeOwned + Default>(value: Value) -> Result<T, Fault> {
    if value.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(value)
        .map_err(|error| Fault::new(Fault::INVALID_PARAMS, format!("Wrong parameters: {error}.")))
}

fn fail(responder: Option<Responder>, fault: Fault) {
    if let Some(responder) = responder {
        responder.fail(fault);
    }
}

/// Each kind of failure and its code.
fn fault(failure: &Failure) -> Fault {
    let code = match failure.kind {
        FailureKind::User => Fault::INVALID_PARAMS,
        FailureKind::Internal => Fault::INTERNAL_ERROR,
        FailureKind::Config
        | FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::Provider
        | FailureKind::Tool => REFUSED,
    };
    Fault::new(code, failure.to_string())
}
