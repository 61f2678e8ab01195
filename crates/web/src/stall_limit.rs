//! A connection whose other end must read: one that takes nothing for `LONGEST_STALL` is ended.
//!
//! Must not know what is written. Invariant: a write that cannot go on has a deadline, so a reader that stops reading holds
//! its place and its memory for a bounded time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

const LONGEST_STALL: Duration = Duration::from_secs(60);

pub(crate) struct StallLimit<S> {
    stream: S,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallLimit<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, stalled: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(LONGEST_STALL)));
        if stalled.as_mut().poll(context).is_ready() {
            tracing::info!("a reader that takes nothing is dropped");
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, written)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_dropped_and_a_slow_one_is_not() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut stream = StallLimit::new(near);
        let slow = tokio::spawn(async move {
            let mut part = [0; 4];
            for _ in 0..8 {
                tokio::time::sleep(LONGEST_STALL / 2).await;
                far.read_exact(&mut part).await.unwrap();
            }
            far
        });
        stream.write_all(&[7; 32]).await.unwrap();
        let _far = slow.await.unwrap();
        let began = tokio::time::Instant::now();
        let failed = stream.write_all(&[7; 64]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= LONGEST_STALL);
    }
}
