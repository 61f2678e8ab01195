//! The table: each method of the protocol and the command it becomes.
//!
//! Invariant: every request is answered; unknown methods at once with -32601, sessions that are not this connection's
//! with -32002.

use std::path::PathBuf;

use domain::agent::AgentChoice;
use domain::command::SessionSettings;
use domain::store::{ListFilter, ListPosition, SessionSummary};
use domain::{Command, SessionId};
use rpc::{Fault, Inbound, Responder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::faults::{AUTH_REQUIRED, fault_of, session_not_open};
use crate::from_wire::{self, invalid};
use crate::server::Server;
use crate::wire::{acp, method};
use crate::{opening, options, proxy, sessions, to_wire, v2};

/// Sessions of one page of `session/list`.
const PAGE: usize = 50;
/// Messages that are kept for a session that is being loaded.
const EARLY: usize = 256;
/// The only authentication method: providers that the user configured outside the editor.
const CONFIGURED: &str = "configured";

/// The authentication method in which the client starts this agent in a terminal, with one more argument.
const TERMINAL_LOGIN: &str = "login";

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
        return match server.params_of_version_two(params) {
            Some(params) => with_params(server, &params, responder, initialize_version_two).await,
            None => with_params(server, params, responder, initialize).await,
        };
    }
    if server.engine.commands().is_none() {
        return responder.fail(Fault::new(Fault::INVALID_REQUEST, "Send initialize first."));
    }
    if !server.features.version_two {
        return handle_request(server, name, params, responder).await;
    }
    if matches!(name, v2::CANCEL_TOOL_CALL | v2::CANCEL_TERMINAL) {
        return server.cancel_call(params, responder).await;
    }
    let asked = serde_json::from_str(params).unwrap_or_default();
    match v2::request(name, asked) {
        Some((name, params)) => handle_request(server, name, &params.to_string(), responder).await,
        None => responder.method_not_found(name),
    }
}

async fn handle_request(server: &mut Server, name: &str, params: &str, responder: Responder) {
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
        method::SESSION_SET_MODEL if server.proxied.is_some() => {
            with_params(server, params, responder, set_model).await;
        }
        method::SESSION_SET_TITLE | method::SESSION_STATUS | method::AUTH_STATUS
            if !server.features.unstable =>
        {
            responder.method_not_found(name);
        }
        method::SESSION_SET_TITLE => with_params(server, params, responder, Server::set_title).await,
        method::SESSION_STATUS => with_params(server, params, responder, Server::session_status).await,
        method::AUTH_STATUS => server.auth_status(responder).await,
        method::SESSION_NEW
        | method::SESSION_LOAD
        | method::SESSION_RESUME
        | method::SESSION_FORK
        | method::SESSION_PROMPT
            if server.logged_out =>
        {
            responder.fail(Fault::new(AUTH_REQUIRED, "You are logged out; authenticate first."));
        }
        method::SESSION_NEW => with_params(server, params, responder, opening::new_session).await,
        method::SESSION_LOAD => with_params(server, params, responder, opening::load_session).await,
        method::SESSION_RESUME => with_params(server, params, responder, opening::resume_session).await,
        method::SESSION_FORK => with_params(server, params, responder, opening::fork_session).await,
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

/// Clients leave out an empty list of servers and the type of an on/off value, though the schema demands both.
fn decode<T: DeserializeOwned>(params: &str) -> Result<T, Fault> {
    let wrong = |error: serde_json::Error| invalid(format!("Wrong parameters: {error}."));
    let first = match serde_json::from_str(params) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => wrong(error),
    };
    let mut value: Value = serde_json::from_str(params).map_err(wrong)?;
    let Some(members) = value.as_object_mut() else { return Err(first) };
    if members.contains_key("cwd") && !members.contains_key("mcpServers") {
        members.insert("mcpServers".to_owned(), json!([]));
    } else if members.get("value").is_some_and(Value::is_boolean) && !members.contains_key("type") {
        members.insert("type".to_owned(), json!("boolean"));
    } else {
        return Err(first);
    }
    serde_json::from_value(value).map_err(wrong)
}

