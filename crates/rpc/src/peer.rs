//! One connection at work: the reader that hands messages to the handler, the writer that empties the queue.
//!
//! It must not know method names. Invariants: the handler is called from one place, in arrival order; a panic of the
//! handler costs one request, not the connection; each message leaves in one write.

use crate::connection::{Connection, End, Reply};
use crate::errors::RequestError;
use crate::framing::{Decoder, Frame, Refusal};
use crate::message::{self, Fault, Id, Incoming, MessageHead, Outcome, Params};
use crate::outgoing::Outgoing;
use crate::queue::{Batch, Load};
use crate::{PeerOptions, Responder, Transport, transport};
use serde_json::value::RawValue;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Takes the peer's messages, one after another. It is called on the one reader (within the runtime's context, so that
/// it may spawn) and must not block.
pub trait Handler: Send + 'static {
    /// Turn the request into its command and hand the responder on, or answer at once.
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder);

    fn on_notification(&mut self, method: &str, params: Params<'_>);

    /// Asked before each message: while it is pending the peer is not read. For a handler whose own queue can be full.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// A running connection. Dropping it ends the connection at once; [`close`](Peer::close) writes what is queued first.
pub struct Peer {
    connection: Arc<Connection>,
    written: oneshot::Receiver<()>,
}

impl Peer {
    /// Starts reading and writing. `handler` is made with the sending half, before the first message is read.
    pub fn start<H: Handler>(
        options: PeerOptions,
        transport: Transport,
        handler: impl FnOnce(&Outgoing) -> H,
    ) -> io::Result<Peer> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let connection = Arc::new(Connection::new(options));
        let handler = Box::new(handler(&Outgoing::new(connection.clone())));
        let (done, written) = oneshot::channel::<()>();
        let reading = read(Reader { connection: connection.clone(), handler }, transport.input);
        let writing = {
            let connection = connection.clone();
            async move {
                write(&connection, transport.output).await;
                drop(done);
            }
        };
        let peer = Peer { connection, written };
        transport::run(transport.blocks, runtime, reading, writing)?;
        Ok(peer)
    }

    pub fn outgoing(&self) -> Outgoing {
        Outgoing::new(self.connection.clone())
    }

    /// Resolves when the input has ended or the connection broke.
    pub fn ended(&self) -> impl Future<Output = End> + Send + use<> {
        let mut ended = self.connection.ended.subscribe();
        async move { ended.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(End::Closed) }
    }

    /// Resolves when every request received so far is answered, as a peer that closed its side may still expect.
    pub fn answered(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut unanswered = self.connection.unanswered.subscribe();
        async move { drop(unanswered.wait_for(|count| *count == 0).await) }
    }

    /// Takes no more messages, writes what is queued, for at most `deadline`, and ends the connection. Whether all of
    /// it was written.
    pub async fn close(mut self, deadline: Duration) -> bool {
        self.connection.queue.close();
        let written = tokio::time::timeout(deadline, &mut self.written).await.is_ok();
        // The writer also stops when the stream is broken.
        written && !matches!(*self.connection.ended.borrow(), Some(End::Broken(_) | End::Stalled))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.connection.end(End::Closed);
    }
}

/// Hands each frame to the handler or to the request it answers.
struct Reader {
    connection: Arc<Connection>,
    handler: Box<dyn Handler>,
}

