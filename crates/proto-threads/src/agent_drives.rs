//! The agent drives, as the headings of the document have it: the client streams the user's message, and the agent
//! calls the client's thread methods.
//!
//! Chunks form the user's message of a thread. It is complete when the client's entries show it, or after a quiet time.
//! The answer goes back by `sendMessage`. Invariants: one turn of a thread at a time, in the order of the messages; a
//! client's thread is the chat of the same id, unless that chat began otherwise.

use std::time::Duration;

use domain::command::{Context, SessionInfo, SessionSettings, UserPrompt};
use domain::link::Commands;
use domain::{Command, Failure, ItemId, SessionId, TurnId};
use rpc::{RequestError, Responder};

use crate::client_thread::ClientThread;
use crate::server::{Driver, NOTICE_ITEM, Server, is_unknown_method};
use crate::to_wire;
use crate::wire::{self, Message, MessageChunk, Role, ThreadEntry, method};

/// How long a client may take for one of its methods.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the next chunk of an entry that grows may take.
const GROWTH_TIME: Duration = Duration::from_millis(300);
/// The most of a user's message that is gathered.
const MESSAGE_LIMIT: usize = 4 << 20;

/// Asks the client for its threads: a client that has them lets the agent drive. Creates the first where there is none.
pub(crate) fn request_threads(server: &mut Server) {
    let threads = server.outgoing.request(method::GET_THREADS, &(), CALL_TIMEOUT);
    server.engine.later(threads.decode::<wire::Threads>(), |server, threads| match threads {
        Ok(threads) => {
            if *server.driver.get_or_insert(Driver::Agent) == Driver::Agent && threads.threads.is_empty() {
                create(server);
            }
        }
        Err(error) if is_unknown_method(&error) => {
            server.driver.get_or_insert(Driver::Editor);
        }
        Err(error) => tracing::debug!(%error, "the client did not tell its threads"),
    });
}

fn create(server: &mut Server) {
    let created = server.outgoing.request(method::CREATE_THREAD, &(), CALL_TIMEOUT);
    server.engine.later(created.decode::<wire::Thread>(), |server, created| match created {
        Ok(thread) => open(server, thread.thread_id),
        Err(error) => tracing::debug!(%error, "the client made no thread"),
    });
}

fn open(server: &mut Server, thread_id: String) {
    let opened = server.outgoing.request(method::OPEN_THREAD, &wire::Thread { thread_id }, CALL_TIMEOUT);
    server.engine.later(opened, |_, opened| {
        if let Err(error) = opened {
            tracing::debug!(%error, "the client did not open a thread");
        }
    });
}

pub(crate) async fn stream_message_chunk(
    server: &mut Server,
    params: wire::StreamMessageChunk,
    responder: Responder,
) {
    let wire::StreamMessageChunk { thread_id, chunk: MessageChunk::Text { chunk } } = params;
    if !server.client_threads.contains_key(&thread_id) {
        server.client_threads.insert(thread_id.clone(), ClientThread::default());
        open(server, thread_id.clone());
    }
    let quiet = server.options.quiet;
    let Some(thread) = server.client_threads.get_mut(&thread_id) else { return };
    if thread.message.len() + chunk.len() > MESSAGE_LIMIT {
        let sentence = "The message is too long; send it in parts.";
        return responder.fail(rpc::Fault::new(rpc::Fault::INVALID_PARAMS, sentence));
    }
    thread.message.push_str(&chunk);
    thread.chunks += 1;
    let chunks = thread.chunks;
    responder.succeed(&());
    request_entries(server, &thread_id);
    server.engine.later(tokio::time::sleep(quiet), move |server, ()| {
        let thread = server.client_threads.get_mut(&thread_id);
        if thread.is_some_and(|it| it.chunks == chunks && !it.message.is_empty()) {
            complete(server, &thread_id);
        }
    });
}

