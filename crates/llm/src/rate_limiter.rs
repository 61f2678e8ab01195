//! Limits the calls of a process: how many run at once at a provider, and when the next may start.
//!
//! A rate limit applies to every call with the same key, so one refusal makes all calls wait; through
//! [`SharedResets`] the other processes of the machine too. Invariants: a permit is free again when its call ends or is
//! dropped, in whatever state; a call that waits here has announced it before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::BoxFuture;
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Milliseconds.
const SHARED_READ_INTERVAL_MS: i64 = 1000;

/// Where the processes of a machine tell each other when a provider may be asked again: milliseconds since 1970.
pub trait SharedResets: Send + Sync {
    fn get<'a>(&'a self, provider: &'a str) -> BoxFuture<'a, Option<i64>>;
    fn set<'a>(&'a self, provider: &'a str, until: i64) -> BoxFuture<'a, ()>;
}

/// One for a process, handed to every registry.
#[derive(Default)]
pub struct RateLimiter {
    permits: Mutex<HashMap<String, Arc<Semaphore>>>,
    resets: Mutex<HashMap<String, i64>>,
    /// When the other processes were last asked about a provider, in milliseconds since 1970.
    asked: Mutex<HashMap<String, i64>>,
    shared: Option<Arc<dyn SharedResets>>,
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateLimiter")
    }
}

impl RateLimiter {
    pub fn new(shared: Arc<dyn SharedResets>) -> Self {
        Self { shared: Some(shared), ..Self::default() }
    }

    /// The permits of a provider. The first caller sets their number.
    fn permits(&self, provider: &str, most: usize) -> Arc<Semaphore> {
        let mut permits = lock(&self.permits);
        permits.entry(provider.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most.max(1)))).clone()
    }

    /// A permit, if one is free.
    pub(crate) fn try_permit(&self, provider: &str, most: usize) -> Option<OwnedSemaphorePermit> {
        self.permits(provider, most).try_acquire_owned().ok()
    }

    /// Waits for a permit; first come, first served.
    pub(crate) async fn permit(&self, provider: &str, most: usize) -> Option<OwnedSemaphorePermit> {
        // Never closed.
        self.permits(provider, most).acquire_owned().await.ok()
    }

    /// How long the provider must not be asked.
    pub(crate) async fn wait(&self, provider: &str) -> Option<Duration> {
        let now = Timestamp::now().as_millisecond();
        if let Some(shared) = &self.shared
            && self.is_time_to_ask(provider, now)
            && let Some(until) = shared.get(provider).await
        {
            let mut resets = lock(&self.resets);
            let known = resets.entry(provider.to_owned()).or_insert(until);
            *known = until.max(*known);
        }
        let left = lock(&self.resets).get(provider).copied()? - now;
        u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_millis)
    }

    /// The rounds of one turn need not each ask the other processes.
    fn is_time_to_ask(&self, provider: &str, now: i64) -> bool {
        let mut asked = lock(&self.asked);
        match asked.get_mut(provider) {
            Some(last) if now - *last < SHARED_READ_INTERVAL_MS => false,
            Some(last) => {
                *last = now;
                true
            }
            None => asked.insert(provider.to_owned(), now).is_none(),
        }
    }

    /// The provider said when it may be asked again.
    pub(crate) async fn record_limit(&self, provider: &str, wait: Duration) {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2);
        let until = Timestamp::now().as_millisecond().saturating_add(wait);
        {
            let mut resets = lock(&self.resets);
            let known = resets.entry(provider.to_owned()).or_insert(until);
            *known = until.max(*known);
        }
        if let Some(shared) = &self.shared {
            shared.set(provider, until).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
