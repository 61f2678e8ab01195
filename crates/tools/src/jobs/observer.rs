//! Who is told that the list of jobs has changed.

use std::sync::Arc;

/// Called after every change of the list.
#[derive(Clone, Default)]
pub struct JobsObserver(pub Option<Arc<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for JobsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobsObserver")
    }
}

impl JobsObserver {
    pub(super) fn observe(&self) {
        if let Some(observe) = &self.0 {
            observe();
        }
    }
}
