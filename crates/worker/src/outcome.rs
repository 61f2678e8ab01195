//! How a task ended, and the work that is left of it. Plain data.

use store_postgres::TaskState;

use super::progress::Progress;

/// The end of a task.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) state: TaskState,
    /// A word for scripts, as `dragoman run --output json` has it.
    pub(crate) outcome: String,
    pub(crate) message: Option<String>,
    /// The answer.
    pub(crate) text: String,
    pub(crate) cost: Option<f64>,
}

impl Ended {
    pub(crate) fn cancelled() -> Self {
        Self {
            state: TaskState::Cancelled,
            ..Self::failed("cancelled", "The task was cancelled.".to_owned())
        }
    }

    /// The deadline of a task has passed.
    pub(crate) fn late() -> Self {
        Self::failed("timeout", "The time that a worker may take for the task is over.".to_owned())
    }

    pub(crate) fn failed(outcome: &str, message: String) -> Self {
        Self {
            state: TaskState::Failed,
            outcome: outcome.to_owned(),
            message: Some(message),
            text: String::new(),
            cost: None,
        }
    }

    pub(crate) fn with(self, progress: &Progress) -> Self {
        Self { text: progress.text.clone(), cost: progress.cost, ..self }
    }
}

/// What is left of a task.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    /// The address that the branch was pushed to.
    pub(crate) pushed: Option<String>,
    pub(crate) patch: Vec<u8>,
    /// The folder that has the work, because nothing else does.
    pub(crate) kept: Option<String>,
    pub(crate) problem: Option<String>,
}
