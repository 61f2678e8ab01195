//! How many requests a token and an address may send, and how long a failed login slows an address down.
//!
//! Must not know requests. Invariant: memory is bounded, whatever addresses come.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Requests that may come at once, and per second after that.
const BURST: f64 = 120.0;
const PER_SECOND: f64 = 20.0;
/// An address has room for several people behind it.
const ADDRESS_FACTOR: f64 = 3.0;
/// Addresses and tokens that are remembered.
const MOST: usize = 10_000;
/// The wait after the first failed login of an address; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Refused logins that are logged at once, and per second after that, of all addresses together.
const LOGGED_AT_ONCE: f64 = 100.0;
const LOGGED_PER_SECOND: f64 = 0.1;
/// Failed logins without a wait: people mistype.
const FREE_FAILURES: u32 = 3;

#[derive(Default)]
pub(crate) struct Limits {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    addresses: HashMap<IpAddr, Bucket>,
    tokens: HashMap<String, Bucket>,
    failures: HashMap<IpAddr, Failures>,
    /// Refused logins of all addresses together that were logged, and the number of those that were not.
    logged: Option<Bucket>,
    unlogged: u64,
}

struct Bucket {
    used: f64,
    at: Instant,
}

struct Failures {
    count: u32,
    until: Instant,
}

impl Limits {
    /// Counts a request of an address; the wait where it is too many.
    pub(crate) fn request(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        use_one(&mut self.state().addresses, address, ADDRESS_FACTOR, now)
    }

    /// Counts a request of an account.
    pub(crate) fn account(&self, name: &str, now: Instant) -> Result<(), Duration> {
        use_one(&mut self.state().tokens, name.to_owned(), 1.0, now)
    }

    /// The wait before an address may show a token again.
    pub(crate) fn check_login(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        match self.state().failures.get(&address) {
            Some(failures) if failures.until > now => Err(failures.until - now),
            _ => Ok(()),
        }
    }

    pub(crate) fn failed(&self, address: IpAddr, now: Instant) {
        let mut state = self.state();
        make_room(&mut state.failures, |failures| failures.until + LONGEST_WAIT < now);
        let failures = state.failures.entry(address).or_insert(Failures { count: 0, until: now });
        failures.count = failures.count.saturating_add(1);
        let doublings = failures.count.saturating_sub(FREE_FAILURES + 1).min(16);
        if failures.count > FREE_FAILURES {
            failures.until = now + LONGEST_WAIT.min(FIRST_WAIT * (1 << doublings));
        }
    }

    /// Whether a refused login is logged, with the number of those before it that were not: many networks together must
    /// not fill the log either.
    pub(crate) fn may_log_refusal(&self, now: Instant) -> Option<u64> {
        let mut state = self.state();
        let bucket = state.logged.get_or_insert(Bucket { used: 0.0, at: now });
        bucket.used =
            (bucket.used - LOGGED_PER_SECOND * now.duration_since(bucket.at).as_secs_f64()).max(0.0);
        bucket.at = now;
        if bucket.used + 1.0 > LOGGED_AT_ONCE {
            state.unlogged += 1;
            return None;
        }
        bucket.used += 1.0;
        Some(std::mem::take(&mut state.unlogged))
    }

    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.state().failures.remove(&address);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A bucket that empties by the second.
fn use_one<K: Hash + Eq>(
    buckets: &mut HashMap<K, Bucket>,
    key: K,
    factor: f64,
    now: Instant,
) -> Result<(), Duration> {
    let (burst, rate) = (BURST * factor, PER_SECOND * factor);
    make_room(buckets, |bucket| bucket.used <= rate * now.duration_since(bucket.at).as_secs_f64());
    let bucket = buckets.entry(key).or_insert(Bucket { used: 0.0, at: now });
    bucket.used = (bucket.used - rate * now.duration_since(bucket.at).as_secs_f64()).max(0.0);
    bucket.at = now;
    if bucket.used + 1.0 > burst {
        return Err(Duration::from_secs(1));
    }
    bucket.used += 1.0;
    Ok(())
}

/// Forgets entries that are too old to count; where that is not enough, all of them.
fn make_room<K, V>(known: &mut HashMap<K, V>, mut is_old: impl FnMut(&V) -> bool) {
    if known.len() < MOST {
        return;
    }
    known.retain(|_, value| !is_old(value));
    if known.len() >= MOST {
        known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_logins_wait_longer_and_longer_and_addresses_do_not_share() {
        let (limits, start) = (Limits::default(), Instant::now());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut waits = Vec::new();
        for _ in 0..20 {
            limits.failed(one, start);
            waits.push(limits.check_login(one, start).err().unwrap_or_default());
        }
        assert_eq!(waits[..5], [0, 0, 0, 500, 1_000].map(Duration::from_millis));
        assert_eq!(waits[19], LONGEST_WAIT);
        assert!(limits.check_login(other, start).is_ok());
        limits.succeeded(one);
        assert!(limits.check_login(one, start).is_ok());
    }

    #[test]
    fn many_addresses_do_not_fill_the_log() {
        let (limits, start) = (Limits::default(), Instant::now());
        let logged = (0..10_000).filter(|_| limits.may_log_refusal(start).is_some()).count();
        assert_eq!(logged, 100);
        assert_eq!(limits.may_log_refusal(start + Duration::from_secs(11)), Some(9_900));
        assert_eq!(limits.may_log_refusal(start + Duration::from_secs(22)), Some(0));
    }

    #[test]
    fn too_many_requests_wait_until_the_bucket_has_room() {
        let (limits, start) = (Limits::default(), Instant::now());
        let taken = (0..1_000).filter(|_| limits.account("a", start).is_ok()).count();
        assert_eq!(taken, 120);
        assert!(limits.account("b", start).is_ok());
        assert!(limits.account("a", start + Duration::from_secs(1)).is_ok());
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!((0..1_000).filter(|_| limits.request(address, start).is_ok()).count(), 360);
    }
}
