//! `worker`: what `dragoman worker` takes, allows and spends. A task can only ask for less.
//!
//! Invariant: only the user's own files set it; a worker without `repositories` takes nothing.

use crate::cursor::Cursor;

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerSettings {
    /// Folders and addresses of git; with everything below them.
    pub repositories: Vec<String>,
    /// Addresses of git that finished branches are pushed to.
    pub push: Vec<String>,
    /// Tool calls that run without approval, by the words of `dragoman run --approve`.
    pub approve: Vec<String>,
    /// The most that one task may cost, in dollars.
    pub max_cost: Option<f64>,
    pub max_steps: Option<u64>,
    pub timeout_seconds: u64,
    /// Workers that may have a task before it is given up.
    pub max_attempts: u64,
    /// A task may ask for the submodules of its repository.
    pub submodules: bool,
    /// A task may ask for the large files (LFS) of its repository.
    pub large_files: bool,
    /// Days after which a task that has ended is deleted with its chat.
    pub retention_days: Option<u64>,
}

impl WorkerSettings {
    pub(crate) fn read(section: &Cursor) -> Self {
        let environment = section.scope().environment;
        let places = |key| -> Vec<String> {
            let texts = section.get(key).texts();
            texts.iter().map(|text| environment.expand_home(text).to_string_lossy().into_owned()).collect()
        };
        Self {
            repositories: places("repositories"),
            push: places("push"),
            approve: section.get("approve").texts(),
            max_cost: section.get("maxCost").dollars(),
            max_steps: section.get("maxSteps").number(1..=100_000),
            timeout_seconds: section.get("timeoutSeconds").number(1..=604_800).unwrap_or(3600),
            max_attempts: section.get("maxAttempts").number(1..=1000).unwrap_or(5),
            submodules: section.get("submodules").flag().unwrap_or(false),
            large_files: section.get("lfs").flag().unwrap_or(false),
            retention_days: section.get("retentionDays").number(1..=36_500),
        }
    }
}