async fn read(mut reader: Reader, mut input: impl AsyncRead + Unpin) {
    let connection = reader.connection.clone();
    let mut decoder = Decoder::new(connection.options.framing, connection.options.message_limit);
    let mut stopped = pin!(connection.stopped());
    let end = loop {
        let count = tokio::select! {
            biased;
            () = &mut stopped => return,
            count = input.read(decoder.space()) => count,
        };
        match count {
            Ok(0) => break End::Input,
            Ok(count) => decoder.filled(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break End::Broken(error.kind()),
        }
        while let Some(frame) = decoder.next_frame() {
            tokio::select! {
                biased;
                () = &mut stopped => return,
                () = reader.ready() => {}
            }
            reader.handle_frame(frame);
        }
    };
    if let Some(frame) = decoder.finish() {
        reader.handle_frame(frame);
    }
    connection.end(end);
}

async fn write(connection: &Connection, mut output: impl AsyncWrite + Unpin) {
    let writing = async {
        let mut batch = Batch::default();
        while poll_fn(|context| connection.queue.poll_batch(context, &mut batch)).await {
            write_batch(connection, &batch, &mut output).await?;
            batch.clear();
            output.flush().await?;
        }
        output.shutdown().await
    };
    tokio::select! {
        biased;
        () = connection.stopped() => {}
        outcome = writing => if let Err(error) = outcome {
            connection.end(End::Broken(error.kind()));
        }
    }
}

async fn write_batch(
    connection: &Connection,
    batch: &Batch,
    output: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut written = Load::default();
    for frame in batch.frames() {
        output.write_all(frame).await?;
        written.messages += 1;
        written.bytes += frame.len();
        // Not for each small one: that would take the lock as often as the senders do.
        if written.messages == 32 || written.bytes > 64 << 10 {
            connection.queue.written(std::mem::take(&mut written));
        }
    }
    connection.queue.written(written);
    Ok(())
}

impl Reader {
    /// Resolves when the next message may be taken.
    async fn ready(&mut self) {
        let handler = &mut self.handler;
        // A handler that panics here is taken as ready.
        poll_fn(|context| {
            catch_unwind(AssertUnwindSafe(|| handler.poll_ready(context))).unwrap_or(Poll::Ready(()))
        })
        .await;
        if self.connection.queue.is_overloaded() {
            let connection = self.connection.clone();
            let watch = tokio::spawn(async move {
                if tokio::time::timeout(
                    connection.options.stall_limit,
                    connection.queue.until_not_overloaded(),
                )
                .await
                .is_err()
                {
                    connection.end(End::Stalled);
                }
            });
            self.connection.queue.until_not_overloaded().await;
            watch.abort();
        }
    }

    fn handle_frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Message(body) => self.handle_message(body),
            Frame::Refused { refusal, head } => self.refuse_frame(refusal, head),
        }
    }

    fn handle_message(&mut self, body: &[u8]) {
        match message::read(body, self.connection.options.version_member) {
            Incoming::Request { id, method, params } => self.handle_request(id, &method, params),
            Incoming::Notification { method, params } => self.handle_notification(&method, params),
            Incoming::Response { id, outcome } => self.handle_response(id, outcome),
            Incoming::Invalid { id, fault } => self.connection.answer_error(id.as_ref(), &fault),
        }
    }

    fn handle_request(&mut self, id: Id, method: &str, params: Params<'_>) {
        if *self.connection.unanswered.borrow() >= self.connection.options.in_flight_limit {
            return self.connection.answer_error(Some(&id), &self.connection.options.too_many);
        }
        let responder = Responder::new(self.connection.clone(), id);
        // Unwinding drops the responder, and that answers.
        let _ = catch_unwind(AssertUnwindSafe(|| self.handler.on_request(method, params, responder)));
    }

    fn handle_notification(&mut self, method: &str, params: Params<'_>) {
        match self.connection.options.cancel {
            Some(cancel) if cancel.method == method => {
                if let Some(id) = message::read_cancelled(params, cancel.parameter) {
                    self.connection.cancel(&id);
                }
            }
            _ => {
                let _ = catch_unwind(AssertUnwindSafe(|| self.handler.on_notification(method, params)));
            }
        }
    }

    fn handle_response(&self, id: Option<Id>, outcome: Outcome<'_>) {
        let is_answer = !matches!(outcome, Outcome::Missing);
        let reply = || -> Reply {
            match outcome {
                Outcome::Result(result) => Ok(result.to_owned()),
                Outcome::Error(fault) => Err(RequestError::Fault(fault)),
                Outcome::Missing => Ok(RawValue::NULL.to_owned()),
            }
        };
        let settled = id.as_ref().is_some_and(|id| self.connection.complete_request(id, reply));
        if !settled && !is_answer {
            self.connection.answer_error(id.as_ref(), &message::without_method());
        }
    }

    fn refuse_frame(&self, refusal: Refusal, head: &[u8]) {
        let head_seen = MessageHead::of(head);
        if let (true, false, Some(id)) = (head_seen.is_response, head_seen.is_call, &head_seen.id) {
            self.connection.complete_request(id, || Err(RequestError::TooLarge));
            return;
        }
        let id = head_seen.id.filter(|_| head_seen.is_call);
        let options = &self.connection.options;
        match refusal {
            Refusal::TooLarge => self.connection.answer_error(id.as_ref(), &options.too_large),
            Refusal::Charset => self.connection.answer_error(
                id.as_ref(),
                &Fault::new(Fault::INVALID_REQUEST, "Only the charset utf-8 is understood; send messages in it."),
            ),
            Refusal::Header => self.connection.answer_error(
                None,
                &Fault::new(
                    Fault::PARSE_ERROR,
                    "Parse error - expected a header 'Content-Length: N' and a blank line before each message",
                ),
            ),
        }
    }
}
