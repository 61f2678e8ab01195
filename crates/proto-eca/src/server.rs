//! The state of one ECA connection, and how it sends: its chats, what the client has been told, what waits.
//!
//! Must not know methods. Invariant: a client that does not read stops nothing but its own output.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use domain::command::{Catalog, SessionSettings, WorkspaceSpec};
use domain::event::EventBody;
use domain::item::ItemKind;
use domain::tool_call::Details;
use domain::{Abilities, AskId, Event, Fact, Failure, FrontendLink, ItemId, SessionId};
use rpc::{Backlog, Inbound, Outgoing};
use tokio::sync::{mpsc, oneshot};

use crate::dialect_interface::{Dialect, Projection};
use crate::faults::fault_of;
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::sent::{PendingLogins, SentCatalog, SentProviders};
use crate::wire::notifications::{Notification, Outbound};
use crate::wire::requests::{Exit, Method};
use crate::wire::{ChatId, ChatKey};

/// Messages that may wait for the response to `initialize`.
const EARLY_MESSAGES: usize = 256;

/// The connection's ways to the program around it.
pub struct ServeOptions {
    /// The client's process id: the program ends when that process does.
    pub parent: mpsc::UnboundedSender<u32>,
    /// The client is on another machine: its process is not watched, and it is not asked about files.
    pub is_remote: bool,
    /// The file of the user's own settings, on the client's machine.
    pub global_config: Option<PathBuf>,
}

/// A chat of this connection.
pub(crate) struct OpenSession {
    pub projection: Box<dyn Projection>,
    /// The model that answers, as far as it is known here.
    pub model: Option<String>,
    /// The chat that a subagent works for, as the client knows it.
    pub parent: Option<String>,
    /// The oldest item that the client has been sent; `None`: all of them.
    pub shown_from: Option<ItemId>,
    /// See [`crate::inline_prompt`].
    pub is_inline: bool,
}

pub(crate) struct Server {
    /// Attached from `initialize` on.
    pub engine: FrontendLink<Server>,
    pub client: Backlog,
    pub options: ServeOptions,
    pub sessions: HashMap<SessionId, OpenSession>,
    /// Chats that the client names by a number; such a name is good for this connection only.
    pub numbered: HashMap<i64, SessionId>,
    pub catalog: Catalog,
    pub sent: SentCatalog,
    /// The client's abilities and its workspace.
    pub client_setup: Option<(Abilities, WorkspaceSpec)>,
    pub dialect: &'static dyn Dialect<Server>,
    /// Messages that wait for the response to `initialize`; `None` while nothing waits.
    pub early: Option<VecDeque<Inbound>>,
    /// Messages that have waited and are handled next.
    pub deferred: VecDeque<Inbound>,
    pub is_over: bool,
    /// Chats whose history the client changes, and whether an event of such a change came meanwhile.
    pub changing: HashMap<SessionId, bool>,
    /// Responses that wait for a provider's answer about its key.
    pub pending_logins: PendingLogins,
    pub sent_providers: SentProviders,
    /// Settings of chats that the client has named and not begun.
    pub unopened: HashMap<SessionId, SessionSettings>,
    /// Chats of which the client knows what the model is told of the memory.
    pub memory_told: HashSet<SessionId>,
    /// Ends the inline completion that is under way when it is dropped.
    pub completing: Option<oneshot::Sender<()>>,
    /// The inline completion that was shown last.
    pub proposal: Option<Proposal>,
}

impl Server {
    pub(crate) fn begin_initializing(&mut self) {
        self.early = Some(VecDeque::new());
    }

    /// The response to `initialize` has left: the messages that waited for it are handled next.
    pub(crate) fn end_initializing(&mut self) {
        self.deferred.extend(self.early.take().unwrap_or_default());
    }

    /// Keeps a message that comes before the response to `initialize`.
    pub(crate) fn defer_until_initialized(&mut self, message: Inbound) -> Option<Inbound> {
        match &mut self.early {
            Some(early) if message.method != Exit::NAME && early.len() < EARLY_MESSAGES => {
                early.push_back(message);
                None
            }
            _ => Some(message),
        }
    }

    pub(crate) fn has_sessions(&self) -> bool {
        !self.sessions.is_empty()
    }

    pub(crate) fn has_session(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    /// The session that a client names; `None` where it names none, or an unknown number.
    pub(crate) fn session_of(&self, key: Option<&ChatKey>) -> Option<SessionId> {
        match key? {
            ChatKey::Text(id) => (!id.is_empty()).then(|| SessionId::new(id.clone())),
            ChatKey::Number(number) => self.numbered.get(number).cloned(),
        }
    }

    /// The session of a prompt: the named one, or a new one.
    pub(crate) fn session_for_prompt(&mut self, key: Option<&ChatKey>) -> SessionId {
        if let Some(session) = self.session_of(key) {
            return session;
        }
        let session = SessionId::new(uuid::Uuid::now_v7().to_string());
        if let Some(ChatKey::Number(number)) = key {
            self.numbered.insert(*number, session.clone());
        }
        session
    }

    /// The session's id as the client knows it.
    pub(crate) fn chat_key(&self, session: &SessionId) -> ChatKey {
        match self.number_of(session) {
            Some(number) => ChatKey::Number(number),
            None => ChatKey::Text(session.to_string()),
        }
    }

    fn number_of(&self, session: &SessionId) -> Option<i64> {
        self.numbered.iter().find(|(_, numbered)| *numbered == session).map(|(number, _)| *number)
    }

    /// The model that answers in a session, or the default.
    pub(crate) fn model_of(&self, session: &SessionId) -> String {
        let known = self.sessions.get(session).and_then(|open| open.model.clone());
        known.or_else(|| self.catalog.default_model.clone()).unwrap_or_default()
    }

    pub(crate) fn set_model(&mut self, session: &SessionId, model: Option<&str>) {
        if let (Some(open), Some(model)) = (self.sessions.get_mut(session), model) {
            open.model = Some(model.to_owned());
        }
    }

    /// The client has the history from this item on; `None`: all of it.
    pub(crate) fn show_from(&mut self, session: &SessionId, item: Option<ItemId>) {
        if let Some(open) = self.sessions.get_mut(session) {
            open.shown_from = item;
        }
    }

    pub(crate) fn is_inline(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|open| open.is_inline)
    }

