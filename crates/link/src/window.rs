//! The side of an attached window: a link whose commands go to the holder of a chat and whose events come from it.
//!
//! Invariants: each command is sent once and answered once, at the latest when the connection ends; what the holder sends is
//! read at once, so that two processes never wait for each other.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::command::{Command, Reply};
use domain::event::EventBody;
use domain::link::Envelope;
use domain::queue::EventSender;
use domain::{Abilities, CancellationToken, Event, Failure, ItemDelta, Link, RemoteChat, SessionId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::frame::{Frame, FrameReader, FrameWriter, Kind, malformed};
use crate::handshake::{self, HANDSHAKE_TIMEOUT};
use crate::wire::{self, CommandV1, EventV1, FromReply, Hello, ReplyV1, Request, Response, Welcome};

/// A holder that does not answer a command for so long has it refused here. It may still carry it out.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(5);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a peer shows to be let in.
pub(crate) struct AttachRequest<'a> {
    pub(crate) secret: String,
    pub(crate) session: &'a SessionId,
    pub(crate) abilities: Abilities,
    /// This process for people.
    pub(crate) name: &'a str,
    pub(crate) program: &'a str,
}

/// Attaches over a connection.
pub(crate) async fn attach<R, W>(
    reader: R,
    writer: W,
    request: AttachRequest<'_>,
) -> Result<RemoteChat, Failure>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
    let session = request.session.clone();
    let greeted = tokio::time::timeout(HANDSHAKE_TIMEOUT, greet(&mut reader, &mut writer, request)).await;
    let holder = match greeted {
        Ok(Ok(holder)) => holder?,
        Ok(Err(_)) | Err(_) => {
            return Err(Failure::taken("The Dragoman that holds this chat does not answer."));
        }
    };
    reader.trust();
    let (link, commands, events) = Link::carried();
    let pending = Arc::new(Pending::default());
    let ended = CancellationToken::new();
    tokio::spawn(write_commands(writer, commands, pending.clone(), ended.clone()));
    tokio::spawn(async move {
        if let Err(error) = read_answers(&mut reader, &session, &events, &pending, &ended).await {
            tracing::info!(%session, %error, "the link to the holder of a chat broke");
        }
        ended.cancel();
        pending.end();
        events.close();
    });
    Ok(RemoteChat { link, holder })
}

/// The inner result is what the holder said.
async fn greet<R, W>(
    reader: &mut FrameReader<R>,
    writer: &mut FrameWriter<W>,
    request: AttachRequest<'_>,
) -> io::Result<Result<String, Failure>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    writer.line(&handshake::first_line(request.program)).await?;
    writer.flush().await?;
    let line = reader.line(handshake::LONGEST_LINE).await?;
    let (version, program) = handshake::version(&line).ok_or_else(malformed)?;
    if version != handshake::VERSION {
        return Ok(Err(other_version(version, program, request.program)));
    }
    let AttachRequest { secret, session, abilities, name, .. } = request;
    let hello =
        Hello { secret, session: session.to_string(), name: name.to_owned(), person: abilities.into() };
    writer.json(Kind::Hello, &hello).await?;
    writer.flush().await?;
    let frame = reader.next().await?.filter(|frame| frame.kind == Kind::Hello).ok_or_else(malformed)?;
    Ok(match frame.decode()? {
        Welcome::Attached { holder } => Ok(holder),
        Welcome::Refused(failure) => Err(failure.0),
    })
}

fn other_version(version: u32, program: &str, own: &str) -> Failure {
    let older = if version < handshake::VERSION { program } else { own };
    Failure::config(format!(
        "{} holds this chat and speaks another version of the link, so this window only shows what is stored.",
        domain::visible_line(program)
    ))
    .hint(format!("Restart the older one to work in both: {}.", domain::visible_line(older)))
}

