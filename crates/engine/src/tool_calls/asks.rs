//! Questions of one session that wait for a person.
//!
//! Invariant: an ask is settled once; the first answer wins, unknown and settled ids are ignored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::event::Fact;
use domain::{Answer, Ask, AskId, CancellationToken, Failure};
use tokio::sync::oneshot;

use crate::session::Session;

#[derive(Default)]
pub(crate) struct Asks {
    waiting: Mutex<HashMap<AskId, oneshot::Sender<Answer>>>,
}

/// A question that was raised.
pub(crate) struct PendingAsk {
    pub(crate) id: AskId,
    receiver: oneshot::Receiver<Answer>,
}

impl Asks {
    pub(crate) fn wait_for(&self, id: AskId) -> PendingAsk {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(id, sender);
        PendingAsk { id, receiver }
    }

    pub(crate) fn settle(&self, id: AskId, answer: Answer) {
        let sender = self.lock().remove(&id);
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }

    /// The turn that asked is over.
    pub(crate) fn cancel_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AskId, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingAsk {
    /// Commits the ask, together with `others`, and waits until it is on disk.
    pub(crate) async fn raise(&self, session: &Session, ask: Ask, others: Vec<Fact>) -> Result<(), Failure> {
        // The ask first: a client may answer the moment it sees an item wait.
        let facts = std::iter::once(Fact::AskRaised { ask }).chain(others).collect();
        session.commit(facts).on_disk().await
    }

    /// Waits for the answer and commits it; a stop is the answer `Cancelled`.
    pub(crate) async fn answer(mut self, session: &Session, cancel: &CancellationToken) -> Answer {
        self.wait(session, cancel).await
    }

    /// The same for an owner that keeps the ask. Must not be called again after it returned.
    pub(crate) async fn wait(&mut self, session: &Session, cancel: &CancellationToken) -> Answer {
        let id = self.id;
        let answer = tokio::select! {
            biased;
            // An answer that came before a stop counts.
            answer = &mut self.receiver => answer.unwrap_or(Answer::Cancelled),
            () = cancel.cancelled() => Answer::Cancelled,
        };
        session.asks.settle(id, Answer::Cancelled);
        // The end of a turn settles what is open in it.
        session.commit_with(|state| {
            let is_open = state.open_asks().any(|ask| ask.id == id);
            is_open.then(|| Fact::AskSettled { id, answer: answer.clone() }).into_iter().collect()
        });
        answer
    }
}
