//! The event queues of the front-ends attached to a session.
//!
//! Invariant: publishing never waits, so a stalled front-end cannot slow a turn.

use std::sync::{Arc, PoisonError, RwLock};

use domain::queue::EventSender;
use domain::{Event, FrontendId};

#[derive(Clone, Default)]
pub struct Audience {
    frontends: Arc<RwLock<Vec<(FrontendId, EventSender)>>>,
}

impl Audience {
    pub fn add(&self, frontend: FrontendId, events: &EventSender) {
        if self.contains(frontend) {
            return;
        }
        let mut frontends = self.frontends.write().unwrap_or_else(PoisonError::into_inner);
        frontends.push((frontend, events.clone()));
    }

    /// True where it was there.
    pub fn remove(&self, frontend: FrontendId) -> bool {
        let mut frontends = self.frontends.write().unwrap_or_else(PoisonError::into_inner);
        let before = frontends.len();
        frontends.retain(|(known, _)| *known != frontend);
        frontends.len() < before
    }

    pub fn is_empty(&self) -> bool {
        self.frontends.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn publish(&self, event: Event) {
        let frontends = self.frontends.read().unwrap_or_else(PoisonError::into_inner);
        let Some(((_, last), others)) = frontends.split_last() else { return };
        for (_, events) in others {
            events.push(event.clone());
        }
        last.push(event);
    }

    fn contains(&self, frontend: FrontendId) -> bool {
        let frontends = self.frontends.read().unwrap_or_else(PoisonError::into_inner);
        frontends.iter().any(|(known, _)| *known == frontend)
    }
}
