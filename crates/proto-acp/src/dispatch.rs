//! The table: each method of the protocol and the command it becomes.
//!
//! Invariant: every request is answered; unknown methods at once with -32601, sessions that are not this connection's
//! with -32002.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::{Catalog, SessionInfo, SessionSettings, WorkspaceSpec};
use domain::store::{ListFilter, SessionSummary};
use domain::{Command, Failure, FailureKind, Recorded, SessionId};
use rpc::{Fault, Inbound, Responder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::to_raw_value};

use crate::from_wire::{self, invalid};
use crate::serve::Server;
use crate::wire::{acp, method};
use crate::{options, sessions, to_wire};

const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;
/// Sessions of one page of `session/list`.
const PAGE: usize = 50;
/// Messages that are kept for a session that is being loaded.
const EARLY: usize = 256;
/// The only authentication method: providers that the user configured outside the editor.
const CONFIGURED: &str = "configured";

pub(crate) async fn handle_message(server: &mut Server, message: Inbound) {
    let Some(message) = defer_while_opening(server, message) else { return };
    let Inbound { method, params, responder } = message;
    let params = params.as_deref().map_or("{}", |raw| raw.get());
    match responder {
        Some(responder) => request(server, &method, params, responder).await,
        None if method == method::SESSION_CANCEL => cancel(server, params).await,
        None => tracing::debug!(method, "an unknown notification"),
    }
}

/// A client may send messages for a session before `session/load` is answered: they are kept until then.
fn defer_while_opening(server: &mut Server, message: Inbound) -> Option<Inbound> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        session_id: String,
    }
    if server.opening.is_empty() {
        return Some(message);
    }
    let named: Option<Named> = message.params.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let waiting = named.and_then(|named| server.opening.get_mut(&SessionId::new(named.session_id)));
    match waiting {
        Some(waiting) if waiting.len() < EARLY => {
            waiting.push(message);
            None
        }
        _ => Some(message),
    }
}

async fn request(server: &mut Server, name: &str, params: &str, responder: Responder) {
    if name == method::INITIALIZE {
        return with_params(server, params, responder, initialize).await;
    }
    if server.engine.commands().is_none() {
        return responder.fail(Fault::new(Fault::INVALID_REQUEST, "Send initialize first."));
    }
    match name {
        method::AUTHENTICATE => with_params(server, params, responder, authenticate).await,
        method::LOGOUT => {
            server.logged_out = true;
            server.respond(responder, &acp::LogoutResponse::new());
        }
        method::SESSION_LIST => with_params(server, params, responder, list).await,
        method::SESSION_CLOSE => with_params(server, params, responder, close).await,
        method::SESSION_DELETE => with_params(server, params, responder, delete).await,
        method::SESSION_SET_MODE => with_params(server, params, responder, set_mode).await,
        method::SESSION_SET_CONFIG_OPTION => with_params(server, params, responder, set_option).await,
        method::SESSION_NEW | method::SESSION_LOAD | method::SESSION_RESUME | method::SESSION_PROMPT
            if server.logged_out =>
        {
            responder.fail(Fault::new(AUTH_REQUIRED, "You are logged out; authenticate first."));
        }
        method::SESSION_NEW => with_params(server, params, responder, new).await,
        method::SESSION_LOAD => with_params(server, params, responder, load).await,
        method::SESSION_RESUME => with_params(server, params, responder, resume).await,
        method::SESSION_PROMPT => with_params(server, params, responder, prompt).await,
        unknown => responder.method_not_found(unknown),
    }
}

/// Decodes the parameters and calls `then`, or answers with the decoding error.
async fn with_params<T: DeserializeOwned>(
    server: &mut Server,
    params: &str,
    responder: Responder,
    then: impl AsyncFnOnce(&mut Server, T, Responder),
) {
    match decode(params) {
        Ok(params) => then(server, params, responder).await,
        Err(fault) => responder.fail(fault),
    }
}

/// Clients leave out an empty list of servers, though the schema demands it.
fn decode<T: DeserializeOwned>(params: &str) -> Result<T, Fault> {
    let wrong = |error: serde_json::Error| invalid(format!("Wrong parameters: {error}."));
    let first = match serde_json::from_str(params) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => wrong(error),
    };
    let mut value: Value = serde_json::from_str(params).map_err(wrong)?;
    let members = value.as_object_mut().filter(|it| it.contains_key("cwd") && !it.contains_key("mcpServers"));
    let Some(members) = members else { return Err(first) };
    members.insert("mcpServers".to_owned(), json!([]));
    serde_json::from_value(value).map_err(wrong)
}

