//! Questions that wait for a person, of one session.
//!
//! Invariant: an ask is settled once; the first answer wins, unknown and settled ids are ignored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::{Answer, AskId};
use tokio::sync::oneshot;

#[derive(Default)]
pub struct Asks {
    waiting: Mutex<HashMap<AskId, oneshot::Sender<Answer>>>,
}

impl Asks {
    pub fn wait_for(&self, id: AskId) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        receiver
    }

    pub fn settle(&self, id: AskId, answer: Answer) {
        let sender = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }
}
