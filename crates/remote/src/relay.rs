//! The relay between an editor on standard streams and a server: messages go through unchanged, also when the connection is lost.
//!
//! Invariants: every message goes through once and in order; a request that the server will not answer any more is answered here,
//! with what is not known about it; a request is never sent a second time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Failure;
use rpc::{Carried, Fault, Id, Messages};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::channel::{Channel, Limits, RunEnd, Side};
use crate::connect::{ConnectError, Opened, Target};

/// How long a lost connection is tried again; the server keeps it as long.
pub const LONGEST_OUTAGE: Duration = Duration::from_secs(300);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// An outage that is shorter is not worth a message.
const UNTOLD_OUTAGE: Duration = Duration::from_secs(2);
/// How long the editor's first request is waited for, to answer it with the reason why there is no connection.
const FIRST_REQUEST: Duration = Duration::from_secs(2);
/// How long the first connection is tried.
const FIRST_TRIES: Duration = Duration::from_secs(2);
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// Messages on their way, in each direction.
const QUEUE: usize = 16;

/// What the relay must know of the editor's protocol: how a person is told something.
pub struct Editor {
    pub messages: Messages,
    /// The message that shows this sentence; with the session whose prompt waits, if one does.
    pub notice: fn(&str, Option<&str>) -> Option<Value>,
    /// The request whose answer a person waits for.
    pub prompt: &'static str,
}

/// The editor's requests that are not answered yet, each with the session of a prompt.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<HashMap<Id, Option<String>>>>);

/// Relays until the editor or the server ends the conversation, or the connection cannot be had again.
pub async fn relay(target: &Target, editor: Editor) -> Result<(), Failure> {
    let Editor { messages: Messages { mut incoming, outgoing, written }, notice, prompt } = editor;
    let unanswered = Unanswered::default();
    let opened = match first_connection(target).await {
        Ok(opened) => opened,
        Err(error) => {
            let failure = unreachable(target, &error);
            if let Ok(Some(text)) = tokio::time::timeout(FIRST_REQUEST, incoming.recv()).await {
                unanswered.note_request(&text, prompt);
            }
            unanswered.fail_all(&outgoing, &failure).await;
            drop(outgoing);
            let _ = tokio::time::timeout(FLUSH_DEADLINE, written).await;
            return Err(failure);
        }
    };
    let (to_server, leaving) = mpsc::channel(QUEUE);
    let (came, mut from_server) = mpsc::channel::<String>(QUEUE);
    let asked = unanswered.clone();
    let from_editor = tokio::spawn(async move {
        while let Some(text) = incoming.recv().await {
            asked.note_request(&text, prompt);
            if to_server.send(text).await.is_err() {
                return;
            }
        }
    });
    let (answered, to_editor) = (unanswered.clone(), outgoing.clone());
    let delivering = tokio::spawn(async move {
        while let Some(text) = from_server.recv().await {
            answered.note_response(&text);
            if to_editor.send(text).await.is_err() {
                return;
            }
        }
    });
    let tell = Tell { outgoing: outgoing.clone(), notice, unanswered: unanswered.clone() };
    let channel = Channel::new(Side::Client, limits(), opened.peer_received.is_some(), came, leaving);
    let carried = carry(target, channel, opened, &tell).await;
    from_editor.abort();
    // What was received is written before the errors of what was not.
    let _ = tokio::time::timeout(FLUSH_DEADLINE, delivering).await;
    if let Err(failure) = &carried {
        unanswered.fail_all(&outgoing, failure).await;
    }
    drop((outgoing, tell));
    let _ = tokio::time::timeout(FLUSH_DEADLINE, written).await;
    carried
}

