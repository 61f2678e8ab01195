//! One ECA connection: messages in, commands to the engine, events out. One task, so messages keep their order.
//!
//! Owns the table of methods. Invariants: commands leave in the order of the messages; a response leaves before the events
//! its command causes, unless its method promises the contents first; every request is answered, unknown ones at once with
//! -32601 (an unanswered one blocks an editor); messages that come before the response to `initialize` wait for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use domain::command::Catalog;
use domain::event::EventBody;
use domain::item::ItemKind;
use domain::link::Engine;
use domain::{Command, Event, Fact, FrontendEvent, FrontendLink};
use rpc::{Backlog, End, Fault, Inbound, PeerOptions, Responder, Transport};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::dialect::PUBLISHED;
use crate::reply::Reply;
use crate::sent::{PendingLogins, SentCatalog};
use crate::server::{ServeOptions, Server};
use crate::wire::requests::{
    AddFlag, ChangeWorkspaceFolders, Clear, CompletionInline, CompletionNextEdit, Delete, Exit, Fork,
    History, Initialize, Initialized, InlinePrompt, JobsKill, JobsList, JobsReadOutput, List, McpAddServer,
    McpConnectServer, McpDisableServer, McpEnableServer, McpLogoutServer, McpRemoveServer, McpStartServer,
    McpStopServer, McpUpdateServer, MemoryListMethod, Method, Open, Prompt, PromptSteer, PromptSteerRemove,
    PromptStop, ProvidersList, ProvidersLogin, ProvidersLoginInput, ProvidersLogout, QueryCommands,
    QueryContext, QueryFiles, RemoveFlag, RewritePrompt, Rollback, SelectedAgentChanged,
    SelectedBehaviorChanged, SelectedModelChanged, Shutdown, ToolCallApprove, ToolCallReject, Update,
};
use crate::{
    catalog, completing, flags, from_wire, history, host, inline_prompt, jobs, lifecycle, mcp, next_edit,
    pending_logins, prompting, providers, queries, rewriting, sessions, settings, turns,
};

const NOT_INITIALIZED: i64 = -32002;

/// How long the last messages may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves until the input ends or `exit` comes.
pub async fn serve(engine: Engine, transport: Transport, options: ServeOptions) -> std::io::Result<()> {
    let peer_options = PeerOptions {
        cancel: Some(rpc::CancelMethod { method: "$/cancelRequest", parameter: "id" }),
        ..PeerOptions::header()
    };
    let (peer, inbox) = rpc::inbox(peer_options, transport)?;
    let mut server = Server {
        engine: FrontendLink::new(engine),
        client: Backlog::new(peer.outgoing()),
        options,
        sessions: HashMap::new(),
        numbered: HashMap::new(),
        catalog: Catalog::default(),
        sent: SentCatalog::default(),
        client_setup: None,
        dialect: &PUBLISHED,
        early: None,
        deferred: VecDeque::new(),
        is_over: false,
        changing: HashMap::new(),
        pending_logins: PendingLogins::default(),
        sent_providers: None,
        unopened: HashMap::new(),
        memory_told: HashSet::new(),
        completing: None,
        proposal: None,
    };
    run(&mut server, inbox, peer.ended()).await;
    // A client that closed its side may still wait for answers.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, peer.answered()).await;
    peer.close(CLOSE_TIMEOUT).await;
    Ok(())
}

async fn run(server: &mut Server, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
    let mut ended = std::pin::pin!(ended);
    while !server.is_over {
        let event = match server.deferred.pop_front() {
            Some(message) => FrontendEvent::Message(message),
            None => server.engine.next(&mut inbox, server.client.wait_for_room(), &mut ended).await,
        };
        match event {
            FrontendEvent::Reply(then) => then(server),
            FrontendEvent::Message(message) => handle_message(server, message).await,
            FrontendEvent::Host(request) => host::handle_request(server, request),
            FrontendEvent::Event(event) => server.show(&event),
            FrontendEvent::Room => server.client.drain(),
            FrontendEvent::End => break,
        }
    }
    pending_logins::release_all(server);
    server.engine.post(Command::Detach).await;
}

impl Server {
    /// Shows an event to the client, holds it back, or shows the whole chat again.
    pub(crate) fn show(&mut self, event: &Event) {
        if pending_logins::defers(self, event) {
            return;
        }
        if let EventBody::Catalog(kind) = &event.body {
            return catalog::handle_change(self, *kind);
        }
        if let (Some(session), EventBody::Fact(recorded)) = (&event.session, &event.body) {
            if matches!(&recorded.fact, Fact::HistoryReplaced { .. }) || is_new_flag(&recorded.fact) {
                return match self.changing.get_mut(session) {
                    Some(is_changed) => *is_changed = true,
                    None => sessions::show_again(self, session.clone(), |_, _| {}),
                };
            }
            if let Fact::AskRaised { ask } = &recorded.fact {
                host::ask_user(self, session, ask);
            }
            if let Fact::SessionChanged { change } = &recorded.fact {
                self.set_model(session, change.model.as_deref());
            }
        }
        self.project(event);
    }
}

/// A bookmark that another window set: its place is not at the end.
fn is_new_flag(fact: &Fact) -> bool {
    let Fact::ItemEnded { item } = fact else { return false };
    matches!(&item.kind, ItemKind::Flag { text } if !text.is_empty())
}

