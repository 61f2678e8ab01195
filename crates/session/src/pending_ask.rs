//! A question on its way: raised in the journal, answered or stopped, and settled in the journal.
//!
//! Invariant: a question that was raised is settled once, whatever happens.

use domain::event::Fact;
use domain::{Answer, Ask, CancellationToken, Failure};

use crate::asks::PendingAsk;
use crate::session_core::SessionCore;

impl PendingAsk {
    /// Commits the ask, together with `others`, and waits until it is on disk.
    pub async fn raise(&self, session: &SessionCore, ask: Ask, others: Vec<Fact>) -> Result<(), Failure> {
        // The ask first: a client may answer the moment it sees an item wait.
        let facts = std::iter::once(Fact::AskRaised { ask }).chain(others).collect();
        session.commit(facts).on_disk().await
    }

    /// Waits for the answer and commits it; a stop is the answer `Cancelled`.
    pub async fn answer(mut self, session: &SessionCore, cancel: &CancellationToken) -> Answer {
        self.wait(session, cancel).await
    }

    /// The same for an owner that keeps the ask. Must not be called again after it returned.
    pub async fn wait(&mut self, session: &SessionCore, cancel: &CancellationToken) -> Answer {
        let id = self.id;
        let answer = tokio::select! {
            biased;
            // An answer that came before a stop counts.
            answer = &mut self.receiver => answer.unwrap_or(Answer::Cancelled),
            () = cancel.cancelled() => Answer::Cancelled,
        };
        // An answer that comes from now on is too late.
        session.asks.settle(id, answer.clone());
        // The end of a turn settles what is open in it.
        session.commit_with(|state| {
            let is_open = state.open_asks().any(|ask| ask.id == id);
            is_open.then(|| Fact::AskSettled { id, answer: answer.clone() }).into_iter().collect()
        });
        session.asks.forget(id);
        answer
    }
}