async fn initialize(server: &mut Server, params: acp::InitializeRequest, responder: Responder) {
    if server.engine.commands().is_some() {
        let fault = Fault::new(Fault::INVALID_REQUEST, "This connection is initialized already.");
        return responder.fail(fault);
    }
    server.features = from_wire::features(&params.client_capabilities);
    if let Err(failure) = server.engine.attach(from_wire::abilities(&params)).await {
        return responder.fail(fault_of(&failure));
    }
    server.respond(responder, &initialize_response());
}

/// The capabilities of this agent. Every client gets version 1, whichever version it asks for.
fn initialize_response() -> acp::InitializeResponse {
    let sessions = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .delete(acp::SessionDeleteCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .close(acp::SessionCloseCapabilities::new());
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(acp::McpCapabilities::new().http(true))
        .session_capabilities(sessions)
        .auth(acp::AgentAuthCapabilities::new().logout(acp::LogoutCapabilities::new()));
    let configured = acp::AuthMethodAgent::new(CONFIGURED, "Configured model providers").description(
        "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or the like, or run `dragoman login`, then try again."
            .to_owned(),
    );
    acp::InitializeResponse::new(agent_client_protocol_schema::ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(vec![acp::AuthMethod::Agent(configured)])
        .agent_info(
            acp::Implementation::new("dragoman", env!("CARGO_PKG_VERSION")).title("Dragoman".to_owned()),
        )
}

/// There is no account to sign in to: the response says whether a model can be used.
async fn authenticate(server: &mut Server, params: acp::AuthenticateRequest, responder: Responder) {
    if params.method_id.0.as_ref() != CONFIGURED {
        return responder.fail(invalid(format!("There is no authentication method {}.", params.method_id)));
    }
    server
        .engine
        .call(
            |reply| Command::Catalog { reply },
            |server, catalog| match catalog {
                Ok(catalog) if catalog.default_model.is_some() => {
                    server.logged_out = false;
                    server.respond(responder, &acp::AuthenticateResponse::new());
                }
                Ok(_) => {
                    let sentence = "No model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or run \
                                    `dragoman login`, and start the agent again.";
                    server.fail(responder, Fault::new(AUTH_REQUIRED, sentence));
                }
                Err(failure) => server.fail(responder, fault_of(&failure)),
            },
        )
        .await;
}

async fn new(server: &mut Server, params: acp::NewSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let (roots, servers) = match (roots, from_wire::servers(params.mcp_servers)) {
        (Ok(roots), Ok(servers)) => (roots, servers),
        (Err(fault), _) | (_, Err(fault)) => return responder.fail(fault),
    };
    let entered = enter_workspace(server, roots.clone()).await;
    let opened = server
        .engine
        .send(|reply| Command::Open {
            id: None,
            workspace: Some(roots),
            settings: SessionSettings::default(),
            servers,
            reply,
        })
        .await;
    server.engine.later(async move { Ok((entered.await?, opened.await?)) }, move |server, done| match done {
        Ok((catalog, info)) => {
            let catalog: Arc<Catalog> = Arc::new(catalog);
            let info: SessionInfo = info;
            sessions::add_session(server, &info, catalog.clone());
            let (modes, options) = mode_and_options(server, &info.id);
            let response =
                acp::NewSessionResponse::new(info.id.0.clone()).modes(modes).config_options(options);
            server.respond(responder, &response);
            server.engine.follow(info.id.clone(), info.newest);
            sessions::send_commands_and_notices(server, &info.id, &catalog);
        }
        Err(failure) => server.fail(responder, fault_of(&failure)),
    });
}

async fn enter_workspace(
    server: &mut Server,
    roots: Vec<PathBuf>,
) -> domain::BoxFuture<'static, Result<Catalog, Failure>> {
    let workspace = WorkspaceSpec { roots, options: None };
    server.engine.send(|reply| Command::Enter { workspace, reply }).await
}

type Choices = (Option<acp::SessionModeState>, Option<Vec<acp::SessionConfigOption>>);

fn mode_and_options(server: &Server, session: &SessionId) -> Choices {
    match server.sessions.get(session) {
        Some(chat) => (Some(chat.projection.modes()), Some(chat.projection.options())),
        None => (None, None),
    }
}

async fn load(server: &mut Server, params: acp::LoadSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let session = SessionId::new(params.session_id.0);
    reopen(server, session, roots, params.mcp_servers, true, responder).await;
}

async fn resume(server: &mut Server, params: acp::ResumeSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let session = SessionId::new(params.session_id.0);
    reopen(server, session, roots, params.mcp_servers, false, responder).await;
}

/// Attaches to a stored session. `whole`: all its contents are sent before the response.
async fn reopen(
    server: &mut Server,
    session: SessionId,
    roots: Result<Vec<PathBuf>, Fault>,
    servers: Vec<acp::McpServer>,
    whole: bool,
    responder: Responder,
) {
    let (roots, servers) = match (roots, from_wire::servers(servers)) {
        (Ok(roots), Ok(servers)) => (roots, servers),
        (Err(fault), _) | (_, Err(fault)) => return responder.fail(fault),
    };
    let entered = enter_workspace(server, roots).await;
    let chat = session.clone();
    let loaded = server.engine.send(|reply| Command::Load { session: chat, servers, reply }).await;
    let Some(commands) = server.engine.commands() else { return };
    server.opening.entry(session.clone()).or_default();
    let chat = session.clone();
    let work = async move {
        let (catalog, info) = (entered.await?, loaded.await?);
        let facts = if whole { domain::replay::read(&commands, &chat).await? } else { Vec::new() };
        Ok((catalog, info, facts))
    };
    server.engine.later(work, move |server, done: Result<_, Failure>| {
        server.finish_opening(&session);
        match done {
            Ok((catalog, info, facts)) => reopened(server, catalog, &info, whole.then_some(facts), responder),
            Err(failure) if failure.kind == FailureKind::User => {
                server.fail(responder, not_found(&session, &failure.to_string()));
            }
            Err(failure) => server.fail(responder, fault_of(&failure)),
        }
    });
}

fn reopened(
    server: &mut Server,
    catalog: Catalog,
    info: &SessionInfo,
    facts: Option<Vec<Arc<Recorded>>>,
    responder: Responder,
) {
    let catalog = Arc::new(catalog);
    sessions::add_session(server, info, catalog.clone());
    match facts {
        Some(facts) => sessions::replay(server, info, facts),
        None => server.engine.follow(info.id.clone(), info.newest),
    }
    let (modes, options) = mode_and_options(server, &info.id);
    let response = acp::LoadSessionResponse::new().modes(modes).config_options(options);
    // The response of `session/resume` has the same members.
    server.respond(responder, &response);
    sessions::send_commands_and_notices(server, &info.id, &catalog);
}

async fn prompt(server: &mut Server, params: acp::PromptRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    if !server.sessions.contains_key(&session) {
        return responder.fail(session_not_open(&session));
    }
    let prompt = match from_wire::prompt(params.prompt) {
        Ok(prompt) => prompt,
        Err(fault) => return responder.fail(fault),
    };
    let chat = session.clone();
    server
        .engine
        .call(
            |reply| Command::Prompt { session, prompt, reply },
            move |server, accepted| match accepted {
                Ok(accepted) => sessions::accepted(server, &chat, accepted.turn, responder),
                Err(failure) => server.fail(responder, fault_of(&failure)),
            },
        )
        .await;
}

async fn cancel(server: &mut Server, params: &str) {
    let Ok(params) = decode::<acp::CancelNotification>(params) else { return };
    let session = SessionId::new(params.session_id.0);
    if let Some(chat) = server.sessions.get_mut(&session) {
        chat.cancel();
        server.engine.post(Command::Cancel { session }).await;
    }
}

async fn set_mode(server: &mut Server, params: acp::SetSessionModeRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    let change = match server.sessions.get(&session).map(|chat| &chat.projection) {
        Some(it) => options::mode_change(&it.catalog, &it.settings, &params.mode_id.0),
        None => Err(session_not_open(&session)),
    };
    configure(server, session, change, responder, |_| acp::SetSessionModeResponse::new()).await;
}

async fn set_option(server: &mut Server, params: acp::SetSessionConfigOptionRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    let change = match server.sessions.get(&session).map(|chat| &chat.projection) {
        Some(it) => options::change(&it.catalog, &it.settings, &params.config_id.0, &params.value),
        None => Err(session_not_open(&session)),
    };
    configure(server, session, change, responder, acp::SetSessionConfigOptionResponse::new).await;
}

async fn configure<T: serde::Serialize>(
    server: &mut Server,
    session: SessionId,
    change: Result<SessionSettings, Fault>,
    responder: Responder,
    response: impl FnOnce(Vec<acp::SessionConfigOption>) -> T + Send + 'static,
) {
    let change = match change {
        Ok(change) => change,
        Err(fault) => return responder.fail(fault),
    };
    let chat = session.clone();
    server
        .engine
        .call(
            |reply| Command::Configure { session: Some(session), change, reply },
            move |server, done| match done {
                Ok(settings) => {
                    let chat = server.sessions.get_mut(&chat);
                    let options = chat.map(|chat| {
                        chat.projection.settings = settings;
                        chat.projection.options()
                    });
                    server.respond(responder, &response(options.unwrap_or_default()));
                }
                Err(failure) => server.fail(responder, fault_of(&failure)),
            },
        )
        .await;
}

async fn list(server: &mut Server, params: acp::ListSessionsRequest, responder: Responder) {
    let offset = match params.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(offset)) => offset,
        Some(Err(_)) => {
            return responder.fail(invalid("The cursor is unknown; list from the start."));
        }
    };
    if params.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return responder.fail(invalid("cwd is not an absolute path."));
    }
    let filter = ListFilter {
        workspace: params.cwd.map(|cwd| vec![cwd]),
        text: None,
        // One more tells whether there is another page.
        limit: Some(PAGE + 1),
        offset,
    };
    server
        .engine
        .call(
            |reply| Command::List { filter, reply },
            move |server, found| {
                let response = found.map(|mut found| {
                    let more = found.len() > PAGE;
                    found.truncate(PAGE);
                    acp::ListSessionsResponse::new(found.into_iter().map(summary).collect())
                        .next_cursor(more.then(|| (offset + PAGE).to_string()))
                });
                server.respond_with(responder, response);
            },
        )
        .await;
}

