//! A worker: its queue, its store, its settings and its folder, as all parts of its work need them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::WorkerSettings;
use domain::{CancellationToken, SessionId, Store};
use store_postgres::TaskQueue;

use super::git;
use super::report::Report;

pub(crate) struct Worker {
    pub(crate) queue: TaskQueue,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: WorkerSettings,
    /// A private folder for checkouts.
    pub(crate) folder: PathBuf,
    pub(crate) network: git::Network,
    pub(crate) report: Report,
}

pub(crate) async fn pause(time: Duration, stop: &CancellationToken) {
    let _ = tokio::time::timeout(time, stop.cancelled()).await;
}

/// The chat of a task.
pub fn chat_of(task: &str) -> SessionId {
    SessionId::new(format!("task-{task}"))
}
