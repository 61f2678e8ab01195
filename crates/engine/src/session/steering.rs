//! Text that the user sends to the running turn.
//!
//! Invariant: text is accepted only while a turn will still read it, so that none is lost.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Steering(Mutex<Inbox>);

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
        inbox.open
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