async fn write_commands<W: AsyncWrite + Unpin>(
    mut writer: FrameWriter<W>,
    mut commands: mpsc::Receiver<Envelope>,
    pending: Arc<Pending>,
    ended: CancellationToken,
) {
    for id in 1_u64.. {
        let envelope = tokio::select! {
            biased;
            () = ended.cancelled() => break,
            envelope = commands.recv() => envelope,
        };
        let Some(Envelope { command, .. }) = envelope else { break };
        let Some((command, waiting)) = translate(command) else { continue };
        if let Err(waiting) = pending.add(id, waiting) {
            waiting.fail(lost());
            break;
        }
        let written = async {
            writer.json(Kind::Request, &Request { id, command }).await?;
            writer.flush().await
        };
        match tokio::time::timeout(WRITE_TIMEOUT, written).await {
            Ok(Ok(())) => {}
            // It was not sent: a path that is no text for instance.
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                let failure = Failure::user("This cannot be sent to the process that holds the chat.");
                pending.settle(id, ReplyV1::Failed(failure.into()));
            }
            Ok(Err(_)) | Err(_) => break,
        }
    }
    // The holder sees the end of the stream and lets this window go.
    drop(writer);
    commands.close();
    ended.cancel();
    while let Some(Envelope { command, .. }) = commands.recv().await {
        if let Some((_, waiting)) = translate(command) {
            waiting.fail(lost());
        }
    }
}

async fn read_answers<R: AsyncRead + Unpin>(
    reader: &mut FrameReader<R>,
    session: &SessionId,
    events: &EventSender,
    pending: &Pending,
    ended: &CancellationToken,
) -> io::Result<()> {
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            frame = reader.next() => {
                let Some(frame) = frame? else { return Ok(()) };
                take_in(&frame, session, events, pending)?;
            }
            () = ended.cancelled() => return Ok(()),
            _ = look.tick() => pending.expire(Instant::now()),
        }
    }
}

fn take_in(frame: &Frame, session: &SessionId, events: &EventSender, pending: &Pending) -> io::Result<()> {
    let body = match frame.kind {
        Kind::Fact => {
            let recorded = store::import_line(frame.text()?).map_err(|_| malformed())?;
            EventBody::Fact(Arc::new(recorded))
        }
        Kind::Event => match frame.decode()? {
            EventV1::Lagged => {
                events.lag();
                return Ok(());
            }
            EventV1::Delta { item, channel, offset, text } => {
                EventBody::Delta(ItemDelta { item: wire::item(item), channel: channel.0, offset, text })
            }
            EventV1::Progress { text } => EventBody::Progress { text },
            EventV1::Lost(failure) => EventBody::Lost { failure: failure.0 },
        },
        Kind::Response => {
            let Response { id, reply } = frame.decode()?;
            pending.settle(id, reply);
            return Ok(());
        }
        Kind::Hello | Kind::Request => return Err(malformed()),
    };
    events.push(Event { session: Some(session.clone()), body });
    Ok(())
}

/// A reply that somebody here waits for.
struct Waiting {
    settle: Box<dyn FnOnce(Result<ReplyV1, Failure>) + Send>,
    since: Instant,
}

impl Waiting {
    fn new<T: FromReply + Send + 'static>(reply: Reply<T>) -> Self {
        let settle = move |outcome: Result<ReplyV1, Failure>| {
            let outcome = match outcome {
                Ok(ReplyV1::Failed(failure)) => Err(failure.0),
                Ok(done) => T::from_reply(done)
                    .ok_or_else(|| Failure::internal("The holder of this chat answers wrongly.")),
                Err(failure) => Err(failure),
            };
            let _ = reply.send(outcome);
        };
        Self { settle: Box::new(settle), since: Instant::now() }
    }

    /// For a command without a reply.
    fn nobody() -> Self {
        Self { settle: Box::new(|_| ()), since: Instant::now() }
    }

    fn fail(self, failure: Failure) {
        (self.settle)(Err(failure));
    }
}

/// The replies under way; none after the connection has ended.
#[derive(Default)]
struct Pending(Mutex<PendingState>);

#[derive(Default)]
struct PendingState {
    waiting: HashMap<u64, Waiting>,
    is_over: bool,
}

