//! The sign that the peer no longer wants an answer.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells that the peer no longer wants an answer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Cancellation(Arc<watch::Sender<bool>>);

impl Cancellation {
    pub(crate) fn new() -> Cancellation {
        Cancellation(Arc::new(watch::Sender::new(false)))
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn cancelled(&self) {
        let mut cancelled = self.0.subscribe();
        // It fails only if the sender is gone, and `self` holds it.
        let _ = cancelled.wait_for(|cancelled| *cancelled).await;
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_same(&self, other: &Cancellation) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
