//! Text that the user sends to the running turn.
//!
//! Invariant: text is accepted only while a turn will still read it, so that none is lost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Default)]
pub struct Steering {
    inbox: Mutex<Inbox>,
    added: Notify,
}

#[derive(Default)]
struct Inbox {
    open: bool,
    text: Option<String>,
}

impl Steering {
    /// A turn begins that reads it.
    pub fn open(&self) {
        *self.lock() = Inbox { open: true, text: None };
    }

    pub fn close(&self) {
        *self.lock() = Inbox::default();
    }

    /// Adds to the text that was not read yet. False: no turn will read it.
    pub fn add(&self, text: String) -> bool {
        let mut inbox = self.lock();
        if inbox.open {
            inbox.text = Some(match inbox.text.take() {
                Some(before) => format!("{before}\n{text}"),
                None => text,
            });
        }
        self.added.notify_one();
        inbox.open
    }

    /// Waits until there may be text.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes back what was not read yet.
    pub fn withdraw(&self) {
        self.lock().text = None;
    }

    pub fn take(&self) -> Option<String> {
        self.lock().text.take()
    }

    /// What is left, for a turn that ends unless there is something. Later text is refused.
    pub fn take_or_close(&self) -> Option<String> {
        let mut inbox = self.lock();
        inbox.open = inbox.text.is_some();
        inbox.text.take()
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_only_while_a_turn_will_read_it() {
        let steering = Steering::default();
        assert!(!steering.add("too early".into()));
        steering.open();
        assert!(steering.add("one".into()) && steering.add("two".into()));
        assert_eq!(steering.take().as_deref(), Some("one\ntwo"));
        assert_eq!(steering.take(), None);
        assert!(steering.add("taken back".into()));
        steering.withdraw();
        assert!(steering.add("last".into()));
        assert_eq!(steering.take_or_close().as_deref(), Some("last"), "the turn goes on with it");
        assert!(steering.add("more".into()));
        assert_eq!(steering.take_or_close().as_deref(), Some("more"));
        assert_eq!(steering.take_or_close(), None, "now the turn ends");
        assert!(!steering.add("too late".into()));
        steering.open();
        assert_eq!(steering.take(), None, "nothing is left over for the next turn");
        steering.close();
        assert!(!steering.add("closed".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_waits_hears_of_new_text() {
        let steering = Steering::default();
        steering.open();
        assert!(steering.add("now".into()));
        let heard = tokio::time::timeout(std::time::Duration::from_secs(1), steering.added()).await;
        assert!(heard.is_ok());
    }
}
