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
use domain::host::HostRequest;
use domain::link::{Commands, Engine};
use domain::{BoxFuture, Command, Event, Failure, Follower, ItemId, Reply, SessionId};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rpc::{End, Inbound, NotSent, Outgoing, Peer, Responder, Settings, Transport};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};

use crate::sessions::{Chat, ask};
use crate::to_wire;
use crate::wire::{Extras, Out, Question, acp, method};

/// Messages taken from the client and not yet dispatched.
const INBOX: usize = 256;
/// How long the engine may take for the last words.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long they may take to be written: only a client that holds the pipe open and does not read takes so long.
const FLUSH: Duration = Duration::from_secs(2);

/// Serves until the input ends.
pub async fn serve(engine: Engine, transport: Transport) -> std::io::Result<()> {
    let settings = Settings {
        cancel: Some(rpc::CancelMethod { method: method::CANCEL_REQUEST, parameter: "requestId" }),
        ..Settings::newline()
    };
    let (intake, inbox) = rpc::inbox(INBOX);
    let peer = Peer::start(settings, transport, |_| intake)?;
    let mut server = Server {
        engine,
        outgoing: peer.outgoing(),
        link: None,
        chats: HashMap::new(),
        extras: Extras::default(),
        logged_out: false,
        told: HashSet::new(),
        opening: HashMap::new(),
        again: VecDeque::new(),
        pending: FuturesUnordered::new(),
        backlog: VecDeque::new(),
    };
    server.run(inbox, peer.ended()).await;
    let _ = tokio::time::timeout(LAST_WORDS, server.last_words()).await;
    drop(server);
    let _ = tokio::time::timeout(LAST_WORDS, peer.answered()).await;
    peer.close(FLUSH).await;
    Ok(())
}

/// What to do with a reply of the engine or the client, on the connection's own task.
pub type Then = Box<dyn FnOnce(&mut Server) + Send>;

/// The engine's side of the connection, there from `initialize` on.
struct Attached {
    commands: Commands,
    follower: Follower,
    host: mpsc::Receiver<HostRequest>,
}

/// Something that must wait until the client reads again.
#[expect(clippy::large_enum_variant, reason = "few wait, and only while the client does not read")]
enum Waiting {
    Notify(Box<RawValue>),
    Respond(Responder, Value),
    Fail(Responder, rpc::Fault),
    Ask(SessionId, domain::AskId, Question),
}

pub struct Server {
    engine: Engine,
    pub outgoing: Outgoing,
    link: Option<Attached>,
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
    pending: FuturesUnordered<BoxFuture<'static, Then>>,
    backlog: VecDeque<Waiting>,
}

enum Happened {
    Reply(Then),
    Message(Inbound),
    Host(HostRequest),
    Event(Event),
    Room,
    End,
}

impl Server {
    async fn run(&mut self, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
        let mut ended = std::pin::pin!(ended);
        loop {
            match self.wait(&mut inbox, &mut ended).await {
                Happened::Reply(then) => then(self),
                Happened::Message(message) => crate::dispatch::take(self, message).await,
                Happened::Host(request) => crate::host::take(self, request),
                Happened::Event(event) => self.show(&event),
                Happened::Room => self.drain(),
                Happened::End => break,
            }
        }
    }

    async fn wait(
        &mut self,
        inbox: &mut mpsc::Receiver<Inbound>,
        ended: &mut (impl Future<Output = End> + Unpin),
    ) -> Happened {
        if let Some(message) = self.again.pop_front() {
            return Happened::Message(message);
        }
        let outgoing = self.outgoing.clone();
        let room = self.backlog.is_empty() && outgoing.has_room();
        let (follower, host) = match &mut self.link {
            Some(link) => (Some(&mut link.follower), Some(&mut link.host)),
            None => (None, None),
        };
        tokio::select! {
            biased;
            Some(then) = self.pending.next(), if !self.pending.is_empty() => Happened::Reply(then),
            message = inbox.recv() => message.map_or(Happened::End, Happened::Message),
            Some(request) = next_call(host) => Happened::Host(request),
            _ = outgoing.ready(), if !room => Happened::Room,
            event = next_event(follower), if room => event.map_or(Happened::End, Happened::Event),
            _ = ended => Happened::End,
        }
    }

