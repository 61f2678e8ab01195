//! What accounts may spend at this moment: sums of this process, and what calls that run may still cost.
//!
//! Must not know the store. Invariant: calls run beside each other only while the most that all of them can cost fits into
//! the budget, so it is exceeded by the cost of one call at most.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Default)]
pub(crate) struct Purses {
    known: Mutex<HashMap<String, Purse>>,
    changed: Notify,
}

/// US dollars.
#[derive(Default)]
struct Purse {
    spent: f64,
    reserved: f64,
    calls: usize,
}

impl Purses {
    /// Ends when a call has ended.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// What was spent: the stored sum, or more where it is not stored yet.
    pub(crate) fn spent(&self, name: &str, stored: f64) -> f64 {
        let mut known = self.known();
        let Some(purse) = known.get_mut(name) else {
            known.insert(name.to_owned(), Purse { spent: stored, ..Purse::default() });
            return stored;
        };
        purse.spent = purse.spent.max(stored);
        purse.spent
    }

    /// Reserves the amount in all of these purses, or in none of them: then it does not fit beside the calls that run.
    pub(crate) fn take(&self, budgets: &[(&str, Option<f64>)], amount: f64) -> bool {
        let mut known = self.known();
        let has_room = budgets.iter().all(|(name, budget)| match (known.get(*name), budget) {
            (Some(purse), Some(budget)) => {
                purse.calls == 0 && purse.spent < *budget || purse.spent + purse.reserved + amount <= *budget
            }
            _ => true,
        });
        if has_room {
            for (name, _) in budgets {
                let purse = known.entry((*name).to_owned()).or_default();
                purse.reserved += amount;
                purse.calls += 1;
            }
        }
        has_room
    }

    pub(crate) fn give_back(&self, names: &[&str], amount: f64, cost: f64) {
        let mut known = self.known();
        for name in names {
            let Some(purse) = known.get_mut(*name) else { continue };
            purse.calls = purse.calls.saturating_sub(1);
            // No rounding is left over where nothing runs.
            purse.reserved = if purse.calls == 0 { 0.0 } else { purse.reserved - amount };
            purse.spent += cost;
        }
        drop(known);
        self.changed.notify_waiters();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Purse>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
