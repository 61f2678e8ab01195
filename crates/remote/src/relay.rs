//! The relay between an editor on standard streams and a server: messages go through unchanged, also when the connection is lost.
//!
//! Invariants: every message goes through once and in order; a request that the server can no longer answer is answered here,
//! with what is not known about it; a request is never sent a second time, but for those that begin the conversation at a server
//! that has forgotten it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Failure;
use rpc::{Carried, Fault, Id, Messages};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::channel::{Channel, Limits, RunEnd, Side};
use crate::connect::{ConnectError, Opened, Target};
use crate::memory::{Memory, Recovery};

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
/// Stands behind the last message of a server that is gone; no message begins so.
const RESTARTED: char = '\0';

/// What the relay must know of the editor's protocol: how a person is told something, and how a conversation begins again.
pub struct Editor {
    pub messages: Messages,
    /// The message that shows this sentence; with the session whose prompt waits, if one does.
    pub notice: fn(&str, Option<&str>) -> Option<Value>,
    /// The request whose answer a person waits for.
    pub prompt: &'static str,
    pub recovery: Recovery,
}

/// The editor's requests that are not answered yet.
#[derive(Clone, Default)]
struct Unanswered(Arc<Mutex<HashMap<Id, Asked>>>);

struct Asked {
    /// The place of the request among all messages to the server.
    place: u64,
    /// Of a prompt.
    session: Option<String>,
}

/// What both directions share.
#[derive(Clone)]
struct Shared {
    unanswered: Unanswered,
    memory: Arc<Mutex<Memory>>,
    /// What came from a server that is gone has been delivered.
    settled: Arc<Notify>,
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Relays until the editor or the server ends the conversation, or the connection cannot be had again.
pub async fn relay(target: &Target, editor: Editor) -> Result<(), Failure> {
    let Editor { messages: Messages { mut incoming, outgoing, written }, notice, prompt, recovery } = editor;
    let memory = Arc::new(Mutex::new(Memory::new(recovery)));
    let shared = Shared { unanswered: Unanswered::default(), memory, settled: Arc::default() };
    let unanswered = &shared.unanswered;
    let opened = match first_connection(target).await {
        Ok(opened) => opened,
        Err(error) => {
            let failure = unreachable(target, &error);
            if let Ok(Some(text)) = tokio::time::timeout(FIRST_REQUEST, incoming.recv()).await {
                unanswered.note_request(&text, prompt, 0);
            }
            unanswered.fail(&outgoing, &failure, u64::MAX).await;
            drop(outgoing);
            let _ = tokio::time::timeout(FLUSH_DEADLINE, written).await;
            return Err(failure);
        }
    };
    let (to_server, leaving) = mpsc::channel(QUEUE);
    let (came, from_server) = mpsc::channel::<String>(QUEUE);
    let from_editor = tokio::spawn(send_on(incoming, to_server, shared.clone(), prompt));
    let host = target.address.authority.clone();
    let delivering = tokio::spawn(deliver(from_server, outgoing.clone(), shared.clone(), host));
    let tell = Tell { outgoing: outgoing.clone(), notice, unanswered: unanswered.clone() };
    let resumes = opened.peer_received.is_some();
    let channel = Channel::new(Side::Client, limits(), resumes, came.clone(), leaving);
    let relaying = Relaying { target, tell: &tell, shared: &shared, came };
    let carried = relaying.carry(channel, opened).await;
    drop(relaying);
    from_editor.abort();
    // What was received is written before the errors of what was not.
    let _ = tokio::time::timeout(FLUSH_DEADLINE, delivering).await;
    if let Err(failure) = &carried {
        unanswered.fail(&outgoing, failure, u64::MAX).await;
    }
    drop((outgoing, tell));
    let _ = tokio::time::timeout(FLUSH_DEADLINE, written).await;
    carried
}

async fn send_on(
    mut incoming: mpsc::Receiver<String>,
    to_server: mpsc::Sender<String>,
    shared: Shared,
    prompt: &'static str,
) {
    let mut place = 0;
    while let Some(text) = incoming.recv().await {
        let Some(text) = shared.memory().note_from_editor(text) else { continue };
        place += 1;
        shared.unanswered.note_request(&text, prompt, place);
        if to_server.send(text).await.is_err() {
            return;
        }
    }
}

async fn deliver(
    mut from_server: mpsc::Receiver<String>,
    outgoing: mpsc::Sender<String>,
    shared: Shared,
    host: String,
) {
    while let Some(text) = from_server.recv().await {
        if let Some(taken) = text.strip_prefix(RESTARTED) {
            shared.memory().note_restart();
            let failure = forgotten(&host);
            shared.unanswered.fail(&outgoing, &failure, taken.parse().unwrap_or(0)).await;
            shared.settled.notify_one();
            continue;
        }
        shared.unanswered.note_response(&text);
        let Some(text) = shared.memory().note_from_server(text) else { continue };
        if outgoing.send(text).await.is_err() {
            return;
        }
    }
}

/// Why a request that a server took will not be answered.
fn forgotten(host: &str) -> Failure {
    Failure::provider(format!("The connection to {host} was lost, and the server no longer knows it."))
        .hint("A turn that ran may have been interrupted; what it did is in the chat. Prompt again to go on.")
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

/// The way to the server, and what is told to the editor about it.
struct Relaying<'r> {
    target: &'r Target,
    tell: &'r Tell,
    shared: &'r Shared,
    /// To the editor, behind everything that was received.
    came: mpsc::Sender<String>,
}

impl Relaying<'_> {
    /// Carries messages over one connection after the other. The channel ends with it.
    async fn carry(&self, mut channel: Channel, first: Opened) -> Result<(), Failure> {
        let host = &self.target.address.authority;
        let resumes = first.peer_received.is_some();
        let (mut id, mut next) = (first.id.clone(), first);
        loop {
            let Opened { stream, already_read, peer_received, .. } = next;
            let end = channel.run(stream, already_read, peer_received.unwrap_or_default()).await;
            let known = match end {
                RunEnd::Closed => return Ok(()),
                RunEnd::Broken => {
                    return Err(Failure::internal(format!(
                        "The server {host} does not keep to the protocol."
                    ))
                    .hint("Use the same version of dragoman on both sides."));
                }
                RunEnd::Cut => id.as_deref(),
                RunEnd::SentAway => None,
            };
            if !resumes {
                return Err(Failure::provider(format!(
                    "The connection to {host} was lost, and this server cannot resume one."
                )));
            }
            let resumed = match known {
                Some(known) => self.connect(Some((known, channel.received()))).await?,
                None => None,
            };
            next = match resumed {
                Some(opened) => opened,
                None => self.begin_again(&mut channel).await?,
            };
            id = next.id.clone().or(id);
        }
    }