    pub(crate) fn mark_inline(&mut self, session: &SessionId) {
        if let Some(open) = self.sessions.get_mut(session) {
            open.is_inline = true;
        }
    }

    /// Shows the session's events after fact `after`.
    pub(crate) fn follow(&mut self, session: SessionId, after: u64) {
        self.add_session(&session);
        self.engine.follow(session, after);
    }

    pub(crate) fn add_session(&mut self, session: &SessionId) {
        let dialect = self.dialect;
        self.sessions.entry(session.clone()).or_insert_with(|| OpenSession {
            projection: dialect.new_projection(),
            model: None,
            parent: None,
            shown_from: None,
            is_inline: false,
        });
    }

    /// Shows no event of the session until it is followed again.
    pub(crate) fn pause(&mut self, session: &SessionId) {
        self.engine.forget(session);
    }

    pub(crate) fn remove_session(&mut self, session: &SessionId) {
        self.sessions.remove(session);
        self.numbered.retain(|_, numbered| numbered != session);
        self.engine.forget(session);
    }

    /// The ask that waits on a tool call of a session.
    pub(crate) fn ask_of(&self, session: &SessionId, call: &str) -> Option<AskId> {
        self.sessions.get(session)?.projection.ask_of(call)
    }

    /// The id that the client has of a tool call.
    pub(crate) fn call_id(&self, session: &SessionId, call: ItemId) -> String {
        let chat = self.sessions.get(session);
        chat.map_or_else(|| call.to_string(), |chat| chat.projection.call_id(call))
    }

    pub(crate) fn project(&mut self, event: &Event) {
        let number = event.session.as_ref().and_then(|session| self.number_of(session));
        let chat = match (number, &event.session) {
            (Some(number), _) => ChatId::Number(number),
            (None, Some(session)) => ChatId::Text(session.as_str()),
            (None, None) => ChatId::Text(""),
        };
        let outbound = match event.session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            Some(open) => {
                let mut outbound = open.projection.project(chat, event);
                for one in &mut outbound {
                    if let Outbound::Content(content) = one {
                        content.parent_chat_id = open.parent.clone();
                    }
                }
                outbound
            }
            None => self.dialect.new_projection().project(chat, event),
        };
        self.send(outbound);
        self.follow_subagent(event);
    }

    /// Shows the chat of a subagent from its beginning, after the call that started it.
    fn follow_subagent(&mut self, event: &Event) {
        let shows_them = self.client_setup.as_ref().is_some_and(|(abilities, _)| abilities.subagents);
        let (Some(parent), EventBody::Fact(recorded), true) = (&event.session, &event.body, shows_them)
        else {
            return;
        };
        let (Fact::ItemChanged { item } | Fact::ItemEnded { item }) = &recorded.fact else { return };
        let ItemKind::ToolCall(call) = &item.kind else { return };
        let Some(Details::Subagent { session, .. }) = &call.details else { return };
        if session.as_str().is_empty() || self.sessions.contains_key(session) {
            return;
        }
        let parent = match self.chat_key(parent) {
            ChatKey::Text(id) => id,
            ChatKey::Number(number) => number.to_string(),
        };
        self.follow(session.clone(), 0);
        if let Some(open) = self.sessions.get_mut(session) {
            open.parent = Some(parent);
        }
    }

    pub(crate) fn send(&mut self, outbound: Vec<Outbound<'_>>) {
        for one in &outbound {
            match one {
                Outbound::Content(content) => self.notify(content),
                Outbound::Draft(content) => self.notify(content),
                Outbound::Status(status) => self.notify(status),
                Outbound::Message(message) => self.notify(message),
                Outbound::Config(config) => self.notify(config.as_ref()),
            }
        }
    }

    /// Sends a notification after every earlier message, where the client's dialect has it.
    pub(crate) fn notify<N: Notification>(&mut self, notification: &N) {
        if !self.dialect.knows(N::NAME) {
            return;
        }
        if let Err(error) = self.client.notify(N::NAME, notification) {
            tracing::error!(%error, method = N::NAME, "a notification could not be written");
        }
    }

    /// Responds after every earlier message.
    pub(crate) fn respond<M: Method>(&mut self, reply: Reply<M>, outcome: Result<M::Result, Failure>) {
        if let Some(responder) = reply.into_responder() {
            self.client.respond(responder, outcome.map_err(|failure| fault_of(&failure)));
        }
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        self.client.outgoing()
    }
}
