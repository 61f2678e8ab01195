//! The editor drives: it lists, makes and opens threads and sends the user's message; the agent streams the answer to it.
//!
//! Invariant: the response to `sendMessage` is sent once, after every chunk of its turn.

use std::time::Duration;

use domain::command::{SessionSettings, UserPrompt};
use domain::store::ListFilter;
use domain::{Command, Failure, ItemId, SessionId, TurnId};
use rpc::Responder;

use crate::from_wire;
use crate::server::{Chunks, Server, is_unknown_method, respond};
use crate::to_wire;
use crate::wire::{self, MessageChunk, method};

/// How long a client may take to say whether it takes chunks.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn get_threads(server: &mut Server, responder: Responder) {
    let workspace = Some(vec![server.options.workspace.clone()]);
    let filter = ListFilter { workspace, ..ListFilter::default() };
    server
        .engine
        .call(
            |reply| Command::List { filter, reply },
            |_, found| {
                let threads = found.map(|found| found.into_iter().map(to_wire::metadata).collect());
                respond(responder, threads.map(|threads| wire::Threads { threads }));
            },
        )
        .await;
}

pub(crate) async fn create_thread(server: &mut Server, responder: Responder) {
    let workspace = Some(vec![server.options.workspace.clone()]);
    server
        .engine
        .call(
            |reply| Command::Open {
                id: None,
                workspace,
                settings: SessionSettings::default(),
                servers: Vec::new(),
                reply,
            },
            |server, opened| {
                let created = opened.map(|info| {
                    server.follow(&info.id, info.newest);
                    wire::Thread { thread_id: info.id.to_string() }
                });
                respond(responder, created);
            },
        )
        .await;
}

pub(crate) async fn open_thread(server: &mut Server, params: wire::Thread, responder: Responder) {
    let session = SessionId::new(params.thread_id);
    server
        .engine
        .call(
            |reply| Command::Load { session, servers: Vec::new(), reply },
            |server, loaded| {
                respond(responder, loaded.map(|info| server.follow(&info.id, info.newest)));
            },
        )
        .await;
}

pub(crate) async fn get_thread_entries(server: &mut Server, params: wire::Thread, responder: Responder) {
    let commands = server.commands.clone();
    let reads = server.reads.entries_of(&params.thread_id);
    let session = SessionId::new(params.thread_id);
    // A thread without messages is not in the journal yet.
    let is_open = server.threads.contains_key(&session);
    let read = async move {
        let facts = domain::replay::read(&commands, &session).await?;
        if facts.is_empty() && !is_open {
            return Err(Failure::user(format!("There is no thread {session}.")));
        }
        Ok(wire::Entries { entries: to_wire::entries_with(facts, reads) })
    };
    server.engine.later(read, |_, entries| respond(responder, entries));
}

pub(crate) async fn send_message(server: &mut Server, params: wire::SendMessage, responder: Responder) {
    let text = match from_wire::user_text(&params.message) {
        Ok(text) => text,
        Err(fault) => return responder.fail(fault),
    };
    let session = SessionId::new(params.thread_id);
    let chat = session.clone();
    let loaded =
        server.engine.send(|reply| Command::Load { session: chat, servers: Vec::new(), reply }).await;
    let prompt = UserPrompt { text, ..UserPrompt::default() };
    let prompted = server.engine.send(|reply| Command::Prompt { session, prompt, reply }).await;
    server.engine.later(
        async move { Ok((loaded.await?, prompted.await?)) },
        move |server, begun: Result<_, Failure>| match begun {
            Ok((info, accepted)) => {
                server.follow(&info.id, info.newest);
                if let Some(thread) = server.threads.get_mut(&info.id) {
                    thread.projection.mark_own_turn(accepted.turn);
                    thread.waiting.insert(accepted.turn, responder);
                }
                server.show_problems(None);
            }
            Err(failure) => responder.fail(from_wire::fault_of(&failure)),
        },
    );
}

/// Sends more of an answer. It is not waited for: a client may answer chunks when it likes, or never.
pub(crate) fn stream(server: &mut Server, session: &SessionId, item: ItemId, mut text: String) {
    let Some(thread) = server.threads.get_mut(session) else { return };
    if server.chunks == Chunks::Refused {
        return;
    }
    if thread.last.replace(item).is_some_and(|last| last != item) {
        text.insert_str(0, "\n\n");
    }
    let chunk = wire::StreamMessageChunk { thread_id: session.to_string(), chunk: MessageChunk::text(text) };
    let request = server.outgoing.request(method::STREAM_MESSAGE_CHUNK, &chunk, CHUNK_TIMEOUT);
    if server.chunks == Chunks::Unknown {
        server.engine.later(request, |server, taken| match taken {
            Ok(_) => server.chunks = Chunks::Taken,
            Err(error) if is_unknown_method(&error) => server.chunks = Chunks::Refused,
            Err(error) => tracing::debug!(%error, "a chunk was not taken"),
        });
    }
}

/// A thread whose answer has not begun or just ends: text that belongs to no answer must not cut one.
pub(crate) fn thread_for_notice(server: &Server, ends: Option<&SessionId>) -> Option<SessionId> {
    if server.chunks == Chunks::Refused {
        return None;
    }
    let mut threads = server.threads.iter().filter(|(_, thread)| !thread.waiting.is_empty());
    let fits = threads.find(|(session, thread)| thread.last.is_none() || ends == Some(session));
    fits.map(|(session, _)| session.clone())
}

pub(crate) fn ended(server: &mut Server, session: &SessionId, turn: TurnId, outcome: Result<(), Failure>) {
    let Some(thread) = server.threads.get_mut(session) else { return };
    thread.last = None;
    if let Some(responder) = thread.waiting.remove(&turn) {
        respond(responder, outcome);
    }
}

pub(crate) fn lost(server: &mut Server, session: &SessionId, failure: &Failure) {
    let Some(thread) = server.threads.get_mut(session) else { return };
    thread.last = None;
    for (_, responder) in thread.waiting.drain() {
        responder.fail(from_wire::fault_of(failure));
    }
}