async fn handle_message(server: &mut Server, message: Inbound) {
    let Some(message) = server.defer_until_initialized(message) else { return };
    let Inbound { method, params, responder } = message;
    let params = params.as_deref().map_or("null", |raw| raw.get());
    let params = match serde_json::from_str(params) {
        Ok(value) => from_wire::camel_case(value),
        Err(error) => return fail(responder, wrong_params(&error)),
    };
    let call = Call { server, params, responder };
    match method.as_str() {
        Initialize::NAME => call.with(lifecycle::initialize).await,
        Exit::NAME => call.server.is_over = true,
        Shutdown::NAME => call.with(lifecycle::shutdown).await,
        _ if call.server.engine.commands().is_none() => {
            fail(call.responder, Fault::new(NOT_INITIALIZED, "Send initialize first."));
        }
        Initialized::NAME => call.with(lifecycle::initialized).await,
        _ => handle_chat_method(&method, call).await,
    }
}

async fn handle_chat_method(method: &str, call: Call<'_>) {
    match method {
        Prompt::NAME => call.with(prompting::prompt).await,
        InlinePrompt::NAME => call.with(inline_prompt::prompt).await,
        PromptStop::NAME => call.with(turns::stop).await,
        PromptSteer::NAME => call.with(turns::steer).await,
        PromptSteerRemove::NAME => call.with(turns::remove_steer).await,
        ToolCallApprove::NAME => call.with(turns::approve).await,
        ToolCallReject::NAME => call.with(turns::reject).await,
        QueryContext::NAME => call.with(queries::contexts).await,
        QueryFiles::NAME => call.with(queries::files).await,
        QueryCommands::NAME => call.with(queries::slash_commands).await,
        SelectedBehaviorChanged::NAME => call.with(settings::select_behavior).await,
        SelectedAgentChanged::NAME => call.with(settings::select_agent).await,
        SelectedModelChanged::NAME => call.with(settings::select_model).await,
        Update::NAME => call.with(settings::update).await,
        Delete::NAME => call.with(sessions::delete).await,
        Clear::NAME => call.with(sessions::clear).await,
        Rollback::NAME => call.with(sessions::rollback).await,
        List::NAME => call.with(sessions::list).await,
        Open::NAME => call.with(sessions::open).await,
        History::NAME => call.with(history::page).await,
        AddFlag::NAME => call.with(flags::add).await,
        RemoveFlag::NAME => call.with(flags::remove).await,
        Fork::NAME => call.with(sessions::fork).await,
        other => handle_other_method(other, call).await,
    }
}

async fn handle_other_method(method: &str, call: Call<'_>) {
    match method {
        ChangeWorkspaceFolders::NAME => call.with(lifecycle::change_folders).await,
        RewritePrompt::NAME => call.with(rewriting::rewrite).await,
        McpStartServer::NAME => call.with(mcp::start_server).await,
        McpConnectServer::NAME => call.with(mcp::connect_server).await,
        McpLogoutServer::NAME => call.with(mcp::logout_server).await,
        McpEnableServer::NAME => call.with(mcp::enable_server).await,
        McpDisableServer::NAME => call.with(mcp::disable_server).await,
        McpAddServer::NAME => call.with(mcp::add_server).await,
        McpUpdateServer::NAME => call.with(mcp::update_server).await,
        McpRemoveServer::NAME => call.with(mcp::remove_server).await,
        McpStopServer::NAME => call.with(mcp::stop_server).await,
        ProvidersList::NAME => call.with(providers::list).await,
        ProvidersLogin::NAME => call.with(providers::login).await,
        ProvidersLoginInput::NAME => call.with(providers::login_input).await,
        ProvidersLogout::NAME => call.with(providers::logout).await,
        CompletionInline::NAME => call.with(completing::complete).await,
        CompletionNextEdit::NAME => call.with(next_edit::predict).await,
        JobsList::NAME => call.with(jobs::list).await,
        JobsKill::NAME => call.with(jobs::kill).await,
        MemoryListMethod::NAME => call.with(queries::memory).await,
        JobsReadOutput::NAME => call.with(jobs::read_output).await,
        unknown => match call.responder {
            Some(responder) => responder.method_not_found(unknown),
            None => tracing::debug!(method, "an unknown notification"),
        },
    }
}

/// One call of a client.
struct Call<'a> {
    server: &'a mut Server,
    params: Value,
    responder: Option<Responder>,
}

impl Call<'_> {
    /// Decodes the parameters of `M` and calls its handler, or answers with the decoding error.
    async fn with<M: Method>(self, handle: impl AsyncFnOnce(&mut Server, M::Params, Reply<M>)) {
        match decode(self.params) {
            Ok(params) => handle(self.server, params, Reply::new(self.responder)).await,
            Err(fault) => fail(self.responder, fault),
        }
    }
}

/// `null` params are empty params, and so is the empty list that Lua makes of an empty table.
fn decode<T: DeserializeOwned + Default>(params: Value) -> Result<T, Fault> {
    match params {
        Value::Null => Ok(T::default()),
        Value::Array(values) if values.is_empty() => Ok(T::default()),
        Value::Object(_) => serde_json::from_value(params).map_err(|error| wrong_params(&error)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Fault::new(Fault::INVALID_PARAMS, "Wrong parameters: they must be an object."))
        }
    }
}

fn wrong_params(error: &serde_json::Error) -> Fault {
    Fault::new(Fault::INVALID_PARAMS, format!("Wrong parameters: {error}."))
}

fn fail(responder: Option<Responder>, fault: Fault) {
    if let Some(responder) = responder {
        responder.fail(fault);
    }
}
