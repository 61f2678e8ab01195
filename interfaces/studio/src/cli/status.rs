//! What is told about the child.

use std::sync::Arc;

use serde::Serialize;

/// What the page shows of the child.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CliStatus {
    pub state: CliState,
    pub pid: Option<u32>,
    pub restarts: u32,
    pub pending: usize,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CliState {
    Starting,
    Running,
    Restarting,
    Stopped,
    Failed,
}

/// Receives each line that the child writes to stderr, and remarks about the child.
pub type Diagnostics = Arc<dyn Fn(String) + Send + Sync>;
