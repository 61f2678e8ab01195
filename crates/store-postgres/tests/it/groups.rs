//! Many chats that append at once share transactions, and none takes part without its lease.

use std::sync::Arc;

use domain::store::ListFilter;
use domain::{FailureKind, Store};
use testkit::PostgresServer;
use testkit::sample::{chat, user_message};

use crate::{id, read_all, store_at};

const CHATS: usize = 48;
const APPENDS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_many_chats_share_transactions() {
    let Some(server) = PostgresServer::start() else { return };
    let store = Arc::new(store_at(&server.database("groups")));
    for number in 0..CHATS {
        chat(store.as_ref(), &format!("c{number}")).await;
    }
    // One of the chats has another owner by now.
    server.query("groups", "UPDATE dragoman.leases SET token = token + 1000000 WHERE session = 'c7'");
    let writers = (0..CHATS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let session = id(&format!("c{number}"));
            for turn in 0..APPENDS as u64 {
                let facts = vec![
                    user_message(2 * turn, &format!("first {number} {turn}")),
                    user_message(2 * turn + 1, "x\0y"),
                ];
                let told = store.append(&session, facts).await?;
                assert_eq!(told[0].number, 2 + 2 * turn);
            }
            Ok::<_, domain::Failure>(())
        })
    });
    for (number, writer) in writers.collect::<Vec<_>>().into_iter().enumerate() {
        let outcome = writer.await.unwrap();
        match number {
            7 => assert_eq!(outcome.unwrap_err().kind, FailureKind::Taken),
            _ => outcome.unwrap(),
        }
    }
    for number in 0..CHATS {
        let facts = read_all(store.as_ref(), &id(&format!("c{number}"))).await;
        let expected = if number == 7 { 1 } else { 1 + 2 * APPENDS };
        assert_eq!(facts.len(), expected, "c{number}");
        assert!(
            facts.windows(2).all(|pair| pair[0].number + 1 == pair[1].number && pair[0].at <= pair[1].at)
        );
        if number != 7 {
            let last = format!("{:?}", facts[2 * APPENDS - 1].fact);
            assert!(last.contains(&format!("first {number} {}", APPENDS - 1)), "{last}");
        }
    }
    let listed = store.list(ListFilter { limit: Some(100), ..ListFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), CHATS);
    let transactions: usize = server
        .query("groups", "SELECT count(DISTINCT xmin::text) FROM dragoman.facts WHERE number > 1")
        .parse()
        .unwrap();
    let appends = (CHATS - 1) * APPENDS;
    assert!(transactions * 2 < appends, "{transactions} transactions for {appends} appends");
    let found = server.query("groups", "SELECT count(*) FROM dragoman.search");
    assert_eq!(found.parse::<usize>().unwrap(), appends * 2, "every message can be searched");
}
