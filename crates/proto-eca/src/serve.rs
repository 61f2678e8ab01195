//! One ECA connection: messages in, commands to the engine, events out. One task, so that order is what it looks like.
//!
//! Invariants: commands leave in the order of the messages; a response leaves before the events its command causes
//! (replies are looked at before events); a client that does not read stops nothing but its own output.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use domain::command::{Catalog, Workspace};
use domain::event::{CatalogKind, EventBody, Outcome};
use domain::host::{HostReply, HostRequest};
use domain::link::{Commands, Engine};
use domain::{
    Answer, Ask, AskKind, BoxFuture, Command, Event, Fact, Failure, Follower, HostCall, Reply, SessionId,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rpc::{End, Inbound, NotSent, Outgoing, Peer, Responder, Settings, Transport};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::draft::DraftProjection;
use crate::from_wire;
use crate::to_wire::Projection;
use crate::wire::{self, Out, method};

/// Messages taken from the client and not yet dispatched.
const INBOX: usize = 256;
/// How long the last words may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// A person may take this long to answer a question in the editor.
const QUESTION: Duration = Duration::from_secs(24 * 3600);

/// What the connection tells the program around it.
pub struct Outside {
    /// The client's process: when it dies, so do we.
    pub parent: mpsc::UnboundedSender<u32>,
}

/// Serves until the input ends or `exit` comes.
pub async fn serve(engine: Engine, transport: Transport, outside: Outside) -> std::io::Result<()> {
    let settings = Settings {
        cancel: Some(rpc::CancelMethod { method: "$/cancelRequest", parameter: "id" }),
        ..Settings::header()
    };
    let (intake, inbox) = rpc::inbox(INBOX);
    let peer = Peer::start(settings, transport, |_| intake)?;
    let mut server = Server {
        engine,
        outgoing: peer.outgoing(),
        outside,
        link: None,
        chats: HashMap::new(),
        pending: FuturesUnordered::new(),
        backlog: VecDeque::new(),
        catalog: Catalog::default(),
        hello: None,
        draft: false,
        over: false,
    };
    server.run(inbox, peer.ended()).await;
    // Who closed its side may still wait for answers.
    let _ = tokio::time::timeout(LAST_WORDS, peer.answered()).await;
    peer.close(LAST_WORDS).await;
    Ok(())
}

/// What to do with a reply of the engine, on the connection's own task.
pub type Then = Box<dyn FnOnce(&mut Server) + Send>;

/// The engine's side of the connection, there from `initialize` on.
struct Attached {
    commands: Commands,
    follower: Follower,
    host: mpsc::Receiver<HostRequest>,
}

enum Projecting {
    Grown(Projection),
    Draft(DraftProjection),
}

/// Something that must wait until the client reads again.
enum Waiting {
    Notify(&'static str, Box<RawValue>),
    Respond(Responder, Value),
}

pub struct Server {
    engine: Engine,
    pub outgoing: Outgoing,
    pub outside: Outside,
    link: Option<Attached>,
    chats: HashMap<SessionId, Projecting>,
    pending: FuturesUnordered<BoxFuture<'static, Then>>,
    backlog: VecDeque<Waiting>,
    pub catalog: Catalog,
    /// What the client said it can and where it works.
    pub hello: Option<(domain::Abilities, Workspace)>,
    /// The client speaks the draft protocol.
    pub draft: bool,
    pub over: bool,
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
        while !self.over {
            match self.wait(&mut inbox, &mut ended).await {
                Happened::Reply(then) => then(self),
                Happened::Message(message) => crate::dispatch::take(self, message).await,
                Happened::Host(request) => self.host_call(request),
                Happened::Event(event) => self.show(&event),
                Happened::Room => self.drain(),
                Happened::End => break,
            }
        }
        if let Some(link) = &self.link {
            let _ = link.commands.send(Command::Detach).await;
        }
    }

    async fn wait(
        &mut self,
        inbox: &mut mpsc::Receiver<Inbound>,
        ended: &mut (impl Future<Output = End> + Unpin),
    ) -> Happened {
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

    /// Sends a command; `then` gets its reply on this task, before any event that the command causes.
    pub async fn call<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Reply<T>) -> Command,
        then: impl FnOnce(&mut Server, Result<T, Failure>) + Send + 'static,
    ) {
        let (reply, answer) = oneshot::channel();
        self.later(async move { answer.await.unwrap_or_else(|_| Err(Failure::closed())) }, then);
        self.tell(make(reply)).await;
    }

    /// Sends a command that has no reply.
    pub async fn tell(&mut self, command: Command) {
        match &self.link {
            Some(link) => {
                let _ = link.commands.send(command).await;
            }
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

    pub fn has_chats(&self) -> bool {
        !self.chats.is_empty()
    }

    pub fn knows(&self, session: &SessionId) -> bool {
        self.chats.contains_key(session)
    }

    /// Shows what happens in a chat from fact `after` on.
    pub fn follow(&mut self, session: SessionId, after: u64) {
        self.learn(&session);
        if let Some(link) = &mut self.link {
            link.follower.follow(session, after);
        }
    }

    /// From now on the chat is one of this connection's.
    pub fn learn(&mut self, session: &SessionId) {
        let draft = self.draft;
        self.chats.entry(session.clone()).or_insert_with(|| fresh(draft));
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.chats.remove(session);
        if let Some(link) = &mut self.link {
            link.follower.forget(session);
        }
    }

    /// Shows stored facts, and what comes after them. Of turns that went well only the last one's state is told.
    pub fn replay(&mut self, session: &SessionId, facts: Vec<std::sync::Arc<domain::Recorded>>, newest: u64) {
        self.chats.insert(session.clone(), fresh(self.draft));
        let facts = domain::replay::effective(facts);
        let last = |is: fn(&Fact) -> bool| facts.iter().rposition(|recorded| is(&recorded.fact));
        let usage = last(|fact| matches!(fact, Fact::UsageChanged { .. }));
        let turn = last(|fact| matches!(fact, Fact::TurnStarted { .. } | Fact::TurnEnded { .. }));
        for (at, recorded) in facts.into_iter().enumerate() {
            let is_past = match &recorded.fact {
                Fact::UsageChanged { .. } => Some(at) != usage,
                Fact::TurnStarted { .. } | Fact::TurnEnded { outcome: Outcome::Done, .. } => Some(at) != turn,
                _ => false,
            };
            if !is_past {
                self.project(&Event::fact(session.clone(), recorded));
            }
        }
        self.follow(session.clone(), newest);
    }

    /// The ask that waits on a tool call of a chat.
    pub fn ask_of(&self, session: &SessionId, call: &str) -> Option<domain::AskId> {
        let id = domain::ItemId::parse(call)?;
        match self.chats.get(session)? {
            Projecting::Grown(projection) => projection.asks.get(&id).copied(),
            Projecting::Draft(_) => None,
        }
    }

    fn show(&mut self, event: &Event) {
        match (&event.session, &event.body) {
            (_, EventBody::Catalog(kind)) => self.catalog_changed(*kind),
            (Some(session), EventBody::Fact(recorded)) => {
                match &recorded.fact {
                    Fact::HistoryReplaced { .. } => return self.show_anew(session.clone()),
                    Fact::AskRaised { ask } => self.ask(session, ask),
                    _ => {}
                }
                self.project(event);
            }
            _ => self.project(event),
        }
    }

    fn project(&mut self, event: &Event) {
        let outs = match event.session.as_ref().and_then(|session| self.chats.get_mut(session)) {
            Some(Projecting::Grown(projection)) => projection.project(event),
            Some(Projecting::Draft(projection)) => projection.project(event),
            None => Projection::default().project(event),
        };
        for out in &outs {
            match out {
                Out::Content(content) => self.notify(method::CONTENT_RECEIVED, content),
                Out::Draft(content) => self.notify(method::CONTENT_RECEIVED, content),
                Out::Plain { method, .. } if self.draft && *method != method::SHOW_MESSAGE => {}
                Out::Plain { method, params } => self.notify(method, params),
            }
        }
    }

    /// Queues a notification; while the client does not read, it waits here in order.
    pub fn notify<P: serde::Serialize + ?Sized>(&mut self, method: &'static str, params: &P) {
        if self.backlog.is_empty() {
            match self.outgoing.notify(method, params) {
                Ok(()) | Err(NotSent::Closed) => return,
                Err(NotSent::Full) => {}
                Err(NotSent::Unserialisable(error)) => {
                    tracing::error!(%error, method, "a notification could not be written");
                    return;
                }
            }
        }
        match to_raw_value(params) {
            Ok(raw) => self.backlog.push_back(Waiting::Notify(method, raw)),
            Err(error) => tracing::error!(%error, method, "a notification could not be written"),
        }
    }

    /// Answers after everything that was notified before.
    pub fn respond(&mut self, responder: Option<Responder>, result: Value) {
        match responder {
            Some(responder) if self.backlog.is_empty() => responder.succeed(&result),
            Some(responder) => self.backlog.push_back(Waiting::Respond(responder, result)),
            None => {}
        }
    }

    fn drain(&mut self) {
        while let Some(waiting) = self.backlog.pop_front() {
            match waiting {
                Waiting::Respond(responder, result) => responder.succeed(&result),
                Waiting::Notify(method, raw) => {
                    if let Err(NotSent::Full) = self.outgoing.notify_raw(method, &raw) {
                        self.backlog.push_front(Waiting::Notify(method, raw));
                        return;
                    }
                }
            }
        }
    }

    /// A rollback: the client clears the chat and gets what is left of it.
    fn show_anew(&mut self, session: SessionId) {
        let Some(commands) = self.commands() else { return };
        self.forget(&session);
        let chat = session.clone();
        self.later(async move { domain::replay::read(&commands, &chat).await }, move |server, facts| {
            let facts = facts.unwrap_or_default();
            let newest = facts.last().map_or(0, |last| last.number);
            server.notify(method::CHAT_CLEARED, &json!({"chatId": session, "messages": true}));
            server.replay(&session, facts, newest);
        });
    }

    fn catalog_changed(&mut self, kind: CatalogKind) {
        if self.draft {
            return;
        }
        let Some(commands) = self.commands() else { return };
        match kind {
            CatalogKind::Models => self.later(
                async move { commands.call(|reply| Command::Catalog { reply }).await },
                |server, catalog| {
                    if let Ok(catalog) = catalog {
                        crate::catalog::tell_models(server, catalog);
                    }
                },
            ),
            CatalogKind::ToolServers => self.later(
                async move { commands.call(|reply| Command::Servers { reply }).await },
                |server, servers| crate::catalog::tell_servers(server, &servers.unwrap_or_default()),
            ),
            CatalogKind::Commands | CatalogKind::Jobs | CatalogKind::Sessions => {}
        }
    }

    /// A question to the user, put to the editor; its answer goes to the engine.
    fn ask(&mut self, session: &SessionId, ask: &Ask) {
        let AskKind::Question { text, options, freeform } = &ask.kind else { return };
        let Some(commands) = self.commands() else { return };
        let params = json!({
            "chatId": session, "question": text, "options": options, "allowFreeform": freeform,
            "toolCallId": ask.item.map(|item| item.to_string()),
        });
        let request = self.outgoing.request(method::ASK_QUESTION, &params, QUESTION);
        let (session, ask) = (session.clone(), ask.id);
        tokio::spawn(async move {
            let answer = match request.decode::<wire::QuestionResult>().await {
                Ok(wire::QuestionResult { answer: Some(text), cancelled }) if cancelled != Some(true) => {
                    Answer::Text { text }
                }
                _ => Answer::Cancelled,
            };
            let _ = commands.send(Command::Answer { session, ask, answer }).await;
        });
    }

    /// A call of the engine to the editor.
    fn host_call(&mut self, request: HostRequest) {
        let HostRequest { call, deadline, reply, .. } = request;
        let outgoing = self.outgoing.clone();
        tokio::spawn(async move {
            let _ = reply.send(ask_editor(&outgoing, call, deadline).await);
        });
    }
}

fn fresh(draft: bool) -> Projecting {
    if draft {
        Projecting::Draft(DraftProjection::default())
    } else {
        Projecting::Grown(Projection::default())
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

async fn ask_editor(outgoing: &Outgoing, call: HostCall, deadline: Duration) -> Result<HostReply, Failure> {
    let failed = |error: rpc::RequestError| Failure::user(format!("The editor gave no answer: {error}."));
    match call {
        HostCall::Diagnostics { path } => {
            let params = match path {
                Some(path) => json!({"uri": format!("file://{}", path.display())}),
                None => json!({}),
            };
            let request = outgoing.request(method::GET_DIAGNOSTICS, &params, deadline);
            let result: wire::DiagnosticsResult = request.decode().await.map_err(failed)?;
            match result.diagnostics {
                Some(list) => {
                    Ok(HostReply::Diagnostics(list.into_iter().map(from_wire::diagnostic).collect()))
                }
                None => Err(Failure::user(
                    result.message.unwrap_or_else(|| "The editor has no diagnostics.".into()),
                )),
            }
        }
        HostCall::Definition { path, position } => {
            let params = json!({"uri": format!("file://{}", path.display()), "position": position});
            locations(outgoing.request(method::GET_DEFINITION, &params, deadline)).await
        }
        HostCall::References { path, position, include_declaration } => {
            let params = json!({
                "uri": format!("file://{}", path.display()), "position": position,
                "includeDeclaration": include_declaration,
            });
            locations(outgoing.request(method::GET_REFERENCES, &params, deadline)).await
        }
        _ => Err(Failure::user("This editor cannot do that.")),
    }
}

async fn locations(request: rpc::Request) -> Result<HostReply, Failure> {
    let result: wire::LocationsResult = request
        .decode()
        .await
        .map_err(|error| Failure::user(format!("The editor gave no answer: {error}. Use grep instead.")))?;
    let places = result.locations.unwrap_or_default().into_iter().map(|location| domain::host::Place {
        path: from_wire::path(&location.uri),
        start: from_wire::position(location.range.start),
        end: from_wire::position(location.range.end),
    });
    Ok(HostReply::Locations(places.collect()))
}