    /// Goes on with a server that knows nothing of the conversation: its chats are opened again.
    async fn begin_again(&self, channel: &mut Channel) -> Result<Opened, Failure> {
        let host = &self.target.address.authority;
        let opened = self.connect(None).await?.ok_or_else(|| forgotten(host))?;
        let messages = self.shared.memory().begin_again();
        let taken = channel.restart(messages);
        let settled = self.shared.settled.notified();
        let _ = self.came.send(format!("{RESTARTED}{taken}")).await;
        // An editor that does not read is not waited for.
        let _ = tokio::time::timeout(FLUSH_DEADLINE, settled).await;
        self.tell
            .person(&format!(
                "The server {host} has begun a new connection. A turn that ran may be interrupted."
            ))
            .await;
        Ok(opened)
    }

    /// Connects again, with pauses that grow, for as long as the server keeps the connection. `None`: the server has forgotten it.
    async fn connect(&self, known: Option<(&str, u64)>) -> Result<Option<Opened>, Failure> {
        let host = &self.target.address.authority;
        let began = Instant::now();
        let (mut pause, mut is_told) = (FIRST_PAUSE, false);
        loop {
            let reason = match self.target.connect(known).await {
                Ok(opened) if opened.peer_received.is_some() => {
                    if is_told {
                        self.tell.person(&format!("The connection to {host} is back.")).await;
                    }
                    return Ok(Some(opened));
                }
                Ok(_) | Err(ConnectError::Lost) => return Ok(None),
                Err(ConnectError::Refused(reason)) => {
                    return Err(Failure::auth(format!("The connection to {host} was ended: {reason}.")));
                }
                Err(ConnectError::Unreachable(reason)) => reason,
            };
            if began.elapsed() > LONGEST_OUTAGE {
                return Err(Failure::provider(format!("The connection to {host} was lost: {reason}."))
                    .hint("Open the chat again when the server can be reached."));
            }
            if !is_told && began.elapsed() > UNTOLD_OUTAGE {
                is_told = true;
                let sentence = format!("The connection to {host} is lost ({reason}). Trying again …");
                self.tell.person(&sentence).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
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
        let mut sessions: Vec<Option<String>> = {
            let requests = self.unanswered.requests();
            requests.values().map(|asked| asked.session.clone()).filter(Option::is_some).collect()
        };
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
    fn requests(&self) -> MutexGuard<'_, HashMap<Id, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_request(&self, text: &str, prompt: &str, place: u64) {
        if let Carried::Request { id, method, session } = Carried::of(text) {
            let session = session.filter(|_| method == prompt);
            self.requests().insert(id, Asked { place, session });
        }
    }

    fn note_response(&self, text: &str) {
        if let Carried::Response { id } = Carried::of(text) {
            self.requests().remove(&id);
        }
    }

    /// Answers the requests up to this place.
    async fn fail(&self, outgoing: &mpsc::Sender<String>, failure: &Failure, until: u64) {
        let mut failed = Vec::new();
        self.requests().retain(|id, asked| {
            let is_failed = asked.place <= until;
            if is_failed {
                failed.push(id.clone());
            }
            !is_failed
        });
        for id in failed {
            let sentence = format!("{failure} It is not known whether this request was carried out.");
            if outgoing.send(rpc::failed(Some(&id), &Fault::internal(sentence))).await.is_err() {
                return;
            }
        }
    }
}
