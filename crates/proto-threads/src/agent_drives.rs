//! The agent drives, as the headings of the document have it: the client streams the user's message to us, and we call
//! its thread methods.
//!
//! Chunks form the user's message of a thread. It is complete when the client's entries show it, or after a quiet time.
//! The answer goes back by `sendMessage`. Invariants: one turn of a thread at a time, in the order of the messages; a
//! client's thread is the chat of the same id, unless that chat began otherwise.

use std::collections::VecDeque;
use std::time::Duration;

use domain::command::{Context, SessionInfo, SessionSettings, UserPrompt};
use domain::link::Commands;
use domain::{Command, Failure, ItemId, SessionId, TurnId};
use rpc::{RequestError, Responder};

use crate::serve::{Driver, Server, is_unknown_method};
use crate::to_wire;
use crate::wire::{self, Message, MessageChunk, Role, ThreadEntry, method};

/// How long a client may take for one of its methods.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most of a user's message that is gathered.
const LONGEST: usize = 4 << 20;

/// A thread of the client.
#[derive(Default)]
pub struct Conversation {
    /// The user's message so far.
    message: String,
    /// Counts chunks, so that a quiet time is that of the last one.
    chunks: u64,
    /// The client's entries are being asked for.
    asking: bool,
    /// The client does not tell its entries.
    silent: bool,
    /// Messages that are complete.
    ready: VecDeque<String>,
    /// The client's entries, as last seen.
    entries: Vec<ThreadEntry>,
    session: Option<SessionId>,
    running: bool,
    turn: Option<TurnId>,
    answer: Vec<(ItemId, String)>,
}

/// Asks the client for its threads: who has them lets us drive. Where it has none, we make the first.
pub fn look_around(server: &mut Server) {
    let threads = server.outgoing.request(method::GET_THREADS, &(), PATIENCE);
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
    let created = server.outgoing.request(method::CREATE_THREAD, &(), PATIENCE);
    server.engine.later(created.decode::<wire::Thread>(), |server, created| match created {
        Ok(thread) => open(server, thread.thread_id),
        Err(error) => tracing::debug!(%error, "the client made no thread"),
    });
}

fn open(server: &mut Server, thread_id: String) {
    let opened = server.outgoing.request(method::OPEN_THREAD, &wire::Thread { thread_id }, PATIENCE);
    server.engine.later(opened, |_, opened| {
        if let Err(error) = opened {
            tracing::debug!(%error, "the client did not open a thread");
        }
    });
}

pub async fn stream_message_chunk(
    server: &mut Server,
    params: wire::StreamMessageChunk,
    responder: Responder,
) {
    let wire::StreamMessageChunk { thread_id, chunk: MessageChunk::Text { chunk } } = params;
    if !server.conversations.contains_key(&thread_id) {
        server.conversations.insert(thread_id.clone(), Conversation::default());
        open(server, thread_id.clone());
    }
    let quiet = server.options.quiet;
    let Some(conversation) = server.conversations.get_mut(&thread_id) else { return };
    if conversation.message.len() + chunk.len() > LONGEST {
        let sentence = "The message is too long; send it in parts.";
        return responder.fail(rpc::Fault::new(rpc::Fault::INVALID_PARAMS, sentence));
    }
    conversation.message.push_str(&chunk);
    conversation.chunks += 1;
    let chunks = conversation.chunks;
    responder.succeed(&());
    look_at_entries(server, &thread_id);
    server.engine.later(tokio::time::sleep(quiet), move |server, ()| {
        let conversation = server.conversations.get_mut(&thread_id);
        if conversation.is_some_and(|it| it.chunks == chunks && !it.message.is_empty()) {
            complete(server, &thread_id);
        }
    });
}

/// Asks the client for the thread's entries, to see whether the message is complete.
fn look_at_entries(server: &mut Server, thread_id: &str) {
    let Some(conversation) = server.conversations.get_mut(thread_id) else { return };
    if conversation.asking || conversation.silent {
        return;
    }
    conversation.asking = true;
    let chunks = conversation.chunks;
    let thread = wire::Thread { thread_id: thread_id.to_owned() };
    let asked = server.outgoing.request(method::GET_THREAD_ENTRIES, &thread, PATIENCE);
    server.engine.later(asked.decode::<wire::Entries>(), move |server, entries| {
        let Some(conversation) = server.conversations.get_mut(&thread.thread_id) else { return };
        conversation.asking = false;
        match entries {
            Ok(entries) => conversation.entries = entries.entries,
            Err(error) => {
                conversation.silent = !matches!(error, RequestError::Unexpected(_));
                return;
            }
        }
        if conversation.shows_message() {
            complete(server, &thread.thread_id);
        } else if conversation.chunks != chunks {
            look_at_entries(server, &thread.thread_id);
        }
    });
}

impl Conversation {
    /// The chat that this thread is.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub fn is(&self, session: &SessionId) -> bool {
        self.session.as_ref() == Some(session)
    }

    /// The last entry is the message that was streamed.
    fn shows_message(&self) -> bool {
        let last = self.entries.last();
        matches!(last, Some(ThreadEntry::Message(message))
            if message.role == Role::User && !self.message.is_empty() && message.whole() == self.message)
    }

    /// The first words of the user in the client's thread.
    fn beginning(&self) -> Option<String> {
        first_words(&self.entries)
    }
}

