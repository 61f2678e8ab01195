//! One child from start to end: feeds its input, reads its output within the limit, and watches the
//! deadline and the caller's wish to stop. Never returns while the tree lives, never waits for a pipe that
//! a daemon keeps open.

use std::time::{Duration, Instant};

use sandbox::Leftovers;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant as TokioInstant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::child::Child;
use crate::error::ProcessError;
use crate::exit::{Exit, LINGER_TIME};
use crate::output::{Capture, Captured, OutputLimit};
use crate::pipes::{self, Receiver, Sender};
use crate::spawn::Spawn;

/// How long the pipe of a child that has ended is read where something else keeps it open.
const DRAIN_TIME: Duration = Duration::from_millis(600);

/// Which stream a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Stdout,
    Stderr,
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signalled(i32),
    DeadlinePassed,
    Stopped,
}

/// A finished run with what was kept of its output.
#[derive(Debug, Clone)]
pub struct Finished {
    pub end: End,
    pub stdout: Captured,
    pub stderr: Captured,
    pub elapsed: Duration,
    /// Hosts that its sandbox refused, as `host:port`.
    pub refused_hosts: Vec<String>,
    /// What it left in the workspace that git would obey.
    pub leftovers: Leftovers,
    /// Its sandbox ended it because it took too much memory.
    pub over_memory: bool,
}

impl Finished {
    pub fn success(&self) -> bool {
        self.end == End::Exited(0)
    }
}

impl From<Exit> for End {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit { code: Some(code), .. } => Self::Exited(code),
            Exit { signal, .. } => Self::Signalled(signal.unwrap_or(0)),
        }
    }
}

impl Spawn {
    /// Runs to the end, to the deadline or until `stop`, whichever comes first; the tree is gone after it.
    pub async fn run(self, stop: &CancellationToken) -> Result<Finished, ProcessError> {
        self.run_with(stop, |_, _| ()).await
    }

    /// Like `run`, and shows each piece of output as it comes, before any of it is left out.
    pub async fn run_with(
        self,
        stop: &CancellationToken,
        on_output: impl FnMut(Source, &[u8]) + Send,
    ) -> Result<Finished, ProcessError> {
        run(self, stop, on_output).await
    }
}

async fn run(
    mut spawn: Spawn,
    stop: &CancellationToken,
    mut on_output: impl FnMut(Source, &[u8]) + Send,
) -> Result<Finished, ProcessError> {
    let began = Instant::now();
    let deadline = TokioInstant::from_std(began) + spawn.deadline;
    let drain_time = LINGER_TIME + spawn.grace + Duration::from_millis(200);
    let input = spawn.take_input();
    let limit = spawn.limit;
    let mut child = spawn.start().await?;
    let mut reader = OutputReader::new(&mut child, limit);
    let write_input = write_input(child.take_stdin(), input);
    tokio::pin!(write_input);
    let mut input_written = false;
    let end = loop {
        tokio::select! {
            () = reader.read_next(&mut on_output), if reader.open() => {}
            () = &mut write_input, if !input_written => input_written = true,
            exit = child.wait() => break End::from(exit),
            () = sleep_until(deadline) => break End::DeadlinePassed,
            () = stop.cancelled() => break End::Stopped,
        }
    };
    // What is still in the pipes, and what the tree says while it ends.
    match end {
        End::DeadlinePassed | End::Stopped => reader.read_until(child.stop(), &mut on_output).await,
        End::Exited(_) | End::Signalled(_) => {
            reader.read_to_end_or(TokioInstant::now() + drain_time, &mut on_output).await;
        }
    }
    let (stdout, stderr) = reader.finish();
    let leftovers = child.take_back().await;
    let (elapsed, refused_hosts) = (began.elapsed(), child.refused_hosts());
    let over_memory = may_be_killed(end) && child.was_over_memory().await;
    Ok(Finished { end, stdout, stderr, elapsed, refused_hosts, leftovers, over_memory })
}

