//! Commands that run in the background of a chat, as clients list them.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::CancellationToken;
use crate::ids::SessionId;

/// What the result of a call says, before the id, where its command goes on as a job.
pub const GOES_ON: &str = "it goes on as ";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub id: String,
    pub session: SessionId,
    /// The title of that chat, where it is known.
    pub chat_title: Option<String>,
    /// What it is for, in the words of the model.
    pub label: String,
    pub command: String,
    pub status: JobStatus,
    pub exit_code: Option<i32>,
    /// Milliseconds since 1970.
    pub started_at: u64,
    pub elapsed: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobStatus {
    Running,
    Completed,
    /// It ended with another code than 0, or by a signal.
    Failed,
    /// Somebody ended it.
    Killed,
}

/// What a job has printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobOutput {
    /// The newest lines; both streams in one.
    pub lines: Vec<String>,
    pub status: JobStatus,
    pub exit_code: Option<i32>,
}

/// A command that outlives its call: what it changes is settled when it has ended.
#[derive(Debug)]
pub struct Continued {
    /// Cancelled when all its processes are gone.
    pub ended: CancellationToken,
    /// Takes what the command's output must say about its changes. Dropped where there is nothing to settle.
    pub settled: oneshot::Sender<Option<String>>,
}
