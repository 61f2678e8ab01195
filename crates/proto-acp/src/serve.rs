//! One ACP connection: messages in, commands to the engine, events out. One task, so that order is what it looks like.
//!
//! Invariants: commands leave in the order of the messages; a response leaves before the events its command causes
//! (replies are looked at before events), and `session/prompt` is answered after every update of its turn; a client
//! that does not read stops nothing but its own output.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::command::Catalog;
use domain::event::{CatalogKind, EventBody, Level, Notice};
use domain::link::Engine;
use domain::tool::ToolServer;
use domain::{Command, Event, Failure, FrontendEvent, FrontendLink, ItemId, SessionId};
use rpc::{Backlog, End, Fault, Inbound, PeerOptions, Responder, Transport};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::faults::fault_of;
use crate::open_session::OpenSession;
use crate::server::Server;
use crate::sessions::ask;
use crate::to_wire;
use crate::v2::{self, State};
use crate::wire::{ClientFeatures, Effect, acp, method};

/// How long the engine may take for its last replies.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the last messages may take to be written: only a client that does not read takes so long.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until the input ends.
pub async fn serve(engine: Engine, transport: Transport) -> std::io::Result<()> {
    serve_versions(engine, transport, false, || true).await
}

/// The same for a client on another machine: files and terminals are those of this machine, and the client's are not used.
pub async fn serve_remote(engine: Engine, transport: Transport) -> std::io::Result<()> {
    serve_versions(engine, transport, true, || true).await
}

/// The same with an agent of another vendor that answers in new chats, by its name as a model. What it offers is shown
/// unchanged. The connection speaks version 1.
pub async fn serve_agent(engine: Engine, transport: Transport, model: String) -> std::io::Result<()> {
    serve_connection(engine, transport, false, Box::new(|| false), Some(model)).await
}

/// The same with the choice whether clients may speak version 2. It is made when one asks for that.
pub async fn serve_versions(
    engine: Engine,
    transport: Transport,
    is_remote: bool,
    permits_version_two: impl Fn() -> bool + Send + Sync + 'static,
) -> std::io::Result<()> {
    serve_connection(engine, transport, is_remote, Box::new(permits_version_two), None).await
}

async fn serve_connection(
    engine: Engine,
    transport: Transport,
    is_remote: bool,
    permits_version_two: Box<dyn Fn() -> bool + Send + Sync>,
    proxied: Option<String>,
) -> std::io::Result<()> {
    let settings = PeerOptions {
        cancel: Some(rpc::CancelMethod { method: method::CANCEL_REQUEST, parameter: "requestId" }),
        ..PeerOptions::newline()
    };
    let (peer, inbox) = rpc::inbox(settings, transport)?;
    let mut server = Server {
        engine: FrontendLink::new(engine),
        client: Backlog::new(peer.outgoing()),
        sessions: HashMap::new(),
        features: ClientFeatures::default(),
        is_remote,
        permits_version_two,
        proxied,
        logged_out: false,
        shown_notices: HashSet::new(),
        reported_servers: HashSet::new(),
        opening: HashMap::new(),
        deferred: VecDeque::new(),
    };
    server.run(inbox, peer.ended()).await;
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, server.finish_pending()).await;
    drop(server);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, peer.answered()).await;
    peer.close(FLUSH_TIMEOUT).await;
    Ok(())
}

impl Server {
    async fn run(&mut self, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
        let mut ended = std::pin::pin!(ended);
        loop {
            let event = match self.deferred.pop_front() {
                Some(message) => FrontendEvent::Message(message),
                None => self.engine.next(&mut inbox, self.client.wait_for_room(), &mut ended).await,
            };
            match event {
                FrontendEvent::Reply(then) => then(self),
                FrontendEvent::Message(message) => crate::dispatch::handle_message(self, message).await,
                FrontendEvent::Host(request) => crate::host::handle_request(self, request),
                FrontendEvent::Event(event) => self.show(&event),
                FrontendEvent::Room => self.client.drain(),
                FrontendEvent::End => break,
            }
        }
    }

