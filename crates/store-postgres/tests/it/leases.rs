//! Leases of processes that die, fall silent or come back: one writer at a time, and no fact of an older one.

use std::time::{Duration, Instant};

use domain::store::Lease;
use domain::{FailureKind, Store};
use testkit::PostgresServer;

use crate::proxy::Proxy;
use crate::{id, read_all, store_at, timing};
use testkit::sample::{chat, user_message};

/// A holder that the database no longer hears says so before its lease ends, another takes over after the end, and what
/// the first one appends later is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_holder_is_fenced_and_knows_in_time() {
    let Some(server) = PostgresServer::start() else { return };
    let direct = server.database("fenced");
    let proxy = Proxy::start(server.socket()).await;
    let (first, second) = (store_at(&proxy.address("fenced")), store_at(&direct));
    chat(&first, "a").await;
    assert!(matches!(second.lease(&id("a")).await.unwrap(), Lease::HeldBy { .. }));
    let session = id("a");
    let at_risk = first.lease_at_risk(&session);
    assert!(tokio::time::timeout(timing().lease, at_risk).await.is_err(), "it is renewed");

    proxy.set_silent(true);
    first.lease_at_risk(&id("a")).await;
    let Lease::HeldBy { .. } = second.lease(&id("a")).await.unwrap() else {
        panic!("the holder was told after its lease had ended")
    };
    let started = Instant::now();
    while second.lease(&id("a")).await.unwrap() != Lease::Held {
        assert!(started.elapsed() < timing().lease * 3, "the lease does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    second.append(&id("a"), vec![user_message(1, "second")]).await.unwrap();

    // The first one comes back and is refused, also where it had begun before.
    proxy.set_silent(false);
    let late = first.append(&id("a"), vec![user_message(1, "late")]).await.unwrap_err();
    assert!(late.kind == FailureKind::Taken || late.message.contains("without its lease"), "{late}");
    assert!(matches!(first.lease(&id("a")).await.unwrap(), Lease::HeldBy { .. }));
    assert_eq!(read_all(&second, &id("a")).await.len(), 2);
    second.release(&id("a")).await.unwrap();
    assert_eq!(first.lease(&id("a")).await.unwrap(), Lease::Held);
    let told = first.append(&id("a"), vec![user_message(2, "again")]).await.unwrap();
    assert_eq!(told[0].number, 3);
    let tokens = server.query("fenced", "SELECT token FROM dragoman.leases WHERE session = 'a'");
    assert!(tokens.parse::<u64>().unwrap() >= 3, "tokens count up: {tokens}");
}

/// The database judges the end of a lease by its own clock, and a process on this machine that is dead is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_process_of_this_machine_is_not_waited_for() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.database("dead");
    let (first, second) = (store_at(&address), store_at(&address));
    chat(&first, "a").await;
    chat(&first, "b").await;
    assert!(matches!(second.lease(&id("a")).await.unwrap(), Lease::HeldBy { .. }));
    // No process has this number.
    server.query("dead", "UPDATE dragoman.leases SET process = 2000000000 WHERE session = 'a'");
    assert_eq!(second.lease(&id("a")).await.unwrap(), Lease::Held);
    let refused = first.append(&id("a"), vec![user_message(1, "late")]).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Taken, "{refused}");
    // The same number on another machine says nothing.
    server.query(
        "dead",
        "UPDATE dragoman.leases SET process = 2000000000, machine = 'other' WHERE session = 'b'",
    );
    assert!(matches!(second.lease(&id("b")).await.unwrap(), Lease::HeldBy { .. }));
    server.query("dead", "UPDATE dragoman.leases SET ends = clock_timestamp() - interval '1 second'");
    assert_eq!(second.lease(&id("b")).await.unwrap(), Lease::Held);
}

/// A reader of another process is woken by an append, and the writer notifies only while a reader wants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_wakes_a_reader() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.database("woken");
    let (writer, reader) = (store_at(&address), store_at(&address));
    chat(&writer, "a").await;
    let session = id("a");
    for round in 0..3 {
        let changed = reader.changed(&session);
        let append = async {
            // The reader needs a moment to listen the first time.
            for number in 0..100 {
                writer.append(&id("a"), vec![user_message(number, "text")]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = changed => {}
            () = append => panic!("round {round}: the reader was not woken"),
        }
    }
    assert_eq!(server.query("woken", "SELECT followed IS NOT NULL FROM dragoman.leases"), "t");
}