fn first_words(entries: &[ThreadEntry]) -> Option<String> {
    entries.iter().find_map(|entry| match entry {
        ThreadEntry::Message(message) if message.role == Role::User => Some(message.whole()),
        ThreadEntry::Message(_) | ThreadEntry::ReadFile { .. } => None,
    })
}

fn complete(server: &mut Server, thread_id: &str) {
    let Some(conversation) = server.conversations.get_mut(thread_id) else { return };
    let message = std::mem::take(&mut conversation.message);
    if !message.trim().is_empty() {
        conversation.ready.push_back(message);
    }
    next(server, thread_id);
}

/// Begins the turn of the next message, where none is under way.
fn next(server: &mut Server, thread_id: &str) {
    let Some(conversation) = server.conversations.get_mut(thread_id) else { return };
    if conversation.running {
        return;
    }
    let Some(text) = conversation.ready.pop_front() else { return };
    conversation.running = true;
    let begin = Begin {
        commands: server.commands.clone(),
        thread: SessionId::new(thread_id),
        known: conversation.session.clone(),
        beginning: conversation.beginning(),
        earlier: earlier(&conversation.entries, &text),
        workspace: vec![server.options.workspace.clone()],
        text,
    };
    let thread_id = thread_id.to_owned();
    server.engine.later(begin.run(), move |server, begun| match begun {
        Ok((info, turn)) => {
            server.follow(&info.id, info.newest);
            if let Some(thread) = server.threads.get_mut(&info.id) {
                thread.projection.began(turn);
            }
            if let Some(conversation) = server.conversations.get_mut(&thread_id) {
                conversation.session = Some(info.id);
                conversation.turn = Some(turn);
            }
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
                let who = if message.role == Role::User { "User" } else { "Assistant" };
                format!("{who}: {}", message.whole())
            }
            ThreadEntry::ReadFile { path, content } => format!("File {path}:\n{content}"),
        })
        .collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

/// Everything that the beginning of a turn needs.
struct Begin {
    commands: Commands,
    thread: SessionId,
    known: Option<SessionId>,
    beginning: Option<String>,
    earlier: Option<String>,
    workspace: Vec<std::path::PathBuf>,
    text: String,
}

impl Begin {
    async fn run(self) -> Result<(SessionInfo, TurnId), Failure> {
        let info = self.chat().await?;
        // A chat of ours has its history; one that is new here is told what the client's thread holds.
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
        let (true, Some(beginning)) = (info.newest > 1, &self.beginning) else { return Ok(info) };
        let facts = domain::replay::read(&self.commands, &info.id).await?;
        let ours = first_words(&to_wire::entries(facts));
        // Ids of clients are not unique: a chat that began with other words is another one.
        if ours.is_none_or(|ours| ours == *beginning) { Ok(info) } else { self.open(None).await }
    }

    async fn open(&self, id: Option<SessionId>) -> Result<SessionInfo, Failure> {
        let (workspace, settings) = (Some(self.workspace.clone()), SessionSettings::default());
        let servers = Vec::new();
        self.commands.call(|reply| Command::Open { id, workspace, settings, servers, reply }).await
    }
}

/// Gathers the answer of a turn that a client's chunks began; false where it is none of those.
pub fn answered(server: &mut Server, session: &SessionId, turn: TurnId, item: ItemId, text: &str) -> bool {
    let Some((_, conversation)) = of_turn(server, session, turn) else { return false };
    match conversation.answer.last_mut() {
        Some((last, answer)) if *last == item => answer.push_str(text),
        _ => conversation.answer.push((item, text.to_owned())),
    }
    true
}

pub fn ended(server: &mut Server, session: &SessionId, turn: TurnId, outcome: Result<(), Failure>) {
    if let Some((thread_id, _)) = of_turn(server, session, turn) {
        let thread_id = thread_id.clone();
        send_answer(server, &thread_id, outcome);
    }
}

pub fn lost(server: &mut Server, session: &SessionId, failure: Failure) {
    let under_way = server
        .conversations
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
) -> Option<(&'a String, &'a mut Conversation)> {
    server.conversations.iter_mut().find(|(_, it)| it.turn == Some(turn) && it.is(session))
}

/// The answer, or why there is none, as a message of the assistant; then the next message's turn.
fn send_answer(server: &mut Server, thread_id: &str, outcome: Result<(), Failure>) {
    let Some(conversation) = server.conversations.get_mut(thread_id) else { return };
    conversation.turn = None;
    let mut chunks: Vec<MessageChunk> =
        conversation.answer.drain(..).map(|(_, text)| MessageChunk::text(text)).collect();
    if let Err(failure) = outcome {
        chunks.push(MessageChunk::text(failure.to_string()));
    }
    let message = Message { role: Role::Assistant, chunks };
    let params = wire::SendMessage { thread_id: thread_id.to_owned(), message };
    let sent = server.outgoing.request(method::SEND_MESSAGE, &params, PATIENCE);
    server.engine.later(sent, move |server, sent| {
        if let Err(error) = sent {
            tracing::warn!(%error, "the client did not take the answer");
        }
        if let Some(conversation) = server.conversations.get_mut(&params.thread_id) {
            conversation.running = false;
        }
        next(server, &params.thread_id);
    });
}
