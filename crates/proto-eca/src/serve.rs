//! One ECA connection: messages in, commands to the engine, events out. One task, so that order is what it looks like.
//!
//! Invariants: commands leave in the order of the messages; a response leaves before the events its command causes
//! (replies are looked at before events); a client that does not read stops nothing but its own output.

use std::collections::HashMap;
use std::time::Duration;

use domain::command::{Catalog, WorkspaceSpec};
use domain::event::{CatalogKind, EventBody, Outcome};
use domain::host::{HostReply, HostRequest};
use domain::link::Engine;
use domain::{
    Answer, Ask, AskKind, Command, Event, Fact, Failure, FrontendEvent, FrontendLink, HostCall, SessionId,
};
use rpc::{Backlog, End, Inbound, Outgoing, PeerOptions, Responder, Transport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::draft::DraftProjection;
use crate::from_wire;
use crate::pending_logins::{self, PendingLogins};
use crate::to_wire::{self, Projection};
use crate::wire::{self, Out, method};

/// How long the last words may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// A person may take this long to answer a question in the editor.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// What the connection tells the program around it.
pub struct ServeOptions {
    /// The client's process: when it dies, so do we.
    pub parent: mpsc::UnboundedSender<u32>,
}

/// Serves until the input ends or `exit` comes.
pub async fn serve(engine: Engine, transport: Transport, options: ServeOptions) -> std::io::Result<()> {
    let settings = PeerOptions {
        cancel: Some(rpc::CancelMethod { method: "$/cancelRequest", parameter: "id" }),
        ..PeerOptions::header()
    };
    let (peer, inbox) = rpc::inbox(settings, transport)?;
    let mut server = Server {
        engine: FrontendLink::new(engine),
        client: Backlog::new(peer.outgoing()),
        options,
        chats: HashMap::new(),
        catalog: Catalog::default(),
        hello: None,
        draft: false,
        over: false,
        pending_logins: PendingLogins::default(),
    };
    server.run(inbox, peer.ended()).await;
    // Who closed its side may still wait for answers.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, peer.answered()).await;
    peer.close(CLOSE_TIMEOUT).await;
    Ok(())
}

enum ChatProjection {
    Current(Projection),
    Draft(DraftProjection),
}

pub(crate) struct Server {
    /// Attached from `initialize` on.
    pub engine: FrontendLink<Server>,
    client: Backlog,
    pub options: ServeOptions,
    chats: HashMap<SessionId, ChatProjection>,
    pub catalog: Catalog,
    /// What the client said it can and where it works.
    pub hello: Option<(domain::Abilities, WorkspaceSpec)>,
    /// The client speaks the draft protocol.
    pub draft: bool,
    pub over: bool,
    /// Responses that wait for what a provider thinks of its key.
    pub pending_logins: PendingLogins,
}

impl Server {
    async fn run(&mut self, mut inbox: mpsc::Receiver<Inbound>, ended: impl Future<Output = End>) {
        let mut ended = std::pin::pin!(ended);
        while !self.over {
            match self.engine.next(&mut inbox, self.client.wait_for_room(), &mut ended).await {
                FrontendEvent::Reply(then) => then(self),
                FrontendEvent::Message(message) => crate::dispatch::handle_message(self, message).await,
                FrontendEvent::Host(request) => self.host_call(request),
                FrontendEvent::Event(event) => self.show(&event),
                FrontendEvent::Room => self.client.drain(),
                FrontendEvent::End => break,
            }
        }
        pending_logins::end(self);
        self.engine.post(Command::Detach).await;
    }

    pub(crate) fn has_chats(&self) -> bool {
        !self.chats.is_empty()
    }

    pub(crate) fn knows(&self, session: &SessionId) -> bool {
        self.chats.contains_key(session)
    }

    /// Shows what happens in a chat from fact `after` on.
    pub(crate) fn follow(&mut self, session: SessionId, after: u64) {
        self.learn(&session);
        self.engine.follow(session, after);
    }

    /// From now on the chat is one of this connection's.
    pub(crate) fn learn(&mut self, session: &SessionId) {
        let draft = self.draft;
        self.chats.entry(session.clone()).or_insert_with(|| new_projection(draft));
    }

    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.chats.remove(session);
        self.engine.forget(session);
    }

    /// Shows stored facts, and what comes after them. Of turns that went well only the last one's state is told.
    pub(crate) fn replay(
        &mut self,
        session: &SessionId,
        facts: Vec<std::sync::Arc<domain::Recorded>>,
        newest: u64,
    ) {
        self.chats.insert(session.clone(), new_projection(self.draft));
        let facts = domain::replay::visible_facts(facts);
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
    pub(crate) fn ask_of(&self, session: &SessionId, call: &str) -> Option<domain::AskId> {
        let id = domain::ItemId::parse(call)?;
        match self.chats.get(session)? {
            ChatProjection::Current(projection) => projection.asks.get(&id).copied(),
            ChatProjection::Draft(_) => None,
        }
    }

    pub(crate) fn show(&mut self, event: &Event) {
        if pending_logins::defers(self, event) {
            return;
        }
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
            Some(ChatProjection::Current(projection)) => projection.project(event),
            Some(ChatProjection::Draft(projection)) => projection.project(event),
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

    /// Tells the client something, after everything before it.
    pub(crate) fn notify<P: serde::Serialize + ?Sized>(&mut self, method: &'static str, params: &P) {
        if let Err(error) = self.client.notify(method, params) {
            tracing::error!(%error, method, "a notification could not be written");
        }
    }

    /// Answers after everything that was notified before.
    pub(crate) fn respond(&mut self, responder: Option<Responder>, result: Value) {
        self.respond_with(responder, Ok(result));
    }

    pub(crate) fn respond_with(&mut self, responder: Option<Responder>, outcome: Result<Value, Failure>) {
        if let Some(responder) = responder {
            let outcome = outcome.map_err(|failure| crate::dispatch::fault(&failure));
            self.client.respond(responder, outcome);
        }
    }

    /// A rollback: the client clears the chat and gets what is left of it.
    fn show_anew(&mut self, session: SessionId) {
        let Some(commands) = self.engine.commands() else { return };
        self.forget(&session);
        let chat = session.clone();
        self.engine.later(
            async move { domain::replay::read(&commands, &chat).await },
            move |server, facts| {
                let facts = facts.unwrap_or_default();
                let newest = facts.last().map_or(0, |last| last.number);
                server.notify(method::CHAT_CLEARED, &json!({"chatId": session, "messages": true}));
                server.replay(&session, facts, newest);
            },
        );
    }

    fn catalog_changed(&mut self, kind: CatalogKind) {
        if self.draft {
            return;
        }
        let Some(commands) = self.engine.commands() else { return };
        match kind {
            CatalogKind::Models => self.engine.later(
                async move { commands.call(|reply| Command::Catalog { reply }).await },
                |server, catalog| {
                    if let Ok(catalog) = catalog {
                        crate::catalog::tell_models(server, catalog);
                    }
                },
            ),
            CatalogKind::ToolServers => self.engine.later(
                async move { commands.call(|reply| Command::Servers { reply }).await },
                |server, servers| crate::catalog::tell_servers(server, &servers.unwrap_or_default()),
            ),
        }
    }

    /// A question to the user, put to the editor; its answer goes to the engine.
    fn ask(&mut self, session: &SessionId, ask: &Ask) {
        let AskKind::Question { text, options, freeform } = &ask.kind else { return };
        let Some(commands) = self.engine.commands() else { return };
        let params = json!({
            "chatId": session, "question": text, "options": to_wire::choices(options), "allowFreeform": freeform,
            "toolCallId": ask.item.map(|item| item.to_string()),
        });
        let request = self.client.outgoing().request(method::ASK_QUESTION, &params, QUESTION_TIMEOUT);
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
        let outgoing = self.client.outgoing().clone();
        tokio::spawn(async move {
            let _ = reply.send(ask_editor(&outgoing, call, deadline).await);
        });
    }
}

fn new_projection(draft: bool) -> ChatProjection {
    if draft {
        ChatProjection::Draft(DraftProjection::default())
    } else {
        ChatProjection::Current(Projection::default())
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
            let params = json!({"uri": format!("file://{}", path.display()), "position": to_wire::position(&position)});
            locations(outgoing.request(method::GET_DEFINITION, &params, deadline)).await
        }
        HostCall::References { path, position, include_declaration } => {
            let params = json!({
                "uri": format!("file://{}", path.display()), "position": to_wire::position(&position),
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
    let places = result.locations.unwrap_or_default().into_iter().map(|location| domain::host::SourceRange {
        path: from_wire::path(&location.uri),
        start: from_wire::position(location.range.start),
        end: from_wire::position(location.range.end),
    });
    Ok(HostReply::Locations(places.collect()))
}