    /// Who closed its side may still wait for what the engine is about to answer. Turns end with the connection.
    async fn last_words(&mut self) {
        let waiting: Vec<Responder> = self.chats.values_mut().flat_map(Chat::cancel_all).collect();
        for responder in waiting {
            self.respond(responder, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
        if let Some(link) = &self.link {
            let _ = link.commands.send(Command::Detach).await;
        }
        while let Some(then) = self.pending.next().await {
            then(self);
            self.drain();
        }
    }

    /// Attaches to the engine, as the client's capabilities say.
    pub async fn attach(&mut self, abilities: domain::Abilities) -> Result<(), Failure> {
        let link = self.engine.attach(abilities).await?;
        let follower = Follower::new(link.commands.clone(), link.events);
        self.link = Some(Attached { commands: link.commands, follower, host: link.host });
        Ok(())
    }

    pub fn commands(&self) -> Option<Commands> {
        self.link.as_ref().map(|link| link.commands.clone())
    }

    /// Sends a command now; the future is its reply.
    pub async fn send<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Reply<T>) -> Command,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let (reply, answer) = oneshot::channel();
        self.tell(make(reply)).await;
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(Failure::closed())) })
    }

    /// Sends a command; `then` gets its reply on this task, before any event that the command causes.
    pub async fn call<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Reply<T>) -> Command,
        then: impl FnOnce(&mut Server, Result<T, Failure>) + Send + 'static,
    ) {
        let reply = self.send(make).await;
        self.later(reply, then);
    }

    /// Sends a command that has no reply.
    pub async fn tell(&mut self, command: Command) {
        match &self.link {
            Some(link) => drop(link.commands.send(command).await),
            None => drop(command),
        }
    }

    /// Runs work beside this task and `then` on it.
    pub fn later<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Server, T) + Send + 'static,
    ) {
        self.pending.push(Box::pin(async move {
            let done = work.await;
            Box::new(move |server: &mut Server| then(server, done)) as Then
        }));
    }

    /// A chat has been loaded, or has not: what came for it meanwhile is taken now.
    pub fn opened(&mut self, session: &SessionId) {
        self.again.extend(self.opening.remove(session).unwrap_or_default());
    }

    /// Shows what happens in a chat after fact `after`.
    pub fn follow(&mut self, session: SessionId, after: u64) {
        if let Some(link) = &mut self.link {
            link.follower.follow(session, after);
        }
    }

    /// The chat is not one of this connection's any more; what waits for it ends.
    pub fn forget(&mut self, session: &SessionId) {
        if let Some(link) = &mut self.link {
            link.follower.forget(session);
        }
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
            Out::Ask(id, question) if self.backlog.is_empty() => ask(self, session, id, question),
            Out::Ask(id, question) => {
                self.backlog.push_back(Waiting::Ask(session.clone(), id, question));
            }
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

    /// Queues an update; while the client does not read, it waits here in order.
    fn notify(&mut self, session: &SessionId, update: acp::SessionUpdate) {
        let params = acp::SessionNotification::new(session.0.clone(), update);
        if self.backlog.is_empty() {
            match self.outgoing.notify(method::SESSION_UPDATE, &params) {
                Ok(()) | Err(NotSent::Closed) => return,
                Err(NotSent::Full) => {}
                Err(NotSent::Unserialisable(error)) => {
                    tracing::error!(%error, "an update could not be written");
                    return;
                }
            }
        }
        match to_raw_value(&params) {
            Ok(raw) => self.backlog.push_back(Waiting::Notify(raw)),
            Err(error) => tracing::error!(%error, "an update could not be written"),
        }
    }

    /// Answers after everything that was notified before.
    pub fn respond<T: Serialize>(&mut self, responder: Responder, result: &T) {
        if self.backlog.is_empty() {
            return responder.succeed(result);
        }
        match serde_json::to_value(result) {
            Ok(result) => self.backlog.push_back(Waiting::Respond(responder, result)),
            Err(error) => responder.fail(rpc::Fault::internal(error.to_string())),
        }
    }

    pub fn fail(&mut self, responder: Responder, fault: rpc::Fault) {
        if self.backlog.is_empty() {
            responder.fail(fault);
        } else {
            self.backlog.push_back(Waiting::Fail(responder, fault));
        }
    }

    pub fn respond_with<T: Serialize>(&mut self, responder: Responder, outcome: Result<T, Failure>) {
        match outcome {
            Ok(result) => self.respond(responder, &result),
            Err(failure) => self.fail(responder, crate::dispatch::fault(&failure)),
        }
    }

    fn drain(&mut self) {
        while let Some(waiting) = self.backlog.pop_front() {
            match waiting {
                Waiting::Respond(responder, result) => responder.succeed(&result),
                Waiting::Fail(responder, fault) => responder.fail(fault),
                Waiting::Ask(session, id, question) => ask(self, &session, id, question),
                Waiting::Notify(raw) => {
                    if let Err(NotSent::Full) = self.outgoing.notify_raw(method::SESSION_UPDATE, &raw) {
                        self.backlog.push_front(Waiting::Notify(raw));
                        return;
                    }
                }
            }
        }
    }

    /// A call runs in a terminal of the client.
    pub fn in_terminal(&mut self, session: &SessionId, item: ItemId, terminal: acp::TerminalId) {
        let chat = self.chats.get_mut(session);
        if let Some(out) = chat.and_then(|chat| chat.projection.in_terminal(item, terminal)) {
            self.say(session, out);
        }
    }

    fn catalog_changed(&mut self, kind: CatalogKind) {
        let Some(commands) = self.commands() else { return };
        match kind {
            CatalogKind::Models => self.later(
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

async fn next_event(follower: Option<&mut Follower>) -> Option<Event> {
    match follower {
        Some(follower) => follower.next().await,
        None => std::future::pending().await,
    }
}

async fn next_call(host: Option<&mut mpsc::Receiver<HostRequest>>) -> Option<HostRequest> {
    match host {
        Some(host) => host.recv().await,
        None => std::future::pending().await,
    }
}
