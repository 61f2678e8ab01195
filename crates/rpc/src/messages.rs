//! Whole messages of a byte stream, not looked into: for a relay between two transports.
//!
//! It must not know what messages mean. Invariants: messages keep their order; a message that cannot be taken is answered
//! with its fault, and the next one is read; both queues are bounded.

use crate::framing::{Decoder, Frame, Refusal};
use crate::message::{Fault, Id, MessageHead};
use crate::{Framing, Transport, transport};
use serde_json::json;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Messages that wait in each direction.
const QUEUE: usize = 32;

/// The two directions of a transport.
pub struct Messages {
    /// One JSON text each; ends with the input.
    pub incoming: mpsc::Receiver<String>,
    /// Dropping it closes the output after what waits.
    pub outgoing: mpsc::Sender<String>,
    /// Resolves when everything is written, or cannot be.
    pub written: oneshot::Receiver<()>,
}

/// Reads and writes whole messages of at most `limit` bytes.
pub fn messages(framing: Framing, limit: usize, transport: Transport) -> io::Result<Messages> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    let (came, incoming) = mpsc::channel(QUEUE);
    let (outgoing, leaving) = mpsc::channel(QUEUE);
    let (done, written) = oneshot::channel::<()>();
    let reading = read(Decoder::new(framing, limit), transport.input, came, outgoing.downgrade());
    let writing = async move {
        // An output that broke takes nothing more: what is sent then is refused by the closed queue.
        let _ = write(framing, leaving, transport.output).await;
        drop(done);
    };
    transport::run(transport.blocks, runtime, reading, writing)?;
    Ok(Messages { incoming, outgoing, written })
}

async fn read(
    mut decoder: Decoder,
    mut input: impl AsyncRead + Unpin,
    came: mpsc::Sender<String>,
    answers: mpsc::WeakSender<String>,
) {
    loop {
        match input.read(decoder.space()).await {
            Ok(0) => break,
            Ok(count) => decoder.filled(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        while let Some(frame) = decoder.next_frame() {
            let taken = text_of(frame);
            if !hand_over(taken, &came, &answers).await {
                return;
            }
        }
    }
    if let Some(frame) = decoder.finish() {
        let taken = text_of(frame);
        hand_over(taken, &came, &answers).await;
    }
}

/// `false`: nobody takes messages now.
async fn hand_over(
    taken: Result<String, String>,
    came: &mpsc::Sender<String>,
    answers: &mpsc::WeakSender<String>,
) -> bool {
    match taken {
        Ok(text) => came.send(text).await.is_ok(),
        Err(answer) => match answers.upgrade() {
            Some(answers) => answers.send(answer).await.is_ok(),
            None => false,
        },
    }
}

/// The message, or the answer to one that cannot be taken.
fn text_of(frame: Frame<'_>) -> Result<String, String> {
    match frame {
        Frame::Message(body) => match std::str::from_utf8(body) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                Err(failed(None, &Fault::new(Fault::PARSE_ERROR, format!("Parse error - {error}"))))
            }
        },
        Frame::Refused { refusal, head } => {
            let head = MessageHead::of(head);
            let sentence = match refusal {
                Refusal::TooLarge => "The message is too large; send it in smaller parts.",
                Refusal::Charset => "Only the charset utf-8 is understood; send messages in it.",
                Refusal::Header => "A message begins with a header 'Content-Length: N' and a blank line.",
            };
            let id = head.id.filter(|_| head.is_call);
            Err(failed(id.as_ref(), &Fault::new(Fault::INVALID_REQUEST, sentence)))
        }
    }
}

/// The message that answers a request with a fault.
pub fn failed(id: Option<&Id>, fault: &Fault) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": fault}).to_string()
}

async fn write(
    framing: Framing,
    mut leaving: mpsc::Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(text) = leaving.recv().await {
        framing.open(&mut buffer);
        buffer.extend_from_slice(text.as_bytes());
        let start = framing.close(&mut buffer);
        output.write_all(&buffer[start..]).await?;
        if leaving.is_empty() {
            output.flush().await?;
        }
        buffer.shrink_to(64 << 10);
    }
    output.shutdown().await
}