async fn initialize(server: &mut Server, params: acp::InitializeRequest, responder: Responder) {
    let has_terminal = from_wire::starts_logins(&params.client_capabilities) && !server.is_remote;
    if let Some(responder) = attach(server, params, responder).await {
        let response = initialize_response(has_terminal, server.features.unstable);
        server.respond(responder, &response);
    }
}

/// Attaches to the engine with what the client can do; `None` where that was refused.
async fn attach(
    server: &mut Server,
    mut params: acp::InitializeRequest,
    responder: Responder,
) -> Option<Responder> {
    if server.engine.commands().is_some() {
        responder.fail(Fault::new(Fault::INVALID_REQUEST, "This connection is initialized already."));
        return None;
    }
    if server.is_remote {
        from_wire::without_machine(&mut params.client_capabilities);
    }
    server.features = from_wire::features(&params.client_capabilities);
    if let Err(failure) = server.engine.attach(from_wire::abilities(&params)).await {
        responder.fail(fault_of(&failure));
        return None;
    }
    Some(responder)
}

async fn initialize_version_two(server: &mut Server, params: acp::InitializeRequest, responder: Responder) {
    let has_terminal = params.client_capabilities.auth.terminal && !server.is_remote;
    if let Some(responder) = attach(server, params, responder).await {
        server.features.version_two = true;
        let response = initialize_response(has_terminal, server.features.unstable);
        let response = serde_json::to_value(response).unwrap_or_default();
        server.client.respond(responder, Ok(&v2::initialize_response(&response)));
    }
}

