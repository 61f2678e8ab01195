//! The promotion of a synchronous replica: what was acknowledged before the first server died is on the second one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{Recorded, Store};
use testkit::PostgresServer;

use crate::proxy::Proxy;
use crate::{id, read_all, scaled, store_at};
use testkit::sample::{chat, user_message};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_synchronous_replica_has_everything_acknowledged() {
    for round in 0..scaled(20) {
        let Some(mut first) = PostgresServer::start() else { return };
        first.database("moved");
        let second = first.replicate();
        let proxy = Proxy::start(first.socket()).await;
        let store = Arc::new(store_at(&proxy.address("moved")));
        chat(store.as_ref(), "a").await;
        let is_done = Arc::new(AtomicBool::new(false));
        let writing = {
            let (store, is_done) = (store.clone(), is_done.clone());
            tokio::spawn(async move {
                let mut told: Vec<Recorded> = Vec::new();
                while !is_done.load(Ordering::Relaxed) {
                    let fact = user_message(told.len() as u64, &format!("message {}", told.len()));
                    told.extend(store.append(&id("a"), vec![fact]).await.expect("an append waits"));
                }
                told
            })
        };
        tokio::time::sleep(Duration::from_millis(300 + 37 * round as u64)).await;
        tokio::task::block_in_place(|| {
            first.kill();
            second.promote();
        });
        proxy.lead_to(second.socket());
        // The writer goes on where the first server stopped.
        tokio::time::sleep(Duration::from_secs(3)).await;
        is_done.store(true, Ordering::Relaxed);
        let told = writing.await.unwrap();
        let stored = read_all(store.as_ref(), &id("a")).await;
        assert_eq!(stored[1..], told[..], "round {round}");
    }
    println!(
        "figure: {} promotions of a synchronous PostgreSQL replica, 0 acknowledged facts lost",
        scaled(20)
    );
}
