//! Facts are numbered, kept in order, committed together and read in pages.

use std::sync::Arc;
use std::time::Duration;

use domain::event::Channel;
use domain::{Fact, ItemId, Recorded, Store};

use crate::{id, journal, read_all, sqlite};
use testkit::sample::{agent_message, chat, opened, user_message};

#[tokio::test]
async fn facts_are_numbered_from_one_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let facts =
        vec![opened("t", &["/w"]), user_message(1, "hello"), agent_message(2, "hi \"there\" \u{1f980}\n")];
    let session = id("chat/with ../ odd\u{0} name");

    let first = journal(directory.path());
    first.lease(&session).await.unwrap();
    let mut told = first.append(&session, facts[..2].to_vec()).await.unwrap();
    told.extend(first.append(&session, facts[2..].to_vec()).await.unwrap());
    assert!(first.append(&session, Vec::new()).await.unwrap().is_empty());
    assert_eq!(told.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(told.iter().map(|one| one.fact.clone()).collect::<Vec<_>>(), facts);
    assert_eq!(read_all(&first, &session).await, told);
    drop(first);

    let second = journal(directory.path());
    assert_eq!(read_all(&second, &session).await, told);
    assert_eq!(second.newest(&session).await.unwrap(), Some(3));
    assert_eq!(second.newest(&id("unknown")).await.unwrap(), None);
    assert!(second.read(&id("unknown"), 0, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_page_ends_at_its_limit_or_after_a_mebibyte() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let session = id("big");
    chat(&journal, "big").await;
    let large = "x".repeat(400_000);
    for number in 0..6 {
        journal.append(&session, vec![agent_message(number, &large)]).await.unwrap();
    }
    let numbers = |page: Vec<Recorded>| page.iter().map(|one| one.number).collect::<Vec<_>>();
    assert_eq!(numbers(journal.read(&session, 0, 2).await.unwrap()), [1, 2]);
    assert_eq!(numbers(journal.read(&session, 1, 100).await.unwrap()), [2, 3, 4]);
    assert_eq!(numbers(journal.read(&session, 6, usize::MAX).await.unwrap()), [7]);
    assert_eq!(numbers(journal.read(&session, 7, 100).await.unwrap()), [0_u64; 0]);
    assert_eq!(numbers(journal.read(&session, u64::MAX, 100).await.unwrap()), [0_u64; 0]);

    // A fact larger than a page is a page.
    journal.append(&session, vec![agent_message(9, &"y".repeat(3 << 20))]).await.unwrap();
    assert_eq!(numbers(journal.read(&session, 7, 100).await.unwrap()), [8]);
}

#[tokio::test]
async fn only_a_held_and_opened_chat_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let refused = journal.append(&id("a"), vec![opened("a", &[])]).await.unwrap_err();
    assert!(refused.message.contains("without its lease"), "{refused}");

    journal.lease(&id("a")).await.unwrap();
    let refused = journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(refused.message.contains("no chat a"), "{refused}");
    assert_eq!(journal.newest(&id("a")).await.unwrap(), None);

    journal.append(&id("a"), vec![opened("a", &[])]).await.unwrap();
    journal.release(&id("a")).await.unwrap();
    let refused = journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(refused.message.contains("without its lease"), "{refused}");
    assert_eq!(journal.newest(&id("a")).await.unwrap(), Some(1));
}

#[tokio::test]
async fn time_never_goes_back_and_no_number_is_given_twice() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    let behind = sqlite(directory.path());
    let future = 9_000_000_000_000_u64;
    let record = Recorded { number: 2, at: future, fact: user_message(1, "of a clock that was wrong") };
    journal.adopt(&id("a"), vec![record]).await.unwrap();
    let told = journal.append(&id("a"), vec![user_message(1, "now")]).await.unwrap();
    assert_eq!(told[0].at, future);

    let again = behind
        .execute("INSERT INTO facts (place, at, kind, body) SELECT place, 1, 'notice', '' FROM facts", []);
    let error = again.unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::ConstraintViolation), "{error}");
    let pairs: i64 = behind
        .query_row(
            "SELECT count(*) FROM facts JOIN sessions ON key = session WHERE number IN (1, 2)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(pairs, 2);
}

/// Commits in the write-ahead log: frames that carry the database's size.
fn commits(directory: &std::path::Path) -> usize {
    const FRAME: usize = 24 + 4096;
    let log = std::fs::read(directory.join("chats.sqlite-wal")).unwrap();
    log[32..].chunks(FRAME).filter(|frame| frame[4..8] != [0; 4]).count()
}

fn grew(text: &str) -> Fact {
    Fact::ItemGrew { item: ItemId(1), channel: Channel::Text, offset: 0, text: text.to_owned() }
}

#[tokio::test]
async fn appends_that_wait_together_share_a_commit_and_reads_do_not_wait() {
    const CHATS: usize = 100;
    let directory = tempfile::tempdir().unwrap();
    let journal = Arc::new(journal(directory.path()));
    for number in 0..CHATS {
        chat(journal.as_ref(), &format!("chat-{number}")).await;
    }
    journal.lease(&id("never opened")).await.unwrap();
    let before = commits(directory.path());

    let behind = sqlite(directory.path());
    behind.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = |name: String| {
        let journal = journal.clone();
        tokio::spawn(async move {
            // Facts that the search does not index: commits of the index would be counted.
            journal.append(&id(&name), vec![grew(&name), grew("yes")]).await
        })
    };
    let refused = [append("never opened".to_owned()), append("never held".to_owned())];
    let waiting: Vec<_> = (0..CHATS).map(|number| append(format!("chat-{number}"))).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(waiting.iter().all(|one| !one.is_finished()));
    // The write lock is still held.
    let page = tokio::time::timeout(Duration::from_secs(2), journal.read(&id("chat-7"), 0, 10)).await;
    assert_eq!(page.unwrap().unwrap().len(), 1);
    behind.execute_batch("ROLLBACK").unwrap();

    for one in waiting {
        let told = one.await.unwrap().unwrap();
        assert_eq!(told.iter().map(|one| one.number).collect::<Vec<_>>(), [2, 3]);
    }
    for one in refused {
        one.await.unwrap().unwrap_err();
    }
    for number in 0..CHATS {
        let name = format!("chat-{number}");
        let stored = read_all(&journal, &id(&name)).await;
        assert_eq!(stored[1].fact, grew(&name));
        assert_eq!(stored.len(), 3);
    }
    let shared = commits(directory.path()) - before;
    assert!((1..=4).contains(&shared), "{CHATS} appends took {shared} commits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_chats_write_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Arc::new(journal(directory.path()));
    let chats: Vec<_> = (0..20)
        .map(|number| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let name = format!("chat-{number}");
                chat(journal.as_ref(), &name).await;
                for turn in 0..20 {
                    let told = journal.append(&id(&name), vec![user_message(turn, &name)]).await.unwrap();
                    assert_eq!(told[0].number, turn + 2);
                }
                let stored = read_all(&journal, &id(&name)).await;
                assert!(stored.iter().zip(1..).all(|(one, number)| one.number == number));
                assert!(stored.iter().skip(1).all(|one| matches!(&one.fact, Fact::ItemEnded { .. })));
                assert_eq!(stored.len(), 21);
            })
        })
        .collect();
    for chat in chats {
        chat.await.unwrap();
    }
}
