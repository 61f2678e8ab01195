//! Who hears of a session: the event queues of the front-ends attached to it.
//!
//! Invariant: telling never waits, so a stalled front-end cannot slow a turn.

use std::sync::{Arc, PoisonError, RwLock};

use domain::queue::EventSender;
use domain::{Event, FrontendId};

#[derive(Clone, Default)]
pub struct Audience {
    fronts: Arc<RwLock<Vec<(FrontendId, EventSender)>>>,
}

impl Audience {
    pub fn add(&self, front: FrontendId, events: EventSender) {
        let mut fronts = self.fronts.write().unwrap_or_else(PoisonError::into_inner);
        if !fronts.iter().any(|(known, _)| *known == front) {
            fronts.push((front, events));
        }
    }

    pub fn remove(&self, front: FrontendId) {
        self.fronts.write().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| *known != front);
    }

    pub fn is_empty(&self) -> bool {
        self.fronts.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn publish(&self, event: Event) {
        let fronts = self.fronts.read().unwrap_or_else(PoisonError::into_inner);
        let Some(((_, last), others)) = fronts.split_last() else { return };
        for (_, events) in others {
            events.push(event.clone());
        }
        last.push(event);
    }
}
