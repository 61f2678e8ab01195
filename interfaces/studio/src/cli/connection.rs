//! The pipes of one child as channels: lines in, lines out, and what it writes to stderr.
//!
//! Invariant: the writer takes one line at a time, so that a full pipe makes requests wait in the queue and nowhere else.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Diagnostics;
use super::launch::{CliProcess, Launched};
use super::policy::{EXIT_GRACE, WRITE_TIMEOUT};

/// The longest line of an answer.
const LONGEST_LINE: u64 = 128 << 20;
/// The longest line of stderr that is shown.
const LONGEST_DIAGNOSTIC: u64 = 8 << 10;
/// Messages read ahead of the actor.
const READ_AHEAD: usize = 64;

pub(crate) struct Connection {
    pub pid: Option<u32>,
    pub incoming: mpsc::Receiver<Value>,
    pub outgoing: mpsc::Sender<Vec<u8>>,
    process: Box<dyn CliProcess>,
    tasks: Vec<JoinHandle<()>>,
}

impl Connection {
    pub(crate) fn new(launched: Launched, diagnostics: Diagnostics) -> Self {
        let Launched { pid, input, output, errors, process } = launched;
        let (sender, incoming) = mpsc::channel(READ_AHEAD);
        let (outgoing, lines) = mpsc::channel(1);
        let tasks = vec![
            tokio::spawn(read_messages(output, sender, diagnostics.clone())),
            tokio::spawn(write_lines(input, lines)),
            tokio::spawn(read_errors(errors, diagnostics)),
        ];
        Self { pid, incoming, outgoing, process, tasks }
    }

    /// Asks the child to end, waits a moment, then ends it by force.
    pub(crate) async fn end(mut self) {
        let exit = b"{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n".to_vec();
        let asked = async {
            let _ = self.outgoing.send(exit).await;
            while self.incoming.recv().await.is_some() {}
        };
        let _ = tokio::time::timeout(EXIT_GRACE, asked).await;
        self.process.kill().await;
    }

    /// Ends the child without asking.
    pub(crate) async fn kill(self) {
        self.process.kill().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn read_messages(
    output: Box<dyn AsyncRead + Send + Unpin>,
    sender: mpsc::Sender<Value>,
    diagnostics: Diagnostics,
) {
    let mut output = BufReader::new(output);
    while let Some(line) = read_line(&mut output, LONGEST_LINE).await {
        match serde_json::from_slice(&line) {
            Ok(message) => {
                if sender.send(message).await.is_err() {
                    return;
                }
            }
            Err(error) => diagnostics(format!("The CLI wrote a line that is not JSON ({error}).")),
        }
    }
}

async fn read_errors(errors: Box<dyn AsyncRead + Send + Unpin>, diagnostics: Diagnostics) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        // A longer line is shown in pieces.
        match (&mut errors).take(LONGEST_DIAGNOSTIC).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end();
                if !text.is_empty() {
                    diagnostics(text.to_owned());
                }
            }
        }
    }
}

/// The next line that is not empty; `None` at the end, or where a line is too long.
async fn read_line(input: &mut (impl AsyncBufReadExt + Unpin), limit: u64) -> Option<Vec<u8>> {
    loop {
        let mut line = Vec::new();
        let length = input.take(limit).read_until(b'\n', &mut line).await.ok()?;
        let is_cut = length as u64 == limit && line.last() != Some(&b'\n');
        if length == 0 || is_cut {
            return None;
        }
        if !line.trim_ascii().is_empty() {
            return Some(line);
        }
    }
}

/// Ends, and with it the channel, when the child does not read any more.
async fn write_lines(mut input: Box<dyn AsyncWrite + Send + Unpin>, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let write = async {
            input.write_all(&line).await?;
            input.flush().await
        };
        if !matches!(tokio::time::timeout(WRITE_TIMEOUT, write).await, Ok(Ok(()))) {
            return;
        }
    }
}
