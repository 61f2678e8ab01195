//! Messages between two ends whose connection may be lost: each is delivered once and in order over as many connections as it takes.
//!
//! It must not know what a message means. Each end counts the messages it has received. Both tell the count when a connection
//! begins, and in the payload of pings while it lasts; what the other end has not received is kept and sent again.
//! Invariants: a message counts as received when it was handed over, in one step; what is kept is bounded: an end that keeps too
//! much takes no more of its own side until the other end has caught up; every read and write has a deadline.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::CancellationToken;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// How often a ping is sent.
const BEAT: Duration = Duration::from_secs(15);
/// A connection on which nothing comes for this long is lost: three pings and their answers.
const SILENCE: Duration = Duration::from_secs(60);
/// How long one message may take to be written.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);
/// How many beats an end may wait for the other one to catch up.
const FULL_BEATS: u32 = 4;
/// How long an end that has closed waits for the other one to do so.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
/// The other end is told the count after so many messages or bytes.
const TOLD_MESSAGES: u64 = 32;
const TOLD_BYTES: usize = 128 << 10;
/// How long the other end may take to read why it was sent away.
const FAREWELL: Duration = Duration::from_secs(5);
const RECEIVED: &str = "received=";
const END: &str = "end=";

/// Where bytes come from and go to.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type Socket = WebSocketStream<Box<dyn Stream>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest message that is received.
    pub message_bytes: usize,
    /// What is kept until the other end has received it; one message more is always taken.
    pub kept_messages: usize,
    pub kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: 16 << 20, kept_messages: 1024, kept_bytes: 4 << 20 }
    }
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The connection was lost; the channel can go on with another one.
    Cut,
    /// One of the ends has said that it is done.
    Closed,
    /// The other end no longer lets this one use it.
    SentAway,
    /// The other end does not keep to the protocol.
    Broken,
}

pub struct Channel {
    side: Side,
    limits: Limits,
    /// The other end can go on with another connection.
    resumes: bool,
    /// To the own side; `None` after the other end's last message.
    incoming: Option<mpsc::Sender<String>>,
    /// From the own side.
    outgoing: mpsc::Receiver<String>,
    ledger: Ledger,
    /// The other end may no longer be served, and why.
    stop: (CancellationToken, &'static str),
}

impl Channel {
    pub fn new(
        side: Side,
        limits: Limits,
        resumes: bool,
        incoming: mpsc::Sender<String>,
        outgoing: mpsc::Receiver<String>,
    ) -> Self {
        let (ledger, stop) = (Ledger::default(), (CancellationToken::new(), ""));
        Self { side, limits, resumes, incoming: Some(incoming), outgoing, ledger, stop }
    }

    /// Sends the other end away with this reason when `stop` is cancelled.
    pub fn until(mut self, stop: CancellationToken, reason: &'static str) -> Self {
        self.stop = (stop, reason);
        self
    }

    /// Begins anew with an end that knows nothing of this channel: these messages are sent first. What was taken from the own
    /// side so far is not sent again; gives the count of it.
    pub fn restart(&mut self, first: Vec<String>) -> u64 {
        let mut counts = self.ledger.counts();
        let taken = counts.taken;
        *counts = Counts { taken, ..Counts::default() };
        for text in first {
            counts.kept_bytes += text.len();
            counts.kept.push_back(text.into());
        }
        taken
    }

    /// How many messages have been received.
    pub fn received(&self) -> u64 {
        self.ledger.counts().received
    }

    /// The own side has ended: only kept messages are left.
    pub fn is_ended(&self) -> bool {
        self.outgoing.is_closed() && self.outgoing.is_empty()
    }

