//! Subagents that work while the turn that started them goes on.
//!
//! Must not know models. Invariants: the reports of all of them reach the model before the turn ends by itself; none
//! outlives the turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How many may work at the same time for one turn.
pub(crate) const MOST: usize = 8;

#[derive(Default)]
pub(crate) struct Background {
    work: Mutex<Work>,
    changed: Notify,
}

#[derive(Default)]
struct Work {
    running: usize,
    /// Of those that have ended, as messages for the model.
    reports: Vec<String>,
    tasks: JoinSet<()>,
}

impl Background {
    /// False: as many as may work do so already.
    pub(crate) fn reserve(&self) -> bool {
        let mut work = self.lock();
        let is_free = work.running < MOST;
        work.running += usize::from(is_free);
        is_free
    }

    /// Runs the work of a reserved place; its output is the report.
    pub(crate) fn spawn(self: &std::sync::Arc<Self>, report: impl Future<Output = String> + Send + 'static) {
        let background = std::sync::Arc::downgrade(self);
        self.lock().tasks.spawn(async move {
            let report = report.await;
            if let Some(background) = background.upgrade() {
                let mut work = background.lock();
                work.running -= 1;
                work.reports.push(report);
                drop(work);
                background.changed.notify_one();
            }
        });
    }

    /// What is there to report.
    pub(crate) fn take_reports(&self) -> Option<String> {
        let reports = std::mem::take(&mut self.lock().reports);
        (!reports.is_empty()).then(|| reports.join("\n\n"))
    }

    pub(crate) fn is_working(&self) -> bool {
        let work = self.lock();
        work.running > 0 || !work.reports.is_empty()
    }

    /// Waits for the next report.
    pub(crate) async fn wait(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reports_are_joined_and_places_become_free() {
        let background = Arc::new(Background::default());
        assert!(!background.is_working() && background.take_reports().is_none());
        assert!((0..MOST).all(|_| background.reserve()));
        assert!(!background.reserve(), "no place is left");
        for at in 0..MOST {
            background.spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(at as u64)).await;
                format!("report {at}")
            });
        }
        background.wait().await;
        assert_eq!(background.take_reports().as_deref(), Some("report 0"));
        assert!(background.is_working() && background.reserve(), "a place is free again");
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let reports = background.take_reports().unwrap();
        assert!(reports.starts_with("report 1\n\nreport 2") && reports.ends_with("report 7"), "{reports}");
    }
}
