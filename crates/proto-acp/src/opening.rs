//! Opening a session: a new one, a stored one with or without its contents, a fork.
//!
//! Invariant: a session is in the connection before its response leaves, and followed from there without a gap.

use std::path::PathBuf;
use std::sync::Arc;

use domain::agent::AgentOffers;
use domain::command::{Catalog, SessionInfo, SessionSettings, WorkspaceSpec};
use domain::link::Commands;
use domain::{Command, Failure, FailureKind, Level, Notice, Recorded, SessionId};
use rpc::{Fault, Responder};

use crate::faults::{fault_of, not_found};
use crate::server::Server;
use crate::v2::State;
use crate::wire::acp;
use crate::{from_wire, proxy, sessions, to_wire};

pub(crate) async fn new_session(server: &mut Server, params: acp::NewSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let (roots, servers) = match (roots, from_wire::servers(params.mcp_servers)) {
        (Ok(roots), Ok(servers)) => (roots, servers),
        (Err(fault), _) | (_, Err(fault)) => return responder.fail(fault),
    };
    let entered = enter_workspace(server, roots.clone()).await;
    let settings = SessionSettings { model: server.proxied.clone(), ..SessionSettings::default() };
    let opened = server
        .engine
        .send(|reply| Command::Open { id: None, workspace: Some(roots), settings, servers, reply })
        .await;
    let commands = server.engine.commands().filter(|_| server.proxied.is_some());
    let work = async move {
        let (catalog, info) = (entered.await?, opened.await?);
        let offers = match commands {
            Some(commands) => Some(ask_agent(commands, &info.id).await?),
            None => None,
        };
        Ok((Arc::new(catalog), info, offers))
    };
    server.engine.later(work, move |server, done: Result<Opened, Failure>| match done {
        Ok((catalog, info, offers)) => {
            sessions::add_session(server, &info, catalog.clone());
            let (modes, options) = mode_and_options(server, &info.id);
            let response =
                acp::NewSessionResponse::new(info.id.0.clone()).modes(modes).config_options(options);
            respond_with_offers(server, &info.id, offers, &response, responder);
            server.show_state(&info.id, State::Idle(None));
            server.engine.follow(info.id.clone(), info.newest);
            sessions::send_commands_and_notices(server, &info.id, &catalog);
        }
        Err(failure) => server.fail(responder, fault_of(&failure)),
    });
}

type Opened = (Arc<Catalog>, SessionInfo, Option<AgentOffers>);

/// Starts the agent of a new chat. A chat that has none is not kept.
async fn ask_agent(commands: Commands, session: &SessionId) -> Result<AgentOffers, Failure> {
    let offers = proxy::ask(commands.clone(), session.clone(), None).await;
    if offers.is_err() {
        let session = session.clone();
        let _ = commands.call(|reply| Command::Delete { session, reply }).await;
    }
    offers
}

