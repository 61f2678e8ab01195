//! The pipes between us and a child. Windows: named pipes, because only they can be awaited; nobody else can open them,
//! for each has one instance, and both its ends are open when its name could be learned.

use std::fs::{File, OpenOptions};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

/// The end that reads what a child writes.
#[derive(Debug)]
pub struct Receiver(NamedPipeServer);

/// The end that writes what a child reads.
#[derive(Debug)]
pub struct Sender(NamedPipeServer);

/// A pipe from the child to us: our end and the child's.
pub(crate) async fn output() -> io::Result<(Receiver, File)> {
    let (ours, theirs) = pipe(true).await?;
    Ok((Receiver(ours), theirs))
}

/// A pipe from us to the child: our end and the child's.
pub(crate) async fn input() -> io::Result<(Sender, File)> {
    let (ours, theirs) = pipe(false).await?;
    Ok((Sender(ours), theirs))
}

async fn pipe(reads: bool) -> io::Result<(NamedPipeServer, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!(r"\\.\pipe\dragoman.{}.{number}.{:x}", std::process::id(), since.as_nanos());
    let ours = ServerOptions::new()
        .access_inbound(reads)
        .access_outbound(!reads)
        .first_pipe_instance(true)
        .max_instances(1)
        .create(&name)?;
    let theirs = OpenOptions::new().write(reads).read(!reads).open(&name)?;
    // It is connected already; the runtime has to learn it.
    ours.connect().await?;
    Ok((ours, theirs))
}

/// Takes what is already in the pipe. 0: there is nothing.
pub(crate) fn read_now(pipe: &Receiver, buffer: &mut [u8]) -> usize {
    pipe.0.try_read(buffer).unwrap_or(0)
}

impl AsyncRead for Receiver {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(context, buffer)) {
            // The other end is closed: the end of the stream.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            outcome => Poll::Ready(outcome),
        }
    }
}

impl AsyncWrite for Sender {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