    /// A client that closed its side may still wait for pending replies. Turns end with the connection.
    async fn finish_pending(&mut self) {
        let waiting: Vec<Responder> = self.sessions.values_mut().flat_map(OpenSession::cancel_all).collect();
        for responder in waiting {
            self.respond(responder, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
        self.engine.post(Command::Detach).await;
        while let Some(then) = self.engine.pending.next().await {
            then(self);
            self.client.drain();
        }
    }

    /// Loading a session succeeded or failed: the messages that waited for it are handled next.
    pub(crate) fn finish_opening(&mut self, session: &SessionId) {
        self.deferred.extend(self.opening.remove(session).unwrap_or_default());
    }

    /// The session leaves this connection; its pending prompts are answered as cancelled.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.engine.forget(session);
        if let Some(mut chat) = self.sessions.remove(session) {
            for responder in chat.cancel_all() {
                self.respond(responder, &acp::PromptResponse::new(acp::StopReason::Cancelled));
            }
        }
    }

    fn show(&mut self, event: &Event) {
        match (&event.session, &event.body) {
            (_, EventBody::Catalog(kind)) => self.catalog_changed(*kind),
            (Some(session), _) => {
                let outs = self.sessions.get_mut(session).map(|chat| chat.projection.project(event));
                for out in outs.unwrap_or_default() {
                    self.apply_effect(session, out);
                }
            }
            (None, _) => {}
        }
    }

    /// Carries out one effect of a projection.
    pub(crate) fn apply_effect(&mut self, session: &SessionId, out: Effect) {
        match out {
            Effect::Update(update) => {
                self.answer_prompt(session, &update);
                self.notify(session, update);
            }
            Effect::VersionTwo(update) => self.show_update_of_version_two(session, &update),
            Effect::Started => self.show_state(session, State::Running),
            Effect::Ask(id, question) => {
                ask(self, session, id, question);
                self.show_state(session, State::RequiresAction);
            }
            Effect::Decline(id) => crate::sessions::decline(self, session, id),
            Effect::Settled(id) => {
                if self.sessions.get_mut(session).is_some_and(|chat| chat.settled(id)) {
                    self.show_state(session, State::Running);
                }
            }
            Effect::Ended(_, outcome) if self.features.version_two => {
                self.end_turn(session, outcome.map_err(|failure| fault_of(&failure)));
            }
            Effect::Ended(turn, outcome) => {
                let Some(open) = self.sessions.get_mut(session) else { return };
                let usage = open.projection.usage();
                if let Some((responder, outcome)) = open.ended(turn, outcome) {
                    let response = outcome.map(|reason| acp::PromptResponse::new(reason).usage(usage));
                    self.respond_with(responder, response);
                }
            }
            Effect::Lost(failure) => {
                let waiting = self.sessions.get_mut(session).map(OpenSession::cancel_all);
                for responder in waiting.unwrap_or_default() {
                    self.fail(responder, fault_of(&failure));
                }
            }
        }
    }

    /// Shows a notice once in this connection, in a session, because the protocol has no other place.
    pub(crate) fn show_notice_in(&mut self, session: &SessionId, notice: &Notice) {
        if self.sessions.contains_key(session)
            && !notice.text.is_empty()
            && self.shown_notices.insert(notice.text.clone())
        {
            self.apply_effect(session, to_wire::notice_effect(notice, self.features));
        }
    }

    fn notify(&mut self, session: &SessionId, update: acp::SessionUpdate) {
        if self.features.version_two {
            return self.notify_of_version_two(session, &update);
        }
        let Some(update) = self.send_proxied(session, update) else { return };
        let mut status = None;
        if let acp::SessionUpdate::ToolCall(call) = &update {
            status = Some(call.status);
        }
        let params = acp::SessionNotification::new(session.0.clone(), update);
        let sent = match status {
            // The schema's type leaves out a pending status, which clients then guess.
            Some(status) => with_status(&params, status)
                .and_then(|params| self.client.notify(method::SESSION_UPDATE, &params)),
            None => self.client.notify(method::SESSION_UPDATE, &params),
        };
        if let Err(error) = sent {
            tracing::error!(%error, "an update could not be written");
        }
    }

    /// Responds after every earlier notification.
    pub(crate) fn respond<T: Serialize>(&mut self, responder: Responder, result: &T) {
        self.respond_with(responder, Ok(result));
    }

    pub(crate) fn fail(&mut self, responder: Responder, fault: Fault) {
        self.client.respond::<()>(responder, Err(fault));
    }

    pub(crate) fn respond_with<T: Serialize>(&mut self, responder: Responder, outcome: Result<T, Failure>) {
        if self.features.version_two {
            let outcome =
                outcome.map(|result| v2::response(serde_json::to_value(result).unwrap_or_default()));
            return self.client.respond(responder, outcome.map_err(|failure| fault_of(&failure)));
        }
        self.client.respond(responder, outcome.map_err(|failure| fault_of(&failure)));
    }

    /// Shows that a call runs in a terminal of the client.
    pub(crate) fn show_terminal(&mut self, session: &SessionId, item: ItemId, terminal: acp::TerminalId) {
        let chat = self.sessions.get_mut(session);
        if let Some(out) = chat.and_then(|chat| chat.projection.show_terminal(item, terminal)) {
            self.apply_effect(session, out);
        }
    }

    fn catalog_changed(&mut self, kind: CatalogKind) {
        let Some(commands) = self.engine.commands() else { return };
        match kind {
            CatalogKind::Models => self.engine.later(
                async move { commands.call(|reply| Command::Catalog { reply }).await },
                |server, catalog| {
                    if let Ok(catalog) = catalog {
                        server.update_catalog(&Arc::new(catalog));
                    }
                },
            ),
            // Servers bring commands of their own.
            CatalogKind::ToolServers => {
                for session in self.sessions.keys().cloned().collect::<Vec<_>>() {
                    crate::sessions::send_commands(self, session.clone());
                    self.report_servers(session);
                }
            }
            CatalogKind::Agents => self.look_at_offers(),
            // The protocol has no place for jobs.
            CatalogKind::Jobs => {}
        }
    }

    /// Names the servers of a session that failed or require a login: those of the workspace and those that the client
    /// brought along. One may have failed before the session was there.
    pub(crate) fn report_servers(&mut self, session: SessionId) {
        let Some(commands) = self.engine.commands() else { return };
        let asked = Some(session.clone());
        self.engine.later(
            async move { commands.call(|reply| Command::Servers { session: asked, reply }).await },
            move |server, servers| {
                for text in servers.iter().flatten().filter_map(ToolServer::problem) {
                    let is_new = server.reported_servers.insert((session.clone(), text.clone()));
                    if is_new && server.sessions.contains_key(&session) {
                        let notice = Notice { level: Level::Warning, text };
                        server.apply_effect(&session, to_wire::notice_effect(&notice, server.features));
                    }
                }
            },
        );
    }

    fn update_catalog(&mut self, catalog: &Arc<Catalog>) {
        let offered: Vec<(SessionId, Effect)> = self
            .sessions
            .iter_mut()
            .filter_map(|(id, chat)| Some((id.clone(), chat.projection.update_catalog(catalog.clone())?)))
            .collect();
        for (session, out) in offered {
            self.apply_effect(&session, out);
        }
    }
}

fn with_status(
    params: &acp::SessionNotification,
    status: acp::ToolCallStatus,
) -> Result<serde_json::Value, serde_json::Error> {
    let mut params = serde_json::to_value(params)?;
    if let Some(update) = params.get_mut("update").and_then(serde_json::Value::as_object_mut) {
        update.insert("status".to_owned(), serde_json::to_value(status)?);
    }
    Ok(params)
}
