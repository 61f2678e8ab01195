//! The holder's side of a link: checks who comes, and carries commands and events between a peer and the engine.
//!
//! Invariants: nothing of a chat is sent before the peer has shown the secret and was not refused; a peer sends commands for
//! one chat, which this process holds; a peer that does not read costs bounded memory and no turn waits for it.

use std::io;
use std::time::Duration;

use domain::command::{Command, FlagChange, Reply, reply};
use domain::event::EventBody;
use domain::link::{Commands, Engine};
use domain::queue::Received;
use domain::{BoxFuture, Failure, Link, SessionId};
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::frame::{FrameReader, FrameWriter, Kind, malformed};
use crate::handshake::{self, HANDSHAKE_TIMEOUT};
use crate::wire::{self, CommandV1, EventV1, Hello, ReplyV1, Request, Response, Welcome};

/// A peer that takes no byte for so long is let go. It attaches again when it wakes.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Events that are written before the peer is looked at again.
const BATCH: usize = 64;

/// What the holder knows about a peer and about itself.
pub(crate) struct Admission<'a> {
    pub(crate) secret: &'a str,
    /// Why the peer may not attach, whatever it shows.
    pub(crate) refusal: Option<Failure>,
    /// This process for people.
    pub(crate) name: &'a str,
    pub(crate) program: &'a str,
}

type Replies = FuturesUnordered<BoxFuture<'static, Response>>;

/// Serves one peer until it leaves or the chat does.
pub(crate) async fn serve<R, W>(
    reader: R,
    writer: W,
    engine: Engine,
    admission: Admission<'_>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
    let received = receive(&mut reader, &mut writer, &admission);
    let Some(hello) = tokio::time::timeout(HANDSHAKE_TIMEOUT, received).await?? else { return Ok(()) };
    let session = SessionId::new(hello.session);
    let joined = join(&engine, &session, hello.person.into()).await;
    // The link keeps the engine for as long as the peer is there.
    drop(engine);
    let link = match joined {
        Ok(link) => link,
        Err(failure) => return refuse(&mut writer, failure).await,
    };
    tracing::info!(%session, peer = hello.name, "a window of another process attached");
    let commands = link.commands.clone();
    let welcome = Welcome::Attached { holder: admission.name.to_owned() };
    let carried = async {
        writer.json(Kind::Hello, &welcome).await?;
        writer.flush().await?;
        reader.trust();
        carry(&mut reader, &mut writer, link, &session).await
    };
    let carried = carried.await;
    let _ = commands.send(Command::Detach).await;
    carried
}

/// The first line and the first message. `None`: the peer was told that it may not attach.
async fn receive<R, W>(
    reader: &mut FrameReader<R>,
    writer: &mut FrameWriter<W>,
    admission: &Admission<'_>,
) -> io::Result<Option<Hello>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    writer.line(&handshake::first_line(admission.program)).await?;
    writer.flush().await?;
    // A peer of another version reads the line and goes.
    let line = reader.line(handshake::LONGEST_LINE).await?;
    if handshake::version(&line).map(|(version, _)| version) != Some(handshake::VERSION) {
        return Ok(None);
    }
    let frame = reader.next().await?.filter(|frame| frame.kind == Kind::Hello).ok_or_else(malformed)?;
    let hello: Hello = frame.decode()?;
    let refusal = if handshake::is_same(&hello.secret, admission.secret) {
        admission.refusal.clone()
    } else {
        Some(Failure::user("The secret of the link is wrong."))
    };
    match refusal {
        None => Ok(Some(hello)),
        Some(failure) => {
            tracing::warn!(%failure, "a process was not let in");
            refuse(writer, failure).await?;
            Ok(None)
        }
    }
}

async fn refuse<W: AsyncWrite + Unpin>(writer: &mut FrameWriter<W>, failure: Failure) -> io::Result<()> {
    writer.json(Kind::Hello, &Welcome::Refused(failure.into())).await?;
    writer.flush().await
}

/// A link of the engine on a chat that this process holds.
async fn join(engine: &Engine, session: &SessionId, abilities: domain::Abilities) -> Result<Link, Failure> {
    let link = engine.attach(abilities).await?;
    let load = |reply| Command::Load { session: session.clone(), servers: Vec::new(), reply };
    let not_here = || Failure::taken("This process no longer holds the chat.");
    let held = match link.commands.call(load).await {
        Ok(info) if info.held_by.is_none() && info.attached_to.is_none() => Ok(()),
        Ok(_) | Err(_) => Err(not_here()),
    };
    match held {
        Ok(()) => Ok(link),
        Err(failure) => {
            let _ = link.commands.send(Command::Detach).await;
            Err(failure)
        }
    }
}