    /// Carries messages over one connection until it is over. `already_read`: bytes that came with the handshake.
    /// `peer_received`: how many messages the other end has received so far.
    pub async fn run(
        &mut self,
        stream: Box<dyn Stream>,
        already_read: Vec<u8>,
        peer_received: u64,
    ) -> RunEnd {
        if !self.ledger.begin(peer_received) {
            return RunEnd::Broken;
        }
        let role = if self.side == Side::Client { Role::Client } else { Role::Server };
        let config = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .max_message_size(Some(self.limits.message_bytes))
            .max_frame_size(Some(self.limits.message_bytes));
        let socket = Socket::from_partially_read(stream, already_read, role, Some(config)).await;
        let (sink, stream) = socket.split();
        let (ledger, side) = (&self.ledger, self.side);
        let mut writer = Writer {
            sink,
            ledger,
            side,
            limits: self.limits,
            resumes: self.resumes,
            outgoing: &mut self.outgoing,
            stop: &self.stop,
        };
        tokio::select! {
            end = read(stream, ledger, self.resumes, &mut self.incoming) => end,
            end = writer.run() => end,
            // An end that does not read is not waited for.
            () = async {
                self.stop.0.cancelled().await;
                tokio::time::sleep(FAREWELL).await;
            } => RunEnd::Closed,
        }
    }
}

/// The counts of both directions, and what the other end has not received yet.
#[derive(Default)]
struct Ledger {
    counts: Mutex<Counts>,
    /// The other end must be told what was received.
    due: Notify,
    /// The other end has received something.
    caught_up: Notify,
}

#[derive(Default)]
struct Counts {
    received: u64,
    told: u64,
    untold_bytes: usize,
    /// How many of the own messages the other end has received.
    delivered: u64,
    kept: VecDeque<Utf8Bytes>,
    kept_bytes: usize,
    /// How many messages have been taken from the own side.
    taken: u64,
}

impl Ledger {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins: `false` where the other end claims what cannot be.
    fn begin(&self, peer_received: u64) -> bool {
        let mut counts = self.counts();
        // The handshake has told the count.
        (counts.told, counts.untold_bytes) = (counts.received, 0);
        counts.deliver(peer_received)
    }

    fn count_received(&self, bytes: usize) {
        let mut counts = self.counts();
        counts.received += 1;
        counts.untold_bytes += bytes;
        if counts.received - counts.told >= TOLD_MESSAGES || counts.untold_bytes >= TOLD_BYTES {
            self.due.notify_one();
        }
    }

    /// The payload of a ping, which tells the count.
    fn tell(&self) -> String {
        let mut counts = self.counts();
        (counts.told, counts.untold_bytes) = (counts.received, 0);
        format!("{RECEIVED}{}", counts.received)
    }

    fn keep(&self, text: &Utf8Bytes) {
        let mut counts = self.counts();
        counts.taken += 1;
        counts.kept_bytes += text.len();
        counts.kept.push_back(text.clone());
    }

    /// The messages to send again when a connection begins.
    fn kept(&self) -> Vec<Utf8Bytes> {
        self.counts().kept.iter().cloned().collect()
    }

    fn has_room(&self, limits: Limits) -> bool {
        let counts = self.counts();
        counts.kept.len() < limits.kept_messages && counts.kept_bytes < limits.kept_bytes
    }