/// Responds with the choices of a session, and with what its agent offers.
fn respond_with_offers(
    server: &mut Server,
    session: &SessionId,
    offers: Option<AgentOffers>,
    response: &impl serde::Serialize,
    responder: Responder,
) {
    let Some(offers) = offers else { return server.respond(responder, response) };
    let mut response = serde_json::to_value(response).unwrap_or_default();
    proxy::merge_response(&mut response, &offers);
    if let Some(chat) = server.sessions.get_mut(session) {
        chat.offers = Some(offers);
    }
    server.respond(responder, &response);
    // The agent may have offered more before the session was in this connection.
    server.look_at_offers();
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

pub(crate) async fn load_session(server: &mut Server, params: acp::LoadSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let session = SessionId::new(params.session_id.0);
    reopen(server, session, roots, params.mcp_servers, true, responder).await;
}

pub(crate) async fn resume_session(
    server: &mut Server,
    params: acp::ResumeSessionRequest,
    responder: Responder,
) {
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
    let is_proxied = server.proxied.is_some();
    server.opening.entry(session.clone()).or_default();
    let chat = session.clone();
    let work = async move {
        let (catalog, info) = (entered.await?, loaded.await?);
        let is_needed = whole || info.busy;
        let facts = if is_needed { domain::replay::read(&commands, &chat).await? } else { Vec::new() };
        // A chat of another model has no such agent, and is opened all the same.
        let offers = match is_proxied {
            true => proxy::ask(commands, chat, None).await.ok(),
            false => None,
        };
        Ok(((Arc::new(catalog), info, offers), facts))
    };
    server.engine.later(work, move |server, done: Result<_, Failure>| {
        server.finish_opening(&session);
        match done {
            Ok((opened, facts)) => reopened(server, opened, (facts, whole), responder),
            Err(failure) if failure.kind == FailureKind::User => {
                server.fail(responder, not_found(&session, &failure.to_string()));
            }
            Err(failure) => server.fail(responder, fault_of(&failure)),
        }
    });
}

fn reopened(
    server: &mut Server,
    (catalog, info, offers): Opened,
    (facts, whole): (Vec<Arc<Recorded>>, bool),
    responder: Responder,
) {
    let info = &info;
    sessions::add_session(server, info, catalog.clone());
    if whole {
        sessions::replay(server, info, facts);
    } else {
        sessions::ask_again(server, info, facts);
        server.engine.follow(info.id.clone(), info.newest);
    }
    let (modes, options) = mode_and_options(server, &info.id);
    let response = acp::LoadSessionResponse::new().modes(modes).config_options(options);
    // The response of `session/resume` has the same members.
    respond_with_offers(server, &info.id, offers, &response, responder);
    let state = if info.busy { State::Running } else { State::Idle(None) };
    server.show_state(&info.id, state);
    sessions::send_commands_and_notices(server, &info.id, &catalog);
    if let Some(holder) = &info.attached_to {
        let text = format!("This chat runs in {holder}. Its keys, rules, sandbox and folder count.");
        let notice = Notice { level: Level::Info, text };
        server.apply_effect(&info.id, to_wire::notice_effect(&notice, server.features));
    }
}

/// A new session with the history of another one, which stays as it is.
pub(crate) async fn fork_session(server: &mut Server, params: acp::ForkSessionRequest, responder: Responder) {
    let roots = from_wire::roots(params.cwd, params.additional_directories);
    let (roots, servers) = match (roots, from_wire::servers(params.mcp_servers)) {
        (Ok(roots), Ok(servers)) => (roots, servers),
        (Err(fault), _) | (_, Err(fault)) => return responder.fail(fault),
    };
    let session = SessionId::new(params.session_id.0);
    let entered = enter_workspace(server, roots).await;
    let forked = server.engine.send(|reply| Command::Fork { session, until: None, id: None, reply }).await;
    let Some(commands) = server.engine.commands() else { return };
    let is_proxied = server.proxied.is_some();
    let work = async move {
        let (catalog, session) = (entered.await?, forked.await?.id);
        let info = commands.call(|reply| Command::Load { session, servers, reply }).await?;
        let offers = match is_proxied {
            true => proxy::ask(commands, info.id.clone(), None).await.ok(),
            false => None,
        };
        Ok((Arc::new(catalog), info, offers))
    };
    server.engine.later(work, move |server, done: Result<Opened, Failure>| match done {
        Ok((catalog, info, offers)) => {
            sessions::add_session(server, &info, catalog.clone());
            let (modes, options) = mode_and_options(server, &info.id);
            let response =
                acp::ForkSessionResponse::new(info.id.0.clone()).modes(modes).config_options(options);
            respond_with_offers(server, &info.id, offers, &response, responder);
            server.show_state(&info.id, State::Idle(None));
            server.engine.follow(info.id.clone(), info.newest);
            sessions::send_commands_and_notices(server, &info.id, &catalog);
        }
        Err(failure) => server.fail(responder, fault_of(&failure)),
    });
}
