//! A server as a child process: its pipes as a byte stream, the last lines of its errors.
//!
//! Knows no message of the protocol. Invariants: errors are always read, so that a server never blocks on them, and
//! only their end is kept; of the output only lines that could be messages are passed on.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::CancellationToken;
use process::sandbox::{Allowance, Grant, Sandbox, stopped};
use process::{Child, OutputPipe, Spawn};
use rpc::{JsonLines, NullIdErrorFilter, Transport};
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use crate::text::strip_controls;

const MAX_LINES: usize = 20;
const MAX_LINE_LENGTH: usize = 500;

/// Programs start one after another, this long apart: many at once would take the processor from the answer to a prompt.
const START_INTERVAL: Duration = Duration::from_millis(10);
/// A program that cannot be started holds up the others no longer than this.
const START_WAIT: Duration = Duration::from_secs(1);
static STARTS: Semaphore = Semaphore::const_new(1);

/// After so many bytes of errors the reader pauses: a server that floods them waits for its own pipe, and takes a bounded
/// share of our processor.
const FLOOD_BYTES: usize = 2 << 20;
const FLOOD_PAUSE: Duration = Duration::from_millis(100);

/// How long the end of the errors may take once the server is gone.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) struct ServerProcess {
    pub child: Child,
    tail: Arc<Mutex<StderrTail>>,
    read: CancellationToken,
    is_confined: bool,
    _reader: AbortOnDropHandle<()>,
}

pub(crate) struct ServerProgram<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a [(String, String)],
    pub withheld: &'a [String],
    pub directory: Option<&'a Path>,
    pub confine: Option<(Arc<Sandbox>, Vec<Grant>)>,
}

/// Starts the program; the sentence says why it could not.
pub(crate) async fn start(program: ServerProgram<'_>) -> Result<(Transport, ServerProcess), String> {
    let mut spawn = Spawn::new(program.command)
        .args(program.args)
        .without_env(program.withheld)
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .piped_input();
    if let Some(directory) = program.directory {
        spawn = spawn.directory(directory);
    }
    let is_confined = program.confine.is_some();
    if let Some((sandbox, grants)) = program.confine {
        spawn = spawn.confine(sandbox, Allowance::new(grants));
    }
    let start = tokio::time::timeout(START_WAIT, STARTS.acquire()).await;
    let child = spawn.start().await;
    tokio::spawn(async move {
        tokio::time::sleep(START_INTERVAL).await;
        drop(start);
    });
    let mut child = child.map_err(|error| error.to_string())?;
    let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err("Its pipes could not be opened.".to_owned());
    };
    let tail = Arc::<Mutex<StderrTail>>::default();
    let read = CancellationToken::new();
    let reader = AbortOnDropHandle::new(tokio::spawn(read_errors(stderr, tail.clone(), read.clone())));
    let running = ServerProcess { child, tail, read, is_confined, _reader: reader };
    Ok((Transport::stream(JsonLines::new(stdout), NullIdErrorFilter::new(stdin)), running))
}

impl ServerProcess {
    /// The last lines of the errors; waits a little for them where the server has ended.
    pub(crate) async fn last_lines(&self) -> String {
        if self.child.exit().is_some() {
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.read.cancelled()).await;
        }
        let text = self.tail.lock().unwrap_or_else(PoisonError::into_inner).text();
        match stopped::find(&text).filter(|_| self.is_confined) {
            Some((stopped, _)) => format!(
                "{text}\nThe sandbox of the server may be the reason: {}. A grant in `grants` of its entry may help: see \
                 `dragoman docs sandbox`.",
                stopped.sentence()
            ),
            None => text,
        }
    }
}

async fn read_errors(mut stderr: OutputPipe, tail: Arc<Mutex<StderrTail>>, read: CancellationToken) {
    let _read = read.drop_guard();
    let mut buffer = vec![0; 8 << 10];
    let mut bytes = 0;
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
        bytes += count;
        if bytes >= FLOOD_BYTES {
            bytes = 0;
            tokio::time::sleep(FLOOD_PAUSE).await;
        }
    }
}

/// The end of the bytes with the lines that may be kept; blank ones are not.
fn last_part(bytes: &[u8]) -> &[u8] {
    let mut ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.nth(MAX_LINES * 4).map_or(bytes, |(at, _)| &bytes[at + 1..])
}

/// The last lines of a stream, however long it is.
#[derive(Default)]
struct StderrTail {
    lines: VecDeque<String>,
    unfinished: Vec<u8>,
}

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        let last = last_part(bytes);
        if last.len() < bytes.len() {
            self.unfinished.clear();
        }
        for piece in last.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_LENGTH.saturating_sub(self.unfinished.len());
            self.unfinished.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.unfinished);
                self.keep(&line);
            }
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let line = strip_controls(String::from_utf8_lossy(line).trim_end());
        if line.is_empty() {
            return;
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn text(&mut self) -> String {
        let line = std::mem::take(&mut self.unfinished);
        self.keep(&line);
        self.lines.make_contiguous().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut tail = StderrTail::default();
        for number in 0..1000 {
            tail.push(format!("line {number}\r\n\n").as_bytes());
        }
        tail.push(&[b'x'; 100_000]);
        tail.push(b"\n\x1b[31mlast");
        let text = tail.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[19]), (MAX_LINES, "line 982", "last"));
        assert_eq!(lines[18].len(), MAX_LINE_LENGTH);
    }
}
