//! The two byte streams of a connection: tokio's, or blocking ones on threads of their own.
//!
//! It must not know frames. Invariant: a blocking stream never runs on a thread of the runtime.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;

/// Where a peer reads and writes.
pub struct Transport {
    pub(crate) input: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) blocks: bool,
}

impl Transport {
    /// Streams of the runtime: sockets, pipes of a child process, in-memory ones.
    pub fn stream(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Transport {
        Transport { input: Box::new(input), output: Box::new(output), blocks: false }
    }

    /// Blocking streams, each served by a thread of its own. A read under way cannot be interrupted: its thread ends
    /// at the end of the input or with the process.
    pub fn blocking(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Transport {
        Transport { input: Box::new(Blocking(input)), output: Box::new(Blocking(output)), blocks: true }
    }
}

/// Runs the reader and the writer of a transport: on threads of their own where it blocks.
pub(crate) fn run(
    blocks: bool,
    runtime: Handle,
    reading: impl Future<Output = ()> + Send + 'static,
    writing: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    if !blocks {
        runtime.spawn(reading);
        runtime.spawn(writing);
        return Ok(());
    }
    let read_runtime = runtime.clone();
    thread::Builder::new().name("rpc-read".into()).spawn(move || read_runtime.block_on(reading))?;
    thread::Builder::new().name("rpc-write".into()).spawn(move || runtime.block_on(writing))?;
    Ok(())
}

/// Standard input and output, unbuffered, each on a thread of its own. Nothing else may use them meanwhile.
pub fn stdio() -> io::Result<Transport> {
    let (input, output) = platform::standard_streams()?;
    Ok(Transport::blocking(input, output))
}

/// A blocking stream in the shape of an async one, for a thread that polls nothing else.
struct Blocking<S>(S);

// Nothing is ever pinned inside it.
impl<S> Unpin for Blocking<S> {}

/// A parent may have left the descriptor non-blocking; then the call is repeated until it succeeds.
fn retry<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            outcome => return outcome,
        }
    }
}

impl<R: Read> AsyncRead for Blocking<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = retry(|| self.0.read(buffer.initialize_unfilled()));
        Poll::Ready(count.map(|count| buffer.advance(count)))
    }
}

impl<W: Write> AsyncWrite for Blocking<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(retry(|| self.0.write(bytes)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(retry(|| self.0.flush()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