impl Pending {
    fn add(&self, id: u64, waiting: Waiting) -> Result<(), Waiting> {
        let mut state = self.lock();
        if state.is_over {
            return Err(waiting);
        }
        state.waiting.insert(id, waiting);
        Ok(())
    }

    fn settle(&self, id: u64, reply: ReplyV1) {
        let waiting = self.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            (waiting.settle)(Ok(reply));
        }
    }

    fn expire(&self, now: Instant) {
        let late: Vec<Waiting> = self
            .lock()
            .waiting
            .extract_if(|_, waiting| now.duration_since(waiting.since) > REPLY_TIMEOUT)
            .map(|it| it.1)
            .collect();
        for waiting in late {
            waiting.fail(Failure::taken("The Dragoman that holds this chat does not answer."));
        }
    }

    fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waiting in waiting.into_values() {
            waiting.fail(lost());
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost() -> Failure {
    Failure::taken("The Dragoman that held this chat ended before it answered.")
        .hint("Look at the chat: what is not there was not done. Then send it again.")
}

/// The command in the words of the link; `None` for one that the engine never sends to another process.
#[allow(clippy::wildcard_enum_match_arm, reason = "the engine sends no other command to another process")]
fn translate(command: Command) -> Option<(CommandV1, Waiting)> {
    Some(match command {
        Command::Prompt { prompt, reply, .. } => {
            (CommandV1::Prompt(Box::new(prompt.into())), Waiting::new(reply))
        }
        Command::Steer { text, reply, .. } => (CommandV1::Steer { text }, Waiting::new(reply)),
        Command::Cancel { .. } => (CommandV1::Cancel, Waiting::nobody()),
        Command::CancelCall { call, reply, .. } => {
            (CommandV1::CancelCall { call: call.0 }, Waiting::new(reply))
        }
        Command::Answer { ask, answer, reply, .. } => {
            (CommandV1::Answer { ask: ask.0, answer: answer.into() }, Waiting::new(reply))
        }
        Command::Configure { change, reply, .. } => {
            (CommandV1::Configure { change: change.into() }, Waiting::new(reply))
        }
        Command::Rollback { from, scope, reply, .. } => {
            (CommandV1::Rollback { from: from.map(|from| from.0), scope: scope.into() }, Waiting::new(reply))
        }
        Command::Flag { change, reply, .. } => (change.into(), Waiting::new(reply)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_of_two_programs_is_to_be_restarted() {
        for (version, older) in [(handshake::VERSION - 1, "theirs 1"), (handshake::VERSION + 1, "ours 2")] {
            let failure = other_version(version, "theirs 1", "ours 2");
            assert!(failure.message.starts_with("theirs 1 holds this chat"), "{failure}");
            assert!(failure.hint.unwrap().ends_with(&format!("{older}.")));
        }
    }

    #[tokio::test]
    async fn a_reply_settles_once_and_one_of_another_kind_is_a_mistake() {
        let pending = Pending::default();
        let (reply, answer) = domain::command::reply::<()>();
        assert!(pending.add(1, Waiting::new(reply)).is_ok());
        pending.settle(2, ReplyV1::Done);
        pending.settle(1, ReplyV1::Answer(domain::Answer::Cancelled.into()));
        pending.settle(1, ReplyV1::Done);
        assert!(answer.await.unwrap_err().message.contains("answers wrongly"));
        pending.end();
        let (reply, _answer) = domain::command::reply::<()>();
        assert!(pending.add(3, Waiting::new(reply)).is_err(), "nothing waits after the end");
    }

    #[tokio::test]
    async fn a_reply_that_does_not_come_is_not_waited_for_forever() {
        let pending = Pending::default();
        let (reply, answer) = domain::command::reply::<()>();
        assert!(pending.add(1, Waiting::new(reply)).is_ok());
        pending.expire(Instant::now());
        assert!(!pending.lock().waiting.is_empty(), "it has time");
        pending.expire(Instant::now() + REPLY_TIMEOUT + LOOK);
        assert!(answer.await.unwrap_err().message.contains("does not answer"));
    }
}