/// A server that does not answer at once may be busy, or the connection may be lost in the middle of its beginning.
async fn first_connection(target: &Target) -> Result<Opened, ConnectError> {
    let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        match target.connect(None).await {
            Err(ConnectError::Unreachable(_)) if began.elapsed() < FIRST_TRIES => {}
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// The server is trusted with more than a client: its messages may be as large as those on standard streams.
fn limits() -> Limits {
    Limits { message_bytes: 64 << 20, ..Limits::default() }
}

/// Carries messages over one connection after the other. The channel ends with it.
async fn carry(target: &Target, mut channel: Channel, first: Opened, tell: &Tell) -> Result<(), Failure> {
    let host = &target.address.authority;
    let mut id = first.id.clone();
    let resumes = first.peer_received.is_some();
    let mut next = first;
    loop {
        let Opened { stream, already_read, peer_received, .. } = next;
        match channel.run(stream, already_read, peer_received.unwrap_or_default()).await {
            RunEnd::Closed => return Ok(()),
            RunEnd::Broken => {
                return Err(Failure::internal(format!("The server {host} does not keep to the protocol."))
                    .hint("Use the same version of dragoman on both sides."));
            }
            RunEnd::Cut => {}
        }
        let Some(known) = id.as_deref().filter(|_| resumes) else {
            return Err(Failure::provider(format!(
                "The connection to {host} was lost, and this server cannot resume one."
            )));
        };
        next = resume(target, known, &channel, tell).await?;
        id = next.id.clone().or(id);
    }
}

/// Connects again, with pauses that grow, for as long as the server keeps the connection.
async fn resume(target: &Target, id: &str, channel: &Channel, tell: &Tell) -> Result<Opened, Failure> {
    let host = &target.address.authority;
    let began = Instant::now();
    let (mut pause, mut is_told) = (FIRST_PAUSE, false);
    loop {
        let reason = match target.connect(Some((id, channel.received()))).await {
            Ok(opened) if opened.peer_received.is_some() => {
                if is_told {
                    tell.person(&format!("The connection to {host} is back.")).await;
                }
                return Ok(opened);
            }
            Ok(_) | Err(ConnectError::Lost) => {
                return Err(Failure::provider(format!(
                    "The connection to {host} was lost, and the server does not know it any more."
                ))
                .hint("Open the chat again: what the server did is in it."));
            }
            Err(ConnectError::Refused(reason)) => {
                return Err(Failure::provider(format!("The connection to {host} was lost: {reason}.")));
            }
            Err(ConnectError::Unreachable(reason)) => reason,
        };
        if began.elapsed() > LONGEST_OUTAGE {
            return Err(Failure::provider(format!("The connection to {host} was lost: {reason}."))
                .hint("Open the chat again when the server can be reached."));
        }
        if !is_told && began.elapsed() > UNTOLD_OUTAGE {
            is_told = true;
            tell.person(&format!("The connection to {host} is lost ({reason}). Trying again …")).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn unreachable(target: &Target, error: &ConnectError) -> Failure {
    let host = &target.address.authority;
    match error {
        ConnectError::Unreachable(reason) => {
            Failure::provider(format!("The server {host} cannot be reached: {reason}."))
                .hint("Start `dragoman serve` there, or check the address.")
        }
        ConnectError::Refused(reason) => {
            Failure::auth(format!("The server {host} refuses the connection: {reason}."))
        }
        ConnectError::Lost => Failure::internal(format!("The server {host} answers for another connection.")),
    }
}

/// Shows sentences to the person before the editor.
struct Tell {
    outgoing: mpsc::Sender<String>,
    notice: fn(&str, Option<&str>) -> Option<Value>,
    unanswered: Unanswered,
}

impl Tell {
    async fn person(&self, sentence: &str) {
        tracing::warn!("{sentence}");
        let mut sessions: Vec<Option<String>> =
            self.unanswered.requests().values().filter(|it| it.is_some()).cloned().collect();
        sessions.sort();
        sessions.dedup();
        if sessions.is_empty() {
            sessions.push(None);
        }
        for session in sessions {
            if let Some(message) = (self.notice)(sentence, session.as_deref()) {
                let _ = self.outgoing.send(message.to_string()).await;
            }
        }
    }
}

impl Unanswered {
    fn requests(&self) -> MutexGuard<'_, HashMap<Id, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_request(&self, text: &str, prompt: &str) {
        if let Carried::Request { id, method, session } = Carried::of(text) {
            self.requests().insert(id, session.filter(|_| method == prompt));
        }
    }

    fn note_response(&self, text: &str) {
        if let Carried::Response { id } = Carried::of(text) {
            self.requests().remove(&id);
        }
    }

    async fn fail_all(&self, outgoing: &mpsc::Sender<String>, failure: &Failure) {
        let ids: Vec<Id> = self.requests().drain().map(|(id, _)| id).collect();
        for id in ids {
            let sentence = format!("{failure} It is not known whether this request was carried out.");
            if outgoing.send(rpc::failed(Some(&id), &Fault::internal(sentence))).await.is_err() {
                return;
            }
        }
    }
}
