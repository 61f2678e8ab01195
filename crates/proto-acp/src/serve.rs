//! One ACP connection: messages in, commands to the engine, events out. One task, so that order is what it looks like.
//!
//! Invariants: commands leave in the order of the messages; a response leaves before the events its command causes
//! (replies are looked at before events), and `session/prompt` is answered after every update of its turn; a client
//! that does not read stops nothing but its own output.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::command::Catalog;
use domain::event::{CatalogKind, EventBody};
use domain::link::Engine;
use domain::{Command, Event, Failure, FrontendEvent, FrontendLink, ItemId, SessionId};
use rpc::{Backlog, End, Fault, Inbound, PeerOptions, Responder, Transport};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::sessions::{Chat, ask};
use crate::to_wire;
use crate::wire::{Extras, Out, acp, method};

/// How long the engine may take for the last words.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long they may take to be written: only a client that holds the pipe open and does not read takes so long.
const FLUSH: Duration = Duration::from_secs(2);

/// Serves until the input ends.
pub async fn serve(engine: Engine, transport: Transport) -> std::io::Result<()> {
    let settings = PeerOptions {
        cancel: Some(rpc::CancelMethod { method: method::CANCEL_REQUEST, parameter: "requestId" }),
        ..PeerOptions::newline()
    };
    let (peer, inbox) = rpc::inbox(settings, transport)?;
    let mut server = Server {
        engine: FrontendLink::new(engine),
        client: Backlog::new(peer.outgoing()),
        chats: HashMap::new(),
        extras: Extras::default(),
        logged_out: false,
        told: HashSet::new(),
        opening: HashMap::new(),
        again: VecDeque::new(),
    };
    server.run(inbox, peer.ended()).await;
    let _ = tokio::time::timeout(LAST_WORDS, server.last_words()).await;
    drop(server);
    let _ = tokio::time::timeout(LAST_WORDS, peer.answered()).await;
    peer.close(FLUSH).await;
    Ok(())
}

pub struct Server {
    /// Attached from `initialize` on.
    pub engine: FrontendLink<Server>,
    pub client: Backlog,
    pub chats: HashMap<SessionId, Chat>,
    pub extras: Extras,
    /// The client called `logout`, and nothing is begun until `authenticate`.
    pub logged_out: bool,
    /// Notices that were shown.
    told: HashSet<String>,
    /// Chats that are being loaded, and what came for them meanwhile.
    pub opening: HashMap<SessionId, Vec<Inbound>>,
    /// What came for chats that have been loaded by now.
    again: VecDeque<Inbound>,
}

impl Server {
    async fn run(&mut self, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
        let mut ended = std::pin::pin!(ended);
        loop {
            let happened = match self.again.pop_front() {
                Some(message) => FrontendEvent::Message(message),
                None => self.engine.next(&mut inbox, self.client.full(), &mut ended).await,
            };
            match happened {
                FrontendEvent::Reply(then) => then(self),
                FrontendEvent::Message(message) => crate::dispatch::handle_message(self, message).await,
                FrontendEvent::Host(request) => crate::host::handle_request(self, request),
                FrontendEvent::Event(event) => self.show(&event),
                FrontendEvent::Room => self.client.drain(),
                FrontendEvent::End => break,
            }
        }
    }

