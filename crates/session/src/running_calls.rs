//! The tool calls that run now, each with the token that stops it alone.
//!
//! Must not know what a call does. Invariant: a call is listed exactly while its guard lives.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{CancellationToken, Failure, ItemId};

#[derive(Default)]
pub struct RunningCalls(Mutex<HashMap<ItemId, CancellationToken>>);

/// Removes its call from the list when it is dropped.
pub struct RunningCall<'a> {
    calls: &'a RunningCalls,
    call: ItemId,
}

impl RunningCalls {
    /// Lists a call until the guard is dropped.
    #[must_use = "the call is listed while this lives"]
    pub fn begin(&self, call: ItemId, cancel: CancellationToken) -> RunningCall<'_> {
        self.lock().insert(call, cancel);
        RunningCall { calls: self, call }
    }

    /// Stops a call, or says that it does not run.
    pub fn stop(&self, call: ItemId) -> Result<(), Failure> {
        match self.lock().get(&call) {
            Some(cancel) => {
                cancel.cancel();
                Ok(())
            }
            None => Err(Failure::user(format!("The call {call} does not run, so it cannot be stopped."))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ItemId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_stopped_only_while_it_runs() {
        let calls = RunningCalls::default();
        let (one, two) = (CancellationToken::new(), CancellationToken::new());
        let first = calls.begin(ItemId(1), one.clone());
        let _second = calls.begin(ItemId(2), two.clone());
        calls.stop(ItemId(1)).unwrap();
        assert!(one.is_cancelled() && !two.is_cancelled());
        drop(first);
        assert!(calls.stop(ItemId(1)).unwrap_err().to_string().contains("does not run"));
        assert!(calls.stop(ItemId(3)).is_err());
    }
}
