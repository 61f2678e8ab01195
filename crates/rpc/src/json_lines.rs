//! The pipes of programs that speak one JSON message per line, and not always: what is no message is left out of both ways.
//!
//! It must not know what messages mean.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Passes on the lines that begin like a JSON object. Servers print greetings and logs to the wrong stream, and must
/// not be sent a parse error for each.
pub struct JsonLines<R> {
    inner: R,
    line: LineState,
}

#[derive(Clone, Copy)]
enum LineState {
    Begins,
    Passes,
    Dropped,
}

impl<R> JsonLines<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, line: LineState::Begins }
    }

    /// Moves what passes to the front and says how much it is.
    fn filter_lines(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let byte = bytes[at];
            self.line = match (self.line, byte) {
                (LineState::Begins, b' ' | b'\t' | b'\r' | b'\n') => continue,
                (LineState::Begins, b'{') => LineState::Passes,
                (LineState::Begins, _) => LineState::Dropped,
                (line, _) => line,
            };
            if matches!(self.line, LineState::Passes) {
                bytes[kept] = byte;
                kept += 1;
            }
            if byte == b'\n' {
                self.line = LineState::Begins;
            }
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
            let before = buffer.filled().len();
            // The pipe yields to other tasks by itself, so a flood of other lines ends the loop too.
            match Pin::new(&mut self.inner).poll_read(context, buffer) {
                Poll::Ready(Ok(())) => {}
                other @ (Poll::Ready(_) | Poll::Pending) => return other,
            }
            let ended = buffer.filled().len() == before;
            let kept = self.filter_lines(&mut buffer.filled_mut()[before..]);
            buffer.set_filled(before + kept);
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

    /// Gives its bytes in these pieces.
    struct Pieces(VecDeque<&'static [u8]>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(piece) = self.0.pop_front() {
                buffer.put_slice(piece);
            }
            Poll::Ready(Ok(()))
        }
    }
}