    /// Who closed its side may still wait for what the engine is about to answer. Turns end with the connection.
    async fn last_words(&mut self) {
        let waiting: Vec<Responder> = self.chats.values_mut().flat_map(Chat::cancel_all).collect();
        for responder in waiting {
            self.respond(responder, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
        self.engine.post(Command::Detach).await;
        while let Some(then) = self.engine.pending.next().await {
            then(self);
            self.client.drain();
        }
    }

    /// A chat has been loaded, or has not: what came for it meanwhile is taken now.
    pub fn opened(&mut self, session: &SessionId) {
        self.again.extend(self.opening.remove(session).unwrap_or_default());
    }

    /// The chat is not one of this connection's any more; what waits for it ends.
    pub fn forget(&mut self, session: &SessionId) {
        self.engine.forget(session);
        if let Some(mut chat) = self.chats.remove(session) {
            for responder in chat.cancel_all() {
                self.respond(responder, &acp::PromptResponse::new(acp::StopReason::Cancelled));
            }
        }
    }

    fn show(&mut self, event: &Event) {
        match (&event.session, &event.body) {
            (_, EventBody::Catalog(kind)) => self.catalog_changed(*kind),
            (Some(session), _) => {
                let outs = self.chats.get_mut(session).map(|chat| chat.projection.project(event));
                for out in outs.unwrap_or_default() {
                    self.say(session, out);
                }
            }
            (None, EventBody::Notice(notice)) => self.tell_notice(notice),
            (None, _) => {}
        }
    }

    /// Carries out one thing a projection said.
    pub fn say(&mut self, session: &SessionId, out: Out) {
        match out {
            Out::Update(update) => self.notify(session, update),
            Out::Ask(id, question) => ask(self, session, id, question),
            Out::Decline(id) => crate::sessions::decline(self, session, id),
            Out::Settled(id) => {
                if let Some(chat) = self.chats.get_mut(session) {
                    chat.settled(id);
                }
            }
            Out::Ended(turn, outcome) => {
                let ended = self.chats.get_mut(session).and_then(|chat| chat.ended(turn, outcome));
                if let Some((responder, outcome)) = ended {
                    self.respond_with(responder, outcome.map(acp::PromptResponse::new));
                }
            }
            Out::Lost(failure) => {
                let waiting = self.chats.get_mut(session).map(Chat::cancel_all);
                for responder in waiting.unwrap_or_default() {
                    self.fail(responder, crate::dispatch::fault(&failure));
                }
            }
        }
    }

    /// A notice about the process; shown once, in a chat, because the protocol has no other place.
    pub fn tell_notice(&mut self, notice: &domain::event::Notice) {
        let Some(session) = self.chats.keys().next().cloned() else { return };
        if let Some(out) = to_wire::notice(notice, self.extras)
            && self.told.insert(notice.text.clone())
        {
            self.say(&session, out);
        }
    }

    fn notify(&mut self, session: &SessionId, update: acp::SessionUpdate) {
        let params = acp::SessionNotification::new(session.0.clone(), update);
        if let Err(error) = self.client.notify(method::SESSION_UPDATE, &params) {
            tracing::error!(%error, "an update could not be written");
        }
    }

    /// Answers after everything that was notified before.
    pub fn respond<T: Serialize>(&mut self, responder: Responder, result: &T) {
        self.client.respond(responder, Ok(result));
    }

    pub fn fail(&mut self, responder: Responder, fault: Fault) {
        self.client.respond::<()>(responder, Err(fault));
    }

    pub fn respond_with<T: Serialize>(&mut self, responder: Responder, outcome: Result<T, Failure>) {
        self.client.respond(responder, outcome.map_err(|failure| crate::dispatch::fault(&failure)));
    }

    /// A call runs in a terminal of the client.
    pub fn in_terminal(&mut self, session: &SessionId, item: ItemId, terminal: acp::TerminalId) {
        let chat = self.chats.get_mut(session);
        if let Some(out) = chat.and_then(|chat| chat.projection.in_terminal(item, terminal)) {
            self.say(session, out);
        }
    }

    fn catalog_changed(&mut self, kind: CatalogKind) {
        let Some(commands) = self.engine.commands() else { return };
        match kind {
            CatalogKind::Models => self.engine.later(
                async move { commands.call(|reply| Command::Catalog { reply }).await },
                |server, catalog| {
                    if let Ok(catalog) = catalog {
                        server.offer(&Arc::new(catalog));
                    }
                },
            ),
            // Servers bring commands of their own.
            CatalogKind::ToolServers | CatalogKind::Commands => {
                for session in self.chats.keys().cloned().collect::<Vec<_>>() {
                    crate::sessions::tell_commands(self, session);
                }
            }
            CatalogKind::Jobs | CatalogKind::Sessions => {}
        }
    }

    fn offer(&mut self, catalog: &Arc<Catalog>) {
        let offered: Vec<(SessionId, Out)> = self
            .chats
            .iter_mut()
            .filter_map(|(id, chat)| Some((id.clone(), chat.projection.offer(catalog.clone())?)))
            .collect();
        for (session, out) in offered {
            self.say(&session, out);
        }
    }
}
