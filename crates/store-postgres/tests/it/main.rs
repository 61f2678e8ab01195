//! The PostgreSQL store on a real server, beside the SQLite store where both must do the same.

#![cfg(target_os = "linux")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::print_stdout, reason = "`make figures` collects the lines that begin with `figure:`")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests read their scale from the environment")]

mod conformance;
mod damage;
mod faults;
mod groups;
mod leases;
mod proxy;
mod replica;
mod tasks;
mod tls;

use std::time::Duration;

use domain::{Recorded, SessionId, Store};
use store_postgres::{Address, PostgresStore, Timing};

fn id(text: &str) -> SessionId {
    SessionId::new(text)
}

/// Short times, so that a test need not wait long for a timeout.
fn timing() -> Timing {
    Timing {
        lease: Duration::from_secs(6),
        write_timeout: Duration::from_secs(120),
        read_timeout: Duration::from_secs(60),
        attempt: Duration::from_secs(3),
    }
}

fn store_at(address: &str) -> PostgresStore {
    PostgresStore::with_timing(Address::parse(address, None).unwrap(), timing())
}

async fn read_all(store: &dyn Store, session: &SessionId) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::new();
    loop {
        let page = store.read(session, all.len() as u64, 1000).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Randomized tests run a tenth of their full count at scale 1.
fn scaled(full: usize) -> usize {
    let scale: usize = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    (full * scale.min(10) / 10).max(1)
}