    /// How many messages have been taken from the own side.
    fn sent(&self) -> u64 {
        let counts = self.counts();
        counts.delivered + counts.kept.len() as u64
    }
}

impl Counts {
    fn deliver(&mut self, peer_received: u64) -> bool {
        let Some(count) = peer_received.checked_sub(self.delivered) else { return false };
        if count > self.kept.len() as u64 {
            return false;
        }
        for _ in 0..count {
            if let Some(text) = self.kept.pop_front() {
                self.kept_bytes -= text.len();
            }
        }
        self.delivered = peer_received;
        true
    }
}

async fn read(
    mut stream: SplitStream<Socket>,
    ledger: &Ledger,
    resumes: bool,
    incoming: &mut Option<mpsc::Sender<String>>,
) -> RunEnd {
    loop {
        let message = match timeout(SILENCE, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return end_of(&error),
            Ok(None) | Err(_) => return RunEnd::Cut,
        };
        match message {
            Message::Text(text) => {
                let Some(sender) = incoming else { return RunEnd::Broken };
                // A side that has ended takes nothing more; its last messages may still be on their way.
                if let Ok(permit) = sender.reserve().await {
                    permit.send(text.as_str().to_owned());
                }
                ledger.count_received(text.len());
            }
            Message::Ping(payload) if resumes => {
                let payload = std::str::from_utf8(&payload).unwrap_or_default();
                if let Some(count) = payload.strip_prefix(RECEIVED).and_then(|count| count.parse().ok()) {
                    if !ledger.counts().deliver(count) {
                        return RunEnd::Broken;
                    }
                    ledger.caught_up.notify_one();
                } else if let Some(count) =
                    payload.strip_prefix(END).and_then(|count| count.parse::<u64>().ok())
                {
                    if ledger.counts().received != count {
                        return RunEnd::Broken;
                    }
                    *incoming = None;
                }
            }
            Message::Close(Some(frame)) if frame.code == CloseCode::Policy => return RunEnd::SentAway,
            Message::Close(_) => return RunEnd::Closed,
            // The remote transport of ACP ignores binary messages.
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

fn end_of(error: &Error) -> RunEnd {
    if matches!(error, Error::Io(_) | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) {
        return RunEnd::Cut;
    }
    if matches!(error, Error::ConnectionClosed | Error::AlreadyClosed) {
        return RunEnd::Closed;
    }
    tracing::debug!(%error, "a connection broke the protocol");
    RunEnd::Broken
}

struct Writer<'c> {
    sink: SplitSink<Socket, Message>,
    ledger: &'c Ledger,
    side: Side,
    limits: Limits,
    resumes: bool,
    outgoing: &'c mut mpsc::Receiver<String>,
    stop: &'c (CancellationToken, &'static str),
}

impl Writer<'_> {
    async fn run(&mut self) -> RunEnd {
        match self.write().await {
            Ok(end) | Err(end) => end,
        }
    }

    async fn write(&mut self) -> Result<RunEnd, RunEnd> {
        for text in self.ledger.kept() {
            self.send(Message::Text(text)).await?;
        }
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut full_beats = 0;
        loop {
            let has_room = self.ledger.has_room(self.limits);
            tokio::select! {
                biased;
                () = self.stop.0.cancelled() => return self.finish().await,
                () = self.ledger.due.notified(), if self.resumes => self.ping().await?,
                _ = beat.tick() => {
                    full_beats = if has_room { 0 } else { full_beats + 1 };
                    if full_beats >= FULL_BEATS {
                        return Err(RunEnd::Cut);
                    }
                    self.ping().await?;
                }
                text = self.outgoing.recv(), if has_room => match text {
                    Some(text) => {
                        let text = Utf8Bytes::from(text);
                        if self.resumes {
                            self.ledger.keep(&text);
                        }
                        self.send(Message::Text(text)).await?;
                    }
                    None => return self.finish().await,
                },
                () = self.ledger.caught_up.notified(), if !has_room => {}
            }
        }
    }

    /// The own side has ended. A server closes; a client that can says so and waits for the last messages of the server.
    async fn finish(&mut self) -> Result<RunEnd, RunEnd> {
        if self.side == Side::Client && self.resumes {
            let payload = format!("{END}{}", self.ledger.sent());
            self.send(Message::Ping(payload.into())).await?;
        } else {
            let (code, reason) = if self.stop.0.is_cancelled() {
                (CloseCode::Policy, self.stop.1)
            } else {
                (CloseCode::Normal, "")
            };
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
            self.send(Message::Close(Some(frame))).await?;
        }
        let deadline = tokio::time::sleep(CLOSE_DEADLINE);
        let mut deadline = std::pin::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                () = self.ledger.due.notified(), if self.resumes && self.side == Side::Client => self.ping().await?,
                () = &mut deadline => return Ok(RunEnd::Closed),
            }
        }
    }

    async fn ping(&mut self) -> Result<(), RunEnd> {
        let payload = if self.resumes { self.ledger.tell() } else { String::new() };
        self.send(Message::Ping(payload.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), RunEnd> {
        match timeout(WRITE_DEADLINE, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(end_of(&error)),
            Err(_) => Err(RunEnd::Cut),
        }
    }
}