async fn carry<R, W>(
    reader: &mut FrameReader<R>,
    writer: &mut FrameWriter<W>,
    mut link: Link,
    session: &SessionId,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut replies = Replies::new();
    loop {
        tokio::select! {
            biased;
            Some(response) = replies.next(), if !replies.is_empty() => {
                tokio::time::timeout(WRITE_TIMEOUT, writer.json(Kind::Response, &response)).await??;
            }
            frame = reader.next() => {
                let Some(frame) = frame? else { return Ok(()) };
                if frame.kind != Kind::Request {
                    return Err(malformed());
                }
                let request = frame.decode::<Request>()?;
                let response = send(&link.commands, session, request).await;
                replies.push(response);
            }
            received = link.events.recv() => {
                // The reply to a command leaves before the events that the command causes.
                while let Some(Some(response)) = replies.next().now_or_never() {
                    tokio::time::timeout(WRITE_TIMEOUT, writer.json(Kind::Response, &response)).await??;
                }
                let written = write_events(writer, &mut link, received);
                if !tokio::time::timeout(WRITE_TIMEOUT, written).await?? {
                    return Ok(());
                }
                continue;
            }
        }
        tokio::time::timeout(WRITE_TIMEOUT, writer.flush()).await??;
    }
}

/// Writes an event and those that are there already. False: the chat has left this process.
async fn write_events<W: AsyncWrite + Unpin>(
    writer: &mut FrameWriter<W>,
    link: &mut Link,
    received: Received,
) -> io::Result<bool> {
    let (mut next, mut left, mut is_there) = (Some(received), BATCH, true);
    while let Some(received) = next {
        match received {
            Received::Closed => is_there = false,
            Received::Lagged => writer.json(Kind::Event, &EventV1::Lagged).await?,
            Received::Event(event) => write_event(writer, event.body).await?,
        }
        left -= 1;
        next = if left > 0 && is_there { link.events.try_recv() } else { None };
    }
    writer.flush().await?;
    Ok(is_there)
}

async fn write_event<W: AsyncWrite + Unpin>(writer: &mut FrameWriter<W>, body: EventBody) -> io::Result<()> {
    match body {
        EventBody::Fact(recorded) => match store::export_line(&recorded) {
            Ok(line) if line.len() <= crate::frame::LARGEST => {
                writer.bytes(Kind::Fact, line.as_bytes()).await
            }
            // The journal has it.
            Ok(_) | Err(_) => writer.json(Kind::Event, &EventV1::Lagged).await,
        },
        EventBody::Delta(delta) => writer.json(Kind::Event, &EventV1::from(delta)).await,
        EventBody::Progress { text } => writer.json(Kind::Event, &EventV1::Progress { text }).await,
        EventBody::Lost { failure } => writer.json(Kind::Event, &EventV1::Lost(failure.into())).await,
        // Each process has lists of its own.
        EventBody::Catalog(_) => Ok(()),
    }
}

/// Hands a command to the engine; the future is the response.
async fn send(
    commands: &Commands,
    session: &SessionId,
    Request { id, command }: Request,
) -> BoxFuture<'static, Response> {
    let session = session.clone();
    match command {
        CommandV1::Prompt(prompt) => {
            let prompt = (*prompt).into();
            call(commands, id, |reply| Command::Prompt { session, prompt, reply }).await
        }
        CommandV1::Steer { text } => {
            call(commands, id, |reply| Command::Steer { session, text, reply }).await
        }
        CommandV1::CancelCall { call: stopped } => {
            let stopped = wire::item(stopped);
            call(commands, id, |reply| Command::CancelCall { session, call: stopped, reply }).await
        }
        CommandV1::Answer { ask, answer } => {
            let (ask, answer) = (wire::ask(ask), answer.0);
            call(commands, id, |reply| Command::Answer { session, ask, answer, reply }).await
        }
        CommandV1::Configure { change } => {
            let (session, change) = (Some(session), change.0);
            call(commands, id, |reply| Command::Configure { session, change, reply }).await
        }
        CommandV1::Rollback { from, scope } => {
            let (from, scope) = (from.map(wire::item), scope.into());
            call(commands, id, |reply| Command::Rollback { session, from, scope, reply }).await
        }
        CommandV1::AddFlag { after, text } => {
            let change = FlagChange::Add { after: wire::item(after), text };
            call(commands, id, |reply| Command::Flag { session, change, reply }).await
        }
        CommandV1::RemoveFlag { flag } => {
            let change = FlagChange::Remove { flag: wire::item(flag) };
            call(commands, id, |reply| Command::Flag { session, change, reply }).await
        }
        CommandV1::Cancel => {
            let sent = commands.send(Command::Cancel { session }).await;
            let reply = sent.map_or_else(|failure| ReplyV1::Failed(failure.into()), ReplyV1::from);
            Box::pin(std::future::ready(Response { id, reply }))
        }
    }
}

/// Sends the command that `make` builds; the future is the response.
async fn call<T: Send + 'static>(
    commands: &Commands,
    id: u64,
    make: impl FnOnce(Reply<T>) -> Command,
) -> BoxFuture<'static, Response>
where
    ReplyV1: From<T>,
{
    let (reply, answer) = reply();
    let sent = commands.send(make(reply)).await;
    Box::pin(async move {
        let outcome = match sent {
            Ok(()) => answer.await,
            Err(failure) => Err(failure),
        };
        let reply = outcome.map_or_else(|failure| ReplyV1::Failed(failure.into()), ReplyV1::from);
        Response { id, reply }
    })
}