/// The capabilities of this agent in version 1.
fn initialize_response(has_terminal: bool, unstable: bool) -> acp::InitializeResponse {
    let sessions = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .delete(acp::SessionDeleteCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .fork(acp::SessionForkCapabilities::new())
        .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
        .close(acp::SessionCloseCapabilities::new())
        .title(unstable.then(acp::SessionTitleCapabilities::new))
        .status(unstable.then(acp::SessionStatusCapabilities::new));
    let auth = acp::AgentAuthCapabilities::new()
        .logout(acp::LogoutCapabilities::new())
        .status(unstable.then(acp::AuthStatusCapabilities::new));
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(acp::McpCapabilities::new().http(true))
        .session_capabilities(sessions)
        .auth(auth);
    let configured = acp::AuthMethodAgent::new(CONFIGURED, "Configured model providers").description(
        "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or the like, or run `dragoman login`, then try again."
            .to_owned(),
    );
    let mut methods = vec![acp::AuthMethod::Agent(configured)];
    if has_terminal {
        let login = acp::AuthMethodTerminal::new(TERMINAL_LOGIN, "Log in to a model provider")
            .description("Stores a provider's key, or signs in to GitHub Copilot, in a terminal.".to_owned());
        methods
            .push(acp::AuthMethod::Terminal(login.args(vec!["--login".to_owned()]).meta(terminal_login())));
    }
    acp::InitializeResponse::new(agent_client_protocol_schema::ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(methods)
        .agent_info(
            acp::Implementation::new("dragoman", env!("CARGO_PKG_VERSION")).title("Dragoman".to_owned()),
        )
}

/// The whole command, for clients of before the schema had it.
fn terminal_login() -> Option<acp::Meta> {
    let program = std::env::current_exe().ok()?;
    let login = json!({"label": "Log in to a model provider", "command": program, "args": ["acp", "--login"], "env": {}});
    Some(acp::Meta::from_iter([(from_wire::TERMINAL_AUTH.to_owned(), login)]))
}

/// There is no account to sign in to: the response says whether a model can be used.
async fn authenticate(server: &mut Server, params: acp::AuthenticateRequest, responder: Responder) {
    if !matches!(params.method_id.0.as_ref(), CONFIGURED | TERMINAL_LOGIN) {
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
    if server.offers(&session).is_some_and(|offers| offers.modes.is_object()) {
        let choice = AgentChoice::Mode { id: params.mode_id.0.to_string() };
        return server.choose_in_agent(session, choice, false, responder);
    }
    let change = match server.sessions.get(&session).map(|chat| &chat.projection) {
        Some(it) => options::mode_change(&it.catalog, &it.settings, &params.mode_id.0),
        None => Err(session_not_open(&session)),
    };
    configure(server, session, change, responder, |_| acp::SetSessionModeResponse::new()).await;
}

/// The parameters of `session/set_model`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModelRequest {
    session_id: String,
    model_id: String,
}

async fn set_model(server: &mut Server, params: SetModelRequest, responder: Responder) {
    let session = SessionId::new(params.session_id);
    if server.offers(&session).is_none() {
        return responder.fail(session_not_open(&session));
    }
    let choice = AgentChoice::Model { id: params.model_id };
    server.choose_in_agent(session, choice, false, responder);
}

async fn set_option(server: &mut Server, params: acp::SetSessionConfigOptionRequest, responder: Responder) {
    let session = SessionId::new(params.session_id.0);
    let id = params.config_id.0.to_string();
    let (own, offers) = (proxy::own_option(&id), server.offers(&session).cloned());
    if offers.is_some() && own.is_none() {
        let value = match params.value.as_bool() {
            Some(value) => json!(value),
            None => json!(params.value.as_value_id().map(|value| value.0.to_string())),
        };
        let choice = AgentChoice::Option { id, value };
        return server.choose_in_agent(session, choice, true, responder);
    }
    let id = if offers.is_some() { own.unwrap_or(&id) } else { &id };
    let change = match server.sessions.get(&session).map(|chat| &chat.projection) {
        Some(it) => options::change(&it.catalog, &it.settings, id, &params.value),
        None => Err(session_not_open(&session)),
    };
    let response = move |options| {
        let options = serde_json::to_value(options).unwrap_or_default();
        let options = offers.map_or(options.clone(), |offers| proxy::options(&offers, options));
        json!({"configOptions": options})
    };
    configure(server, session, change, responder, response).await;
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
    let after = params.cursor.as_deref().map(position);
    if after == Some(None) {
        return responder.fail(invalid("The cursor is unknown; list from the start."));
    }
    if params.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
        return responder.fail(invalid("cwd is not an absolute path."));
    }
    let filter = ListFilter {
        workspace: params.cwd.map(|cwd| vec![cwd]),
        text: None,
        // One more tells whether there is another page.
        limit: Some(PAGE + 1),
        after: after.flatten(),
    };
    server
        .engine
        .call(
            |reply| Command::List { filter, reply },
            move |server, found| {
                let response = found.map(|mut found| {
                    let more = found.len() > PAGE;
                    found.truncate(PAGE);
                    let cursor = found.last().filter(|_| more).map(|last| cursor(&last.position()));
                    acp::ListSessionsResponse::new(found.into_iter().map(summary).collect())
                        .next_cursor(cursor)
                });
                server.respond_with(responder, response);
            },
        )
        .await;
}

fn cursor(position: &ListPosition) -> String {
    format!("{}:{}", position.updated_at, position.id)
}

fn position(cursor: &str) -> Option<ListPosition> {
    let (updated_at, id) = cursor.split_once(':')?;
    Some(ListPosition { updated_at: updated_at.parse().ok()?, id: SessionId::new(id) })
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
        .delete(session, move |server, done| match done {
            Ok(()) => {
                server.forget(&deleted);
                server.respond(responder, &acp::DeleteSessionResponse::new());
            }
            Err(failure) => server.fail(responder, fault_of(&failure)),
        })
        .await;
}
