//! What a command prints, for people while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use domain::tool::ToolContext;

/// Bytes as they come, shown as whole characters.
pub(crate) struct OutputStream {
    context: Arc<dyn ToolContext>,
    rest: Mutex<Vec<u8>>,
}

impl OutputStream {
    pub(crate) fn new(context: Arc<dyn ToolContext>) -> Self {
        Self { context, rest: Mutex::default() }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&rest) {
            Ok(_) => rest.len(),
            // A character that is not there in whole yet waits for the rest of it.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => rest.len(),
        };
        let ready: Vec<u8> = rest.drain(..complete).collect();
        if !ready.is_empty() {
            self.context.output(&String::from_utf8_lossy(&ready));
        }
    }

    pub(crate) fn finish(&self) {
        let rest = std::mem::take(&mut *self.rest.lock().unwrap_or_else(PoisonError::into_inner));
        if !rest.is_empty() {
            self.context.output(&String::from_utf8_lossy(&rest));
        }
    }
}
