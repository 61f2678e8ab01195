//! A protocol that runs for an editor on another machine: its messages, as on standard streams.
//!
//! Must not know a protocol: each comes as a function.

use std::io;
use std::time::Duration;

use domain::BoxFuture;
use domain::link::Engine;
use rpc::{Framing, Messages, Transport};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a protocol may take to end.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// Bytes between a connection and its protocol.
const PIPE_BYTES: usize = 64 << 10;
/// The largest message of a protocol to its client.
const LARGEST_ANSWER: usize = 64 << 20;

type Serve = fn(Engine, Transport) -> BoxFuture<'static, io::Result<()>>;

/// A protocol at a path.
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub path: &'static str,
    /// How the protocol frames its messages on standard streams.
    pub framing: Framing,
    pub serve: Serve,
    /// Clients may also use it by plain requests and streams of events.
    pub has_http: bool,
}

/// A protocol that runs.
pub(crate) struct Running(JoinHandle<io::Result<()>>);

/// Starts the protocol with this engine.
pub(crate) fn start(endpoint: Endpoint, engine: Engine) -> io::Result<(Running, Messages)> {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let (input, output) = tokio::io::split(far);
    let served = tokio::spawn((endpoint.serve)(engine, Transport::stream(input, output)));
    let (input, output) = tokio::io::split(near);
    let messages = rpc::messages(endpoint.framing, LARGEST_ANSWER, Transport::stream(input, output))?;
    Ok((Running(served), messages))
}

impl Running {
    /// Waits for the end of a protocol that has read the end of its input.
    pub(crate) async fn end(mut self) -> io::Result<()> {
        match timeout(END_DEADLINE, &mut self.0).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => {
                self.0.abort();
                Err(io::Error::from(io::ErrorKind::TimedOut))
            }
        }
    }
}
