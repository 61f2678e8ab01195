//! What accounts may spend at this moment: sums of this process, and what calls that run may still cost.
//!
//! Must not know the store. Invariant: calls run beside each other only while the most that all of them can cost fits into
//! the budget, so it is exceeded by the cost of one call at most.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

#[derive(Default)]
pub(crate) struct Reservations {
    known: Mutex<HashMap<String, Balance>>,
    changed: Notify,
}

/// US dollars.
#[derive(Default)]
struct Balance {
    spent: f64,
    reserved: f64,
    calls: usize,
}

impl Reservations {
    /// Ends when a call has ended.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// What was spent: the stored sum, or more where it is not stored yet.
    pub(crate) fn spent(&self, name: &str, stored: f64) -> f64 {
        let mut known = self.known();
        let Some(balance) = known.get_mut(name) else {
            known.insert(name.to_owned(), Balance { spent: stored, ..Balance::default() });
            return stored;
        };
        balance.spent = balance.spent.max(stored);
        balance.spent
    }

    /// Reserves the amount in all of these balances. False: it does not fit beside the calls that run, and nothing is reserved.
    pub(crate) fn take(&self, budgets: &[(&str, Option<f64>)], amount: f64) -> bool {
        let mut known = self.known();
        let has_room = budgets.iter().all(|(name, budget)| match (known.get(*name), budget) {
            (Some(balance), Some(budget)) => {
                balance.calls == 0 && balance.spent < *budget
                    || balance.spent + balance.reserved + amount <= *budget
            }
            _ => true,
        });
        if has_room {
            for (name, _) in budgets {
                let balance = known.entry((*name).to_owned()).or_default();
                balance.reserved += amount;
                balance.calls += 1;
            }
        }
        has_room
    }

    pub(crate) fn give_back(&self, names: &[&str], amount: f64, cost: f64) {
        let mut known = self.known();
        for name in names {
            let Some(balance) = known.get_mut(*name) else { continue };
            balance.calls = balance.calls.saturating_sub(1);
            // No rounding is left over where nothing runs.
            balance.reserved = if balance.calls == 0 { 0.0 } else { balance.reserved - amount };
            balance.spent += cost;
        }
        drop(known);
        self.changed.notify_waiters();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Balance>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
