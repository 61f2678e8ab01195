//! The changes of a call: recorded for undo, and searched for what other programs would run, when its command has ended. Where
//! the command outlives the call, that is later; where Dragoman is killed first, the next one does it.
//!
//! Must not know what ran. Invariant: while a job ran, a person may have made the same files, so nothing of it is deleted.

use std::path::PathBuf;
use std::sync::Arc;

use domain::event::{Fact, Level, Notice};
use domain::job::Continued;
use domain::tool::Review;

use super::leftovers;
use crate::session::Session;
use crate::turn::Turn;
use crate::undo::Recording;

/// What a call may change.
pub(super) struct Changes {
    session: Arc<Session>,
    recording: Option<Recording>,
    /// Files that run later stay as they are.
    keeps: bool,
    run_later: Vec<PathBuf>,
}

impl Changes {
    /// Must be made before the tool runs.
    pub(super) fn new(turn: &Turn, mut recording: Option<Recording>, keeps: bool) -> Self {
        let run_later = recording.as_ref().map(Recording::run_later).unwrap_or_default();
        if let Some(recording) = recording.as_mut().filter(|_| keeps) {
            recording.note_due(&run_later, &turn.session.roots);
        }
        Self { session: turn.session.clone(), recording, keeps, run_later }
    }

    /// What of the workspace runs later.
    pub(super) fn run_later(&self) -> &[PathBuf] {
        &self.run_later
    }

    /// The call has ended, and everything that it started, but for a command that goes on. What the model must know.
    pub(super) async fn settle(self, continued: Option<Continued>, review: &Review) -> Option<String> {
        if let Some(continued) = continued {
            self.settle_after(continued);
            return None;
        }
        let Self { session, recording, keeps, run_later } = self;
        let (changed, due) = recording?.end(&session).await;
        if !keeps {
            let named = review.locations.iter().map(|location| &location.path);
            leftovers::note_approved(changed.iter().chain(named));
            return None;
        }
        let removed = leftovers::remove(&changed, &run_later, &session.roots);
        due.into_iter().for_each(undo::DueNote::done);
        removed
    }

    /// The same, when a command that outlives its call has ended.
    fn settle_after(self, continued: Continued) {
        let Self { session, recording, keeps, run_later } = self;
        let Some(recording) = recording else { return };
        tokio::spawn(async move {
            continued.ended.cancelled().await;
            let (changed, due) = recording.end(&session).await;
            let aside = keeps.then(|| leftovers::put_aside(&changed, &run_later, &session.roots)).flatten();
            due.into_iter().for_each(undo::DueNote::done);
            let _ = continued.settled.send(aside);
        });
    }
}

/// Settles what commands left whose Dragoman was killed while they ran.
pub(crate) async fn settle_interrupted(session: &Session) {
    for (changed, known, due) in crate::undo::interrupted(session).await {
        if let Some(text) = leftovers::put_aside(&changed, &known, &session.roots) {
            session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
        }
        due.done();
    }
}
