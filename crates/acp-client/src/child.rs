//! The process of an agent: its pipes as a transport, the last lines of its errors, and why it ended.
//!
//! Knows no message of the protocol. Invariant: errors are always read, so that a child never blocks on them, and only
//! their end is kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process::{Child, OutputPipe, Spawn};
use rpc::{JsonLines, NullIdErrorFilter, Transport};
use tokio::io::AsyncReadExt;

/// Bytes of the errors that are kept.
const MOST_ERRORS: usize = 4_000;
/// How long the end of a child, and then its last errors, may take to arrive.
const LAST_ERRORS: Duration = Duration::from_millis(200);

pub(crate) struct AgentChild {
    child: Child,
    errors: Arc<Mutex<Vec<u8>>>,
}

/// Starts the program; the sentence says why it could not.
pub(crate) async fn start(spawn: Spawn) -> Result<(Transport, AgentChild), String> {
    let mut child = spawn.piped_input().start().await.map_err(|error| error.to_string())?;
    let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err("Its pipes could not be opened.".to_owned());
    };
    let errors = Arc::<Mutex<Vec<u8>>>::default();
    tokio::spawn(read_errors(stderr, errors.clone()));
    let transport = Transport::stream(JsonLines::new(stdout), NullIdErrorFilter::new(stdin));
    Ok((transport, AgentChild { child, errors }))
}

impl AgentChild {
    /// What is known about the end of the child, as sentences; empty where nothing is.
    pub(crate) async fn explain_end(&self) -> String {
        if tokio::time::timeout(LAST_ERRORS, self.child.wait()).await.is_ok() {
            tokio::time::sleep(LAST_ERRORS).await;
        }
        let mut sentences = Vec::new();
        if let Some(exit) = self.child.exit() {
            sentences.push(match (exit.code, exit.signal) {
                (Some(code), _) => format!("It exited with code {code}."),
                (None, Some(signal)) => format!("Signal {signal} ended it."),
                (None, None) => "It is gone.".to_owned(),
            });
        }
        let refused = self.child.refused_hosts();
        if !refused.is_empty() {
            let shown: Vec<&str> = refused.iter().take(5).map(String::as_str).collect();
            sentences.push(format!(
                "Its sandbox refused {}. A grant such as `network:HOST` in `acpAgents` opens a host.",
                shown.join(", ")
            ));
        }
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&errors);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            let last = &lines[lines.len().saturating_sub(5)..];
            sentences.push(format!("Its last words: {}", domain::visible_line(&last.join(" / "))));
        }
        sentences.join(" ")
    }

    /// Ends the whole process tree.
    pub(crate) async fn stop(&self) {
        self.child.stop().await;
        self.child.take_back().await;
    }
}

async fn read_errors(mut stderr: OutputPipe, errors: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = errors.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(MOST_ERRORS);
        kept.drain(..surplus);
    }
}