/// Asks the client for the thread's entries, to see whether the message is complete.
fn request_entries(server: &mut Server, thread_id: &str) {
    let Some(thread) = server.client_threads.get_mut(thread_id) else { return };
    if thread.asking || thread.silent {
        return;
    }
    thread.asking = true;
    let chunks = thread.chunks;
    let params = wire::Thread { thread_id: thread_id.to_owned() };
    let asked = server.outgoing.request(method::GET_THREAD_ENTRIES, &params, CALL_TIMEOUT);
    server.engine.later(asked.decode::<wire::Entries>(), move |server, entries| {
        let Some(thread) = server.client_threads.get_mut(&params.thread_id) else { return };
        thread.asking = false;
        match entries {
            Ok(entries) => thread.entries = entries.entries,
            Err(error) => {
                thread.silent = !matches!(error, RequestError::Unexpected(_));
                return;
            }
        }
        let (shown, now) = (thread.shown_part(), thread.chunks);
        thread.adds_whole_messages |= shown == ShownPart::Nothing && !thread.message.is_empty();
        if shown == ShownPart::All && thread.adds_whole_messages {
            complete(server, &params.thread_id);
        } else if shown == ShownPart::All {
            complete_unless_it_grows(server, params.thread_id, now);
        } else if now != chunks {
            request_entries(server, &params.thread_id);
        }
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownPart {
    Nothing,
    Beginning,
    All,
}

/// Some clients extend their entry with every chunk: the message counts as complete when no chunk follows.
fn complete_unless_it_grows(server: &mut Server, thread_id: String, chunks: u64) {
    let wait = GROWTH_TIME.min(server.options.quiet);
    server.engine.later(tokio::time::sleep(wait), move |server, ()| {
        let Some(thread) = server.client_threads.get(&thread_id) else { return };
        if thread.chunks == chunks && !thread.message.is_empty() {
            complete(server, &thread_id);
        } else if thread.chunks != chunks {
            request_entries(server, &thread_id);
        }
    });
}

impl ClientThread {
    /// The chat that this thread is.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(crate) fn is(&self, session: &SessionId) -> bool {
        self.session.as_ref() == Some(session)
    }

    /// The part of the streamed message that the last entry shows.
    fn shown_part(&self) -> ShownPart {
        let Some(ThreadEntry::Message(last)) = self.entries.last() else { return ShownPart::Nothing };
        let text = last.whole();
        if last.role != Role::User || text.is_empty() || !self.message.starts_with(&text) {
            return ShownPart::Nothing;
        }
        if text == self.message { ShownPart::All } else { ShownPart::Beginning }
    }

    /// The first words of the user in the client's thread.
    fn first_user_text(&self) -> Option<String> {
        first_user_text_of(&self.entries)
    }
}

fn first_user_text_of(entries: &[ThreadEntry]) -> Option<String> {
    entries.iter().find_map(|entry| match entry {
        ThreadEntry::Message(message) if message.role == Role::User => Some(message.whole()),
        ThreadEntry::Message(_) | ThreadEntry::ReadFile { .. } => None,
    })
}

fn complete(server: &mut Server, thread_id: &str) {
    let Some(thread) = server.client_threads.get_mut(thread_id) else { return };
    let message = std::mem::take(&mut thread.message);
    if !message.trim().is_empty() {
        thread.ready.push_back(message);
    }
    next(server, thread_id);
}

/// Begins the turn of the next message, where none is under way.
fn next(server: &mut Server, thread_id: &str) {
    let Some(thread) = server.client_threads.get_mut(thread_id) else { return };
    if thread.running {
        return;
    }
    let Some(text) = thread.ready.pop_front() else { return };
    thread.running = true;
    let start = TurnStart {
        commands: server.commands.clone(),
        thread: SessionId::new(thread_id),
        known: thread.session.clone(),
        first_user_text: thread.first_user_text(),
        earlier: earlier(&thread.entries, &text),
        workspace: vec![server.options.workspace.clone()],
        text,
    };
    let thread_id = thread_id.to_owned();
    server.engine.later(start.run(), move |server, begun| match begun {
        Ok((info, turn)) => {
            server.follow(&info.id, info.newest);
            if let Some(thread) = server.threads.get_mut(&info.id) {
                thread.projection.mark_own_turn(turn);
            }
            if let Some(thread) = server.client_threads.get_mut(&thread_id) {
                thread.session = Some(info.id);
                thread.turn = Some(turn);
            }
            server.show_problems(None);
        }
        Err(failure) => send_answer(server, &thread_id, Err(failure)),
    });
}

/// What the client's thread holds before the message that begins the turn.
fn earlier(entries: &[ThreadEntry], text: &str) -> Option<String> {
    let before = match entries.split_last() {
        Some((ThreadEntry::Message(last), before)) if last.role == Role::User && last.whole() == text => {
            before
        }
        _ => entries,
    };
    let told: Vec<String> = before
        .iter()
        .map(|entry| match entry {
            ThreadEntry::Message(message) => {
                let speaker = if message.role == Role::User { "User" } else { "Assistant" };
                format!("{speaker}: {}", message.whole())
            }
            ThreadEntry::ReadFile { path, content } => format!("File {path}:\n{content}"),
        })
        .collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

/// Everything that the start of a turn needs.
struct TurnStart {
    commands: Commands,
    thread: SessionId,
    known: Option<SessionId>,
    first_user_text: Option<String>,
    earlier: Option<String>,
    workspace: Vec<std::path::PathBuf>,
    text: String,
}

impl TurnStart {
    async fn run(self) -> Result<(SessionInfo, TurnId), Failure> {
        let info = self.chat().await?;
        // A stored chat has its history; a new one gets the entries of the client's thread as context.
        let is_new = self.known.is_none() && info.newest <= 1;
        let contexts = self
            .earlier
            .filter(|_| is_new)
            .map(|text| Context::Text { name: "Earlier in this thread".to_owned(), text });
        let prompt =
            UserPrompt { text: self.text, contexts: contexts.into_iter().collect(), ..UserPrompt::default() };
        let session = info.id.clone();
        let accepted = self.commands.call(|reply| Command::Prompt { session, prompt, reply }).await?;
        Ok((info, accepted.turn))
    }

    async fn chat(&self) -> Result<SessionInfo, Failure> {
        if let Some(known) = &self.known {
            return self.open(Some(known.clone())).await;
        }
        let info = self.open(Some(self.thread.clone())).await?;
        let (true, Some(first_user_text)) = (info.newest > 1, &self.first_user_text) else { return Ok(info) };
        let facts = domain::replay::read(&self.commands, &info.id).await?;
        let ours = first_user_text_of(&to_wire::entries(facts));
        // Ids of clients are not unique: a chat that began with other words is another one.
        if ours.is_none_or(|ours| ours == *first_user_text) { Ok(info) } else { self.open(None).await }
    }

    async fn open(&self, id: Option<SessionId>) -> Result<SessionInfo, Failure> {
        let (workspace, settings) = (Some(self.workspace.clone()), SessionSettings::default());
        let servers = Vec::new();
        self.commands.call(|reply| Command::Open { id, workspace, settings, servers, reply }).await
    }
}

/// Collects the answer of a turn that a client's chunks began; false for other turns.
pub(crate) fn collect_answer(
    server: &mut Server,
    session: &SessionId,
    turn: TurnId,
    item: ItemId,
    text: &str,
) -> bool {
    let Some((_, thread)) = of_turn(server, session, turn) else { return false };
    match thread.answer.last_mut() {
        Some((last, answer)) if *last == item => answer.push_str(text),
        _ => thread.answer.push((item, text.to_owned())),
    }
    true
}

/// Puts text before the answer of a turn that is under way; whether there is one.
pub(crate) fn add_to_answer(server: &mut Server, text: &str) -> bool {
    let Some(thread) = server.client_threads.values_mut().find(|thread| thread.turn.is_some()) else {
        return false;
    };
    thread.answer.insert(0, (NOTICE_ITEM, text.to_owned()));
    true
}

pub(crate) fn ended(server: &mut Server, session: &SessionId, turn: TurnId, outcome: Result<(), Failure>) {
    if let Some((thread_id, _)) = of_turn(server, session, turn) {
        let thread_id = thread_id.clone();
        send_answer(server, &thread_id, outcome);
    }
}

pub(crate) fn lost(server: &mut Server, session: &SessionId, failure: Failure) {
    let under_way = server
        .client_threads
        .iter()
        .find(|(_, it)| it.is(session) && it.turn.is_some())
        .map(|(thread_id, _)| thread_id.clone());
    if let Some(thread_id) = under_way {
        send_answer(server, &thread_id, Err(failure));
    }
}

fn of_turn<'a>(
    server: &'a mut Server,
    session: &SessionId,
    turn: TurnId,
) -> Option<(&'a String, &'a mut ClientThread)> {
    server.client_threads.iter_mut().find(|(_, it)| it.turn == Some(turn) && it.is(session))
}

/// Sends the answer or the failure as a message of the assistant; then starts the next message's turn.
fn send_answer(server: &mut Server, thread_id: &str, outcome: Result<(), Failure>) {
    let Some(thread) = server.client_threads.get_mut(thread_id) else { return };
    thread.turn = None;
    let mut chunks: Vec<MessageChunk> =
        thread.answer.drain(..).map(|(_, text)| MessageChunk::text(text)).collect();
    if let Err(failure) = outcome {
        chunks.push(MessageChunk::text(failure.to_string()));
    }
    let message = Message { role: Role::Assistant, chunks };
    let params = wire::SendMessage { thread_id: thread_id.to_owned(), message };
    let sent = server.outgoing.request(method::SEND_MESSAGE, &params, CALL_TIMEOUT);
    server.engine.later(sent, move |server, sent| {
        if let Err(error) = sent {
            tracing::warn!(%error, "the client did not take the answer");
        }
        if let Some(thread) = server.client_threads.get_mut(&params.thread_id) {
            thread.running = false;
        }
        next(server, &params.thread_id);
    });
}
