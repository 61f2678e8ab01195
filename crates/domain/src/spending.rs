//! The right to spend: asked for before each call to a model, given back with what the call cost.
//!
//! Must not know accounts or models. Invariant: a reservation is given back once, whatever becomes of its call.

use std::fmt;
use std::sync::Arc;

use crate::BoxFuture;
use crate::failure::Failure;

/// Pays for calls, up to a limit.
pub trait Payer: Send + Sync {
    /// Waits until a call that costs at most `most` US dollars fits; `None` where the model has no price. Fails where
    /// nothing is left.
    fn reserve(&self, most: Option<f64>) -> BoxFuture<'_, Result<Reservation, Failure>>;
}

/// The payer of a turn or a call. By default nobody counts. Cheap to clone.
#[derive(Clone, Default)]
pub struct Gate(Option<Arc<dyn Payer>>);

impl Gate {
    pub fn new(payer: Arc<dyn Payer>) -> Self {
        Self(Some(payer))
    }

    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    pub async fn reserve(&self, most: Option<f64>) -> Result<Reservation, Failure> {
        match &self.0 {
            Some(payer) => payer.reserve(most).await,
            None => Ok(Reservation::default()),
        }
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_default() { "Gate(none)" } else { "Gate" })
    }
}

type Settle = Box<dyn FnOnce(f64) + Send + Sync>;

/// The right to one call. Dropping it gives it back without a cost.
#[derive(Default)]
pub struct Reservation(Option<Settle>);

impl Reservation {
    pub fn new(settle: impl FnOnce(f64) + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(settle)))
    }

    /// Gives it back with what the call cost, in US dollars.
    pub fn settle(mut self, cost: Option<f64>) {
        self.give_back(cost.unwrap_or(0.0));
    }

    fn give_back(&mut self, cost: f64) {
        if let Some(settle) = self.0.take() {
            settle(cost);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(0.0);
    }
}