impl Child {
    /// Reads what the child prints until it has ended and said everything. `on_output` gets each piece as it comes. What
    /// a daemon prints that keeps the pipe open is read for a moment more.
    pub async fn read_output(&self, pipe: Receiver, mut on_output: impl FnMut(&[u8]) + Send) {
        let capture = Capture::new(OutputLimit { head: 0, tail: 0 });
        let buffer = vec![0; 16 * 1024];
        let mut stream = OutputStream { source: Source::Stdout, pipe: Some(pipe), capture, buffer };
        let mut on_output = |_: Source, bytes: &[u8]| on_output(bytes);
        loop {
            tokio::select! {
                length = stream.read(), if stream.pipe.is_some() => stream.accept(length, &mut on_output),
                _ = self.wait() => break,
            }
        }
        let drain_deadline = TokioInstant::now() + LINGER_TIME + DRAIN_TIME;
        while stream.pipe.is_some() {
            tokio::select! {
                length = stream.read() => stream.accept(length, &mut on_output),
                () = sleep_until(drain_deadline) => break,
            }
        }
        stream.drain(&mut on_output);
    }
}

/// Ended by SIGKILL, or a shell whose command was.
fn may_be_killed(end: End) -> bool {
    matches!(end, End::Signalled(9) | End::Exited(137))
}

/// Writes the input and closes it. A child that does not read its input to the end is no error.
async fn write_input(stdin: Option<Sender>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
}

/// The two streams and what is kept of them.
struct OutputReader {
    stdout: OutputStream,
    stderr: OutputStream,
}

struct OutputStream {
    source: Source,
    pipe: Option<Receiver>,
    capture: Capture,
    buffer: Vec<u8>,
}

impl OutputReader {
    fn new(child: &mut Child, limit: OutputLimit) -> Self {
        let stream = |source, pipe| OutputStream {
            source,
            pipe,
            capture: Capture::new(limit),
            buffer: vec![0; 16 * 1024],
        };
        Self {
            stdout: stream(Source::Stdout, child.take_stdout()),
            stderr: stream(Source::Stderr, child.take_stderr()),
        }
    }

    fn open(&self) -> bool {
        self.stdout.pipe.is_some() || self.stderr.pipe.is_some()
    }

    /// Reads one piece from whichever stream has one.
    async fn read_next(&mut self, on_output: &mut impl FnMut(Source, &[u8])) {
        tokio::select! {
            length = self.stdout.read(), if self.stdout.pipe.is_some() => self.stdout.accept(length, on_output),
            length = self.stderr.read(), if self.stderr.pipe.is_some() => self.stderr.accept(length, on_output),
            else => {}
        }
    }

    /// Reads until the tree is gone, then what it left in the pipes.
    async fn read_until(
        &mut self,
        gone: impl Future<Output = Exit>,
        on_output: &mut impl FnMut(Source, &[u8]),
    ) {
        tokio::pin!(gone);
        loop {
            tokio::select! {
                () = self.read_next(on_output), if self.open() => {}
                _ = &mut gone => break,
            }
        }
        self.stdout.drain(on_output);
        self.stderr.drain(on_output);
    }

    /// Reads to the end of both streams, or until the deadline where a daemon keeps them open. What was written by then
    /// is read even where this task had no time to read it: on a busy machine the deadline may pass first.
    async fn read_to_end_or(
        &mut self,
        drain_deadline: TokioInstant,
        on_output: &mut impl FnMut(Source, &[u8]),
    ) {
        while self.open() {
            tokio::select! {
                () = self.read_next(on_output) => {}
                () = sleep_until(drain_deadline) => break,
            }
        }
        self.stdout.drain(on_output);
        self.stderr.drain(on_output);
    }

    fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }
}

impl OutputStream {
    /// Reads one piece into the buffer; no length means that the stream is over.
    async fn read(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        let length = pipe.read(&mut self.buffer).await.unwrap_or(0);
        if length == 0 {
            self.pipe = None;
        }
        length
    }

    /// Takes what is already in the pipe, without waiting: at most what a pipe holds.
    fn drain(&mut self, on_output: &mut impl FnMut(Source, &[u8])) {
        for _ in 0..64 {
            let Some(pipe) = &self.pipe else { return };
            match pipes::read_now(pipe, &mut self.buffer) {
                0 => return,
                length => self.accept(length, on_output),
            }
        }
    }

    fn accept(&mut self, length: usize, on_output: &mut impl FnMut(Source, &[u8])) {
        let bytes = &self.buffer[..length];
        if !bytes.is_empty() {
            self.capture.push(bytes);
            on_output(self.source, bytes);
        }
    }
}
