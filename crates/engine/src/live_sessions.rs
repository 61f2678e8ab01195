//! The sessions that are loaded, by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::SessionId;
use session::state::State;

use crate::session::Session;

/// The sessions that are loaded.
#[derive(Clone, Default)]
pub struct LiveSessions(Arc<Mutex<HashMap<SessionId, Weak<Session>>>>);

impl LiveSessions {
    pub(crate) fn add(&self, session: &Arc<Session>) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, known| known.strong_count() > 0);
        sessions.insert(session.id.clone(), Arc::downgrade(session));
    }

    /// A copy of the state of a session.
    pub fn state(&self, session: &SessionId) -> Option<State> {
        let state = self.find(session)?.state().clone();
        Some(state)
    }

    pub(crate) fn title(&self, session: &SessionId) -> Option<String> {
        let session = self.find(session)?;
        session.state().settings().title.clone()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn find(&self, session: &SessionId) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(session).and_then(Weak::upgrade)
    }
}
