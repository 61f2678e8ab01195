//! The pipes of programs that speak one JSON message per line, and not always: what is no message is left out of both ways.
//!
//! It must not know what messages mean.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// After so many bytes of other lines the reader pauses: a program that floods its output then waits for its own pipe,
/// and the flood takes a share of the processor that is bounded.
const FLOOD_BYTES: usize = 1 << 20;
const FLOOD_PAUSE: Duration = Duration::from_millis(100);

/// Passes on the lines that begin like a JSON object. Servers print greetings and logs to the wrong stream, and must
/// not be sent a parse error for each.
pub struct JsonLines<R> {
    inner: R,
    line: LineState,
    /// Bytes that were left out since the last pause.
    dropped: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy)]
enum LineState {
    Begins,
    Passes,
    Dropped,
}

impl<R> JsonLines<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, line: LineState::Begins, dropped: 0, pause: None }
    }

    /// Moves what passes to the front and says how much it is.
    fn filter_lines(&mut self, bytes: &mut [u8]) -> usize {
        let (mut kept, mut at) = (0, 0);
        while at < bytes.len() {
            self.line = match (self.line, bytes[at]) {
                (LineState::Begins, b' ' | b'\t' | b'\r' | b'\n') => {
                    at += 1;
                    continue;
                }
                (LineState::Begins, b'{') => LineState::Passes,
                (LineState::Begins, _) => LineState::Dropped,
                (line, _) => line,
            };
            let end = memchr::memchr(b'\n', &bytes[at..]);
            let next = end.map_or(bytes.len(), |end| at + end + 1);
            if matches!(self.line, LineState::Passes) {
                bytes.copy_within(at..next, kept);
                kept += next - at;
            }
            if end.is_some() {
                self.line = LineState::Begins;
            }
            at = next;
        }
        kept
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for JsonLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let before = buffer.filled().len();
            // The pipe yields to other tasks by itself, so a flood of other lines ends the loop too.
            match Pin::new(&mut self.inner).poll_read(context, buffer) {
                Poll::Ready(Ok(())) => {}
                other @ (Poll::Ready(_) | Poll::Pending) => return other,
            }
            let read = buffer.filled().len() - before;
            let ended = read == 0;
            let kept = self.filter_lines(&mut buffer.filled_mut()[before..]);
            buffer.set_filled(before + kept);
            self.dropped += read - kept;
            if self.dropped >= FLOOD_BYTES {
                self.dropped = 0;
                self.pause = Some(Box::pin(tokio::time::sleep(FLOOD_PAUSE)));
            }
            if ended || kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Keeps the peer's complaints of unreadable messages from the server: they answer nothing it ever asked, and simple
/// servers fall over them. The peer writes each message in one call.
pub struct NullIdErrorFilter<W>(W);

impl<W> NullIdErrorFilter<W> {
    pub fn new(inner: W) -> Self {
        Self(inner)
    }
}

const NULL_ID_PREFIX: &[u8] = br#"{"jsonrpc":"2.0","id":null,"#;

impl<W: AsyncWrite + Unpin> AsyncWrite for NullIdErrorFilter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.starts_with(NULL_ID_PREFIX) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn only_lines_that_could_be_messages_pass() {
        let input = b"Listening...\n{\"a\":1}\n[INFO] {\"b\":2}\n\n  {\"c\":3}\r\n{\"d\"".as_slice();
        for size in 1..30 {
            let mut reader = JsonLines::new(Pieces(input.chunks(size).collect()));
            let mut passed = Vec::new();
            reader.read_to_end(&mut passed).await.unwrap();
            assert_eq!(passed, b"{\"a\":1}\n{\"c\":3}\r\n{\"d\"");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_slowly_and_messages_in_it_pass() {
        let noise: &'static [u8] = &[b'x'; 32 << 10];
        let mut pieces: VecDeque<&'static [u8]> = VecDeque::new();
        for _ in 0..10 {
            pieces.extend(std::iter::repeat_n(noise, 32));
            pieces.push_back(b"\n{\"a\":1}\n");
        }
        let began = tokio::time::Instant::now();
        let mut passed = Vec::new();
        JsonLines::new(Pieces(pieces)).read_to_end(&mut passed).await.unwrap();
        assert_eq!(passed, b"{\"a\":1}\n".repeat(10));
        let pauses = began.elapsed().as_millis() / FLOOD_PAUSE.as_millis();
        assert!((9..=11).contains(&pauses), "{pauses} pauses for 10 MiB");
    }

    /// Gives its bytes in these pieces.
    struct Pieces(VecDeque<&'static [u8]>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(piece) = self.0.pop_front() {
                let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
                buffer.put_slice(now);
                if !later.is_empty() {
                    self.0.push_front(later);
                }
            }
            Poll::Ready(Ok(()))
        }
    }
}
