//! Questions of one session that wait for a person.
//!
//! Invariant: an ask is settled once; the first answer wins, unknown and settled ids are ignored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Answer, AskId};
use tokio::sync::oneshot;

#[derive(Default)]
pub struct Asks {
    waiting: Mutex<HashMap<AskId, Waiting>>,
}

/// A question on its way to an answer. An answer that was given is here until it is in the state.
enum Waiting {
    Open(oneshot::Sender<Answer>),
    Answered(Answer),
}

/// A question that was raised.
pub struct PendingAsk {
    pub id: AskId,
    pub(crate) receiver: oneshot::Receiver<Answer>,
}

impl Asks {
    pub fn wait_for(&self, id: AskId) -> PendingAsk {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(id, Waiting::Open(sender));
        PendingAsk { id, receiver }
    }

    /// Gives the answer that settled the question: this one, or the one that came first. `None`: the question is not
    /// known here, or its answer is in the state already.
    pub fn settle(&self, id: AskId, answer: Answer) -> Option<Answer> {
        let mut waiting = self.lock();
        match waiting.insert(id, Waiting::Answered(answer.clone())) {
            Some(Waiting::Open(sender)) => {
                drop(waiting);
                let _ = sender.send(answer.clone());
                Some(answer)
            }
            Some(Waiting::Answered(first)) => {
                waiting.insert(id, Waiting::Answered(first.clone()));
                Some(first)
            }
            None => {
                waiting.remove(&id);
                None
            }
        }
    }

    /// Answers a question that is still open. False: somebody else has answered it.
    pub fn settle_open(&self, id: AskId, answer: Answer) -> bool {
        let mut waiting = self.lock();
        if !matches!(waiting.get(&id), Some(Waiting::Open(_))) {
            return false;
        }
        if let Some(Waiting::Open(sender)) = waiting.insert(id, Waiting::Answered(answer.clone())) {
            drop(waiting);
            let _ = sender.send(answer);
        }
        true
    }

    /// The answer is in the state from now on.
    pub(crate) fn forget(&self, id: AskId) {
        self.lock().remove(&id);
    }

    /// The turn that asked is over.
    pub fn cancel_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AskId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Answer {
        Answer::Text { text: text.into() }
    }

    #[test]
    fn the_first_answer_settles_a_question() {
        let asks = Asks::default();
        let mut pending = asks.wait_for(AskId(1));
        assert_eq!(asks.settle(AskId(1), text("first")), Some(text("first")));
        assert_eq!(asks.settle(AskId(1), text("second")), Some(text("first")), "the first one stands");
        assert_eq!(pending.receiver.try_recv(), Ok(text("first")));
        asks.forget(AskId(1));
        assert_eq!(asks.settle(AskId(1), text("third")), None, "its answer is in the state");
        assert_eq!(asks.settle(AskId(7), text("x")), None, "nobody asked");
    }

    #[test]
    fn an_answer_of_a_person_is_not_replaced() {
        let asks = Asks::default();
        let mut pending = asks.wait_for(AskId(1));
        assert!(asks.settle_open(AskId(1), text("remembered")));
        assert_eq!(pending.receiver.try_recv(), Ok(text("remembered")));
        assert!(!asks.settle_open(AskId(1), text("again")) && !asks.settle_open(AskId(2), text("x")));
        let mut pending = asks.wait_for(AskId(3));
        asks.settle(AskId(3), text("a person"));
        assert!(!asks.settle_open(AskId(3), text("remembered")));
        assert_eq!(pending.receiver.try_recv(), Ok(text("a person")));
    }

    #[test]
    fn a_turn_that_is_over_waits_for_no_answer() {
        let asks = Asks::default();
        let mut pending = asks.wait_for(AskId(1));
        asks.cancel_all();
        assert!(pending.receiver.try_recv().is_err());
        assert_eq!(asks.settle(AskId(1), text("late")), None);
    }
}
