//! The table: each method of ECA and the command it becomes.
//!
//! Invariant: every request is answered, unknown ones at once with -32601 (an unanswered one blocks an editor).

use std::path::PathBuf;

use domain::command::WorkspaceSpec;
use domain::tool::ServerAction;
use domain::{Abilities, Answer, Command, Failure, FailureKind, ItemId, Reply, SessionId};
use rpc::{Fault, Inbound, Responder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::catalog;
use crate::chats;
use crate::from_wire;
use crate::prompting;
use crate::queries;
use crate::serve::Server;
use crate::wire::{self, ChatParams, InitializeParams, method};

/// ECA has no code of its own for refused requests.
const REFUSED: i64 = -32000;
const NOT_INITIALIZED: i64 = -32002;

pub(crate) async fn handle_message(server: &mut Server, message: Inbound) {
    let Inbound { method, params, responder } = message;
    let params = params.as_deref().map_or("null", |raw| raw.get());
    let value = match serde_json::from_str(params) {
        Ok(value) => from_wire::camel_case(value),
        Err(error) => return fail(responder, wrong(&error)),
    };
    match method.as_str() {
        "initialize" => initialize(server, value, responder).await,
        "exit" => server.over = true,
        "initialized" => initialized(server).await,
        "shutdown" => shutdown(server, responder).await,
        _ if server.engine.commands().is_none() => {
            fail(responder, Fault::new(NOT_INITIALIZED, "Send initialize first."));
        }
        "chat/prompt" => prompting::prompt(server, value, responder).await,
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
                server.engine.post(Command::Cancel { session }).await;
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
        "chat/list" => chats::list(server, params, responder).await,
        "chat/open" => chats::open(server, params, responder).await,
        "chat/fork" => chats::fork(server, params, responder).await,
        "chat/promptSteer" => steer(server, params.message.clone(), params, responder).await,
        "chat/promptSteerRemove" => steer(server, None, params, responder).await,
        "chat/queryContext" | "chat/queryFiles" => queries::contexts(server, method, params, responder).await,
        "chat/queryCommands" => queries::slash_commands(server, params, responder).await,
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
    if server.engine.commands().is_some() {
        return fail(
            responder,
            Fault::new(Fault::INVALID_REQUEST, "This connection is initialized already."),
        );
    }
    if let Some(pid) = params.process_id.and_then(|pid| u32::try_from(pid).ok()) {
        let _ = server.options.parent.send(pid);
    }
    server.draft = is_draft(&params);
    let abilities = abilities(&params, server.draft);
    if let Err(failure) = server.engine.attach(abilities.clone()).await {
        return fail(responder, fault(&failure));
    }
    let roots: Vec<PathBuf> = params
        .workspace_folders
        .unwrap_or_default()
        .iter()
        .map(|folder| from_wire::path(&folder.uri))
        .collect();
    let workspace =
        WorkspaceSpec { roots, options: params.initialization_options.filter(|options| !options.is_null()) };
    server.hello = Some((abilities, workspace.clone()));
    server
        .engine
        .call(
            |reply| Command::Enter { workspace, reply },
            |server, entered| match entered {
                Ok(catalog) => {
                    let chat_welcome_message = catalog.welcome.clone();
                    server.catalog = catalog;
                    let result = serde_json::to_value(wire::InitializeResult { chat_welcome_message });
                    server.respond(responder, result.unwrap_or_default());
                }
                Err(failure) => server.respond_with(responder, Err(failure)),
            },
        )
        .await;
}

/// A client whose first prompt has the draft's `context`: it cannot approve, and must not be waited for.
pub(crate) async fn turn_to_draft(server: &mut Server) {
    let Some((mut abilities, workspace)) = server.hello.clone() else { return };
    if server.draft || server.has_chats() {
        return;
    }
    server.draft = true;
    (abilities.approvals, abilities.proposes_changes) = (false, true);
    server.engine.post(Command::Detach).await;
    if let Err(failure) = server.engine.attach(abilities).await {
        tracing::error!(%failure, "the engine takes no draft client");
    }
    server.engine.call(|reply| Command::Enter { workspace, reply }, |_, _| {}).await;
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
    if server.draft || server.engine.commands().is_none() {
        return;
    }
    let catalog = server.catalog.clone();
    for notice in &catalog.notices {
        if let wire::Out::Plain { method, params } = crate::to_wire::message(notice) {
            server.notify(method, &params);
        }
    }
    catalog::tell_config(server, &catalog);
    server
        .engine
        .call(
            |reply| Command::Servers { reply },
            |server, servers| catalog::tell_servers(server, &servers.unwrap_or_default()),
        )
        .await;
}

async fn shutdown(server: &mut Server, responder: Option<Responder>) {
    if server.engine.commands().is_none() {
        return server.respond(responder, Value::Null);
    }
    server
        .engine
        .call(
            |reply| Command::Shutdown { reply },
            |server, done| server.respond_with(responder, done.map(|()| Value::Null)),
        )
        .await;
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
        server.engine.post(Command::Answer { session, ask, answer }).await;
    }
    server.respond(responder, wire::empty());
}

async fn configure(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let (session, change) = (session_of(&params), from_wire::settings(&params));
    let session = session.filter(|session| server.knows(session));
    server
        .engine
        .call(
            |reply| Command::Configure { session, change, reply },
            |server, done| tell_done(server, responder, done),
        )
        .await;
}

/// A person reads a failure, also where the client did not wait for an answer.
fn tell_done<T>(server: &mut Server, responder: Option<Responder>, done: Result<T, Failure>) {
    if let (Err(failure), None) = (&done, &responder) {
        let message = json!({"type": "error", "message": failure.to_string()});
        server.notify(method::SHOW_MESSAGE, &message);
    }
    server.respond_with(responder, done.map(|_| wire::empty()));
}

async fn delete(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else { return server.respond(responder, wire::empty()) };
    let deleted = session.clone();
    server
        .engine
        .call(
            |reply| Command::Delete { session, reply },
            move |server, done| {
                // A chat that is not there is as good as deleted.
                if let Err(failure) = done
                    && failure.kind != FailureKind::User
                {
                    return tell_done(server, responder, Err::<(), _>(failure));
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
    let from = from.filter(|_| !all);
    carry_out(server, responder, |reply| Command::Rollback { session, from, reply }).await;
}

async fn steer(server: &mut Server, text: Option<String>, params: ChatParams, responder: Option<Responder>) {
    let Some(session) = session_of(&params) else { return server.respond(responder, wire::empty()) };
    carry_out(server, responder, |reply| Command::Steer { session, text, reply }).await;
}

/// A command whose reply says no more than that it was done.
async fn carry_out(
    server: &mut Server,
    responder: Option<Responder>,
    make: impl FnOnce(Reply<()>) -> Command,
) {
    let done = |server: &mut Server, done: Result<(), Failure>| {
        server.respond_with(responder, done.map(|()| wire::empty()));
    };
    server.engine.call(make, done).await;
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
        .engine
        .call(
            |reply| Command::ServerAction { name, action, reply },
            |server, done| tell_done(server, responder, done),
        )
        .await;
}

pub(crate) fn session_of(params: &ChatParams) -> Option<SessionId> {
    params.chat_id.as_deref().filter(|id| !id.is_empty()).map(SessionId::new)
}

/// `null` params are empty params, and so is the empty list that Lua makes of an empty table.
pub(crate) fn decode<T: DeserializeOwned + Default>(value: Value) -> Result<T, Fault> {
    match value {
        Value::Null => Ok(T::default()),
        Value::Array(values) if values.is_empty() => Ok(T::default()),
        Value::Object(_) => serde_json::from_value(value).map_err(|error| wrong(&error)),
        _ => Err(Fault::new(Fault::INVALID_PARAMS, "Wrong parameters: they must be an object.")),
    }
}

fn wrong(error: &serde_json::Error) -> Fault {
    Fault::new(Fault::INVALID_PARAMS, format!("Wrong parameters: {error}."))
}

pub(crate) fn fail(responder: Option<Responder>, fault: Fault) {
    if let Some(responder) = responder {
        responder.fail(fault);
    }
}

/// Each kind of failure and its code.
pub(crate) fn fault(failure: &Failure) -> Fault {
    let code = match failure.kind {
        FailureKind::User => Fault::INVALID_PARAMS,
        FailureKind::Internal => Fault::INTERNAL_ERROR,
        FailureKind::Taken
        | FailureKind::Config
        | FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::Provider
        | FailureKind::Tool => REFUSED,
    };
    Fault::new(code, failure.to_string())
}