fn summary(session: SessionSummary) -> acp::SessionInfo {
    let mut folders = session.workspace.into_iter();
    let cwd = folders.next().unwrap_or_else(|| PathBuf::from("/"));
    acp::SessionInfo::new(session.id.0, cwd)
        .additional_directories(folders.collect())
        .title(session.title)
        .updated_at(to_wire::time(session.updated_at))
}

async fn close(server: &mut Server, params: acp::CloseSessionRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    if !server.sessions.contains_key(&session) {
        return responder.fail(session_not_open(&session));
    }
    let closed = session.clone();
    server
        .engine
        .call(
            |reply| Command::Close { session, reply },
            move |server, done| {
                server.forget(&closed);
                server.respond_with(responder, done.map(|()| acp::CloseSessionResponse::new()));
            },
        )
        .await;
}

async fn delete(server: &mut Server, params: acp::DeleteSessionRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    let deleted = session.clone();
    server
        .engine
        .call(
            |reply| Command::Delete { session, reply },
            move |server, done| match done {
                Ok(()) => {
                    server.forget(&deleted);
                    server.respond(responder, &acp::DeleteSessionResponse::new());
                }
                Err(failure) if failure.kind == FailureKind::User => {
                    server.fail(responder, not_found(&deleted, &failure.to_string()));
                }
                Err(failure) => server.fail(responder, fault_of(&failure)),
            },
        )
        .await;
}

fn session_not_open(session: &SessionId) -> Fault {
    not_found(session, "This session is not open here; create, load or resume it first.")
}

fn not_found(session: &SessionId, sentence: &str) -> Fault {
    let data = to_raw_value(&json!({"sessionId": session.as_str()})).ok();
    Fault { data, ..Fault::new(NOT_FOUND, sentence) }
}

/// Each kind of failure and its code.
pub(crate) fn fault_of(failure: &Failure) -> Fault {
    let code = match failure.kind {
        FailureKind::User | FailureKind::Taken => Fault::INVALID_PARAMS,
        FailureKind::Auth => AUTH_REQUIRED,
        FailureKind::Config
        | FailureKind::Quota
        | FailureKind::Provider
        | FailureKind::Tool
        | FailureKind::Internal => Fault::INTERNAL_ERROR,
    };
    Fault::new(code, failure.to_string())
}
