//! Text that the user sends to the running turn.
//!
//! Invariant: text is accepted only while a turn will still read it, so that none is lost.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Steering {
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
    pub(crate) fn open(&self) {
        *self.lock() = Inbox { open: true, text: None };
    }

    pub(crate) fn close(&self) {
        *self.lock() = Inbox::default();
    }

    /// Adds to the text that was not read yet. False: no turn will read it.
    pub(crate) fn add(&self, text: String) -> bool {
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
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes back what was not read yet.
    pub(crate) fn withdraw(&self) {
        self.lock().text = None;
    }

    pub(crate) fn take(&self) -> Option<String> {
        self.lock().text.take()
    }

    /// What is left, for a turn that ends unless there is something. Later text is refused.
    pub(crate) fn take_or_close(&self) -> Option<String> {
        let mut inbox = self.lock();
        inbox.open = inbox.text.is_some();
        inbox.text.take()
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
