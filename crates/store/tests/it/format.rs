//! Files of other builds, of other programs, and broken ones.

use std::fs;
use std::path::Path;

use domain::store::ListFilter;
use domain::{Fact, FailureKind, ItemKind, Recorded, Store};

use crate::{id, journal, memory_folder, read_all, sqlite};
use testkit::sample::{chat, opened, user_message};

const RECORDS: [(&str, &str, &str); 2] = [("trust", "/home/ada", "yes"), ("spent", "2026-01-01", "1.25")];

/// The facts of the chat in the fixture, as they were first written.
fn fixture_facts() -> Vec<Fact> {
    let lines: Vec<serde_json::Value> = serde_json::from_str(include_str!("../fixtures/v1.json")).unwrap();
    lines.iter().map(|line| decode(&line.to_string())).collect()
}

fn decode(body: &str) -> Fact {
    store::import_line(&format!("{{\"number\":1,\"at\":2,\"fact\":{body}}}")).unwrap().fact
}

fn encode(fact: Fact) -> String {
    let line = store::export_line(&Recorded { number: 1, at: 2, fact }).unwrap();
    line.strip_prefix("{\"number\":1,\"at\":2,\"fact\":").unwrap().strip_suffix('}').unwrap().to_owned()
}

/// The bytes of every kind of record, with and without each optional member, as the first build wrote them. A change
/// here is a new version of the format.
#[test]
fn records_keep_their_bytes() {
    for body in include_str!("../fixtures/records-v1.jsonl").lines() {
        assert_eq!(encode(decode(body)), body);
    }
}

/// Kinds of facts and items that only older versions wrote.
#[test]
fn old_words_still_open() {
    let item = |kind: &str| {
        let body = format!("{{\"fact\":\"itemEnded\",\"item\":{{\"id\":9,\"turn\":3,\"kind\":{kind}}}}}");
        let Fact::ItemEnded { item } = decode(&body) else { panic!("{body}") };
        let ItemKind::SystemText { text } = item.kind else { panic!("{:?}", item.kind) };
        assert_eq!((item.id.0, item.turn.0), (9, 3));
        text
    };
    assert_eq!(item(r#"{"type":"flag","text":"remember"}"#), "remember");
    assert_eq!(item(r#"{"type":"subagent","session":"chat-2","name":"explorer"}"#), "Subagent: explorer");
    assert_eq!(
        item(r#"{"type":"hook","name":"lint","kind":"preTool","status":0,"output":"fine"}"#),
        "Hook lint: fine"
    );
    let plan = r#"{"type":"plan","entries":[{"text":"Buy milk","status":"inProgress"},{"text":"Pay","status":"done"}]}"#;
    assert_eq!(item(plan), "[.] Buy milk\n[x] Pay");
    assert_eq!(decode(r#"{"fact":"sessionClosed"}"#), Fact::SessionChanged { change: Default::default() });
}

/// Every released format stays readable: a later one gets a fixture of its own and these stay as they are.
#[tokio::test]
async fn files_of_every_format_open() {
    for fixture in ["v1.sqlite", "v2.sqlite", "v3.sqlite", "v4.sqlite"] {
        check_opens(fixture).await;
    }
}

async fn check_opens(fixture: &str) {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    fs::copy(fixture, directory.path().join("chats.sqlite")).unwrap();
    assert_eq!(store::check_file(directory.path()).unwrap(), Some(Vec::new()));
    let journal = journal(directory.path());
    let session = id("chat-1");

    let stored = read_all(&journal, &session).await;
    assert_eq!(stored.iter().map(|one| one.fact.clone()).collect::<Vec<_>>(), fixture_facts());
    assert!(stored.iter().zip(1..).all(|(one, number)| one.number == number && one.at > 1_700_000_000_000));
    let found = journal.list(ListFilter::default()).await.unwrap();
    assert_eq!(found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["chat-2", "chat-1"]);
    assert_eq!(found[1].title.as_deref(), Some("Milk in the notes"));
    assert_eq!(found[1].model.as_deref(), Some("openai/two"));
    assert_eq!(found[1].parent, Some(id("chat-0")));
    assert_eq!((found[1].message_count, found[1].newest), (2, stored.len() as u64));
    for (kind, key, value) in RECORDS {
        assert_eq!(journal.get(kind, key).await.unwrap().as_deref(), Some(value));
    }

    let query = domain::store::SearchQuery { text: "milk".to_owned(), ..Default::default() };
    assert_eq!(journal.search(query).await.unwrap()[0].chat.id, session);

    journal.lease(&session).await.unwrap();
    let told = journal.append(&session, vec![user_message(99, "and on it goes")]).await.unwrap();
    assert_eq!(told[0].number, stored.len() as u64 + 1);
    assert!(journal.delete(&session).await.unwrap());
    assert_eq!(journal.list(ListFilter::default()).await.unwrap().len(), 1);
}

/// Made the fixture; to be run again, with a new name, for the next format only.
#[tokio::test]
#[ignore = "writes the fixture of a new format"]
async fn make_fixture() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    journal.lease(&id("chat-1")).await.unwrap();
    journal.append(&id("chat-1"), fixture_facts()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    chat(&journal, "chat-2").await;
    for (kind, key, value) in RECORDS {
        journal.put(kind, key, value.to_owned()).await.unwrap();
    }
    drop(journal);
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/new.sqlite");
    fs::copy(directory.path().join("chats.sqlite"), made).unwrap();
}

/// What is in the folder, what reading and writing then say, and that the file stays as it was.
async fn check_refused(prepare: impl FnOnce(&Path), expected: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("chats.sqlite");
    prepare(&file);
    let before = fs::read(&file).unwrap();
    let journal = journal(directory.path());
    let read = journal.list(ListFilter::default()).await.unwrap_err();
    journal.lease(&id("a")).await.unwrap();
    let write = journal.append(&id("a"), vec![testkit::sample::opened("a", &[])]).await.unwrap_err();
    let delete = journal.delete(&id("a")).await.unwrap_err();
    for failure in [read, write, delete] {
        assert_eq!(failure.kind, FailureKind::Config, "{failure}");
        for part in expected.iter().chain([&&*file.to_string_lossy()]) {
            assert!(failure.to_string().contains(part), "{failure} lacks {part}");
        }
    }
    drop(journal);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn a_newer_format_is_refused_untouched() {
    let newer = |file: &Path| {
        let connection = rusqlite::Connection::open(file).unwrap();
        let sql = format!(
            "CREATE TABLE future (x); PRAGMA application_id = {}; PRAGMA user_version = 7",
            0x4472_676d
        );
        connection.execute_batch(&sql).unwrap();
    };
    check_refused(newer, &["newer Dragoman", "format 7", "Update Dragoman"]).await;
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_untouched() {
    let foreign = |file: &Path| {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.execute_batch("CREATE TABLE bookmarks (x)").unwrap();
    };
    check_refused(foreign, &["another program", "Move it away"]).await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_untouched() {
    let text = |file: &Path| fs::write(file, "not a database at all\n".repeat(1000)).unwrap();
    check_refused(text, &["damaged", "Nothing was deleted", "move it away"]).await;
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_other_chats_are_still_there() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("chats.sqlite");
    let first = journal(directory.path());
    for name in ["whole", "broken"] {
        chat(&first, name).await;
        let facts = (0..200).map(|number| user_message(number, &"text ".repeat(100))).collect();
        first.append(&id(name), facts).await.unwrap();
    }
    drop(first);
    let mut bytes = fs::read(&file).unwrap();
    let pages = bytes.len() / 4096;
    bytes[(pages - 3) * 4096..(pages - 2) * 4096].fill(0xa5);
    fs::write(&file, &bytes).unwrap();

    let second = journal(directory.path());
    assert_eq!(second.list(ListFilter::default()).await.unwrap().len(), 2);
    assert_eq!(read_all(&second, &id("whole")).await.len(), 201);
    let mut after = 0;
    let failure = loop {
        match second.read(&id("broken"), after, 50).await {
            Ok(page) => after = page.last().expect("the broken page was not noticed").number,
            Err(failure) => break failure,
        }
    };
    assert!(failure.message.contains("damaged") && failure.kind == FailureKind::Config, "{failure}");
    drop(second);
    assert_eq!(fs::read(&file).unwrap().len(), bytes.len());
}

#[tokio::test]
async fn a_fact_of_a_later_build_is_named_without_its_text() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap();
    let (kind, body) = ("secretThing", r#"{"fact":"secretThing"}"#);
    let connection = sqlite(directory.path());
    let row = "SELECT place, at FROM facts WHERE number = 2";
    let (place, at): (i64, u64) =
        connection.query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let sum = store::shared::checksum_of_fact(&place.to_le_bytes(), at, kind, body);
    let later = "UPDATE facts SET kind = ?1, body = ?2, sum = ?3 WHERE place = ?4";
    connection.execute(later, (kind, body, sum, place)).unwrap();
    assert_eq!(journal.read(&id("a"), 0, 1).await.unwrap().len(), 1);
    let failure = journal.read(&id("a"), 1, 1).await.unwrap_err();
    assert!(failure.message.contains("Fact 2") && !failure.to_string().contains("secretThing"), "{failure}");
}

#[tokio::test]
async fn an_append_that_fails_half_way_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap();
    sqlite(directory.path()).execute_batch("UPDATE facts SET body = 'broken' WHERE number = 2").unwrap();
    // The messages cannot be counted anew after the facts were written.
    let rollback = vec![user_message(2, "more"), Fact::HistoryReplaced { keep: None }];
    let failure = journal.append(&id("a"), rollback).await.unwrap_err();
    assert!(failure.message.contains("Fact 2"), "{failure}");
    assert!(journal.read(&id("a"), 2, 10).await.unwrap().is_empty());
    let told = journal.append(&id("a"), vec![user_message(2, "more")]).await.unwrap();
    assert_eq!(told[0].number, 3);
    assert_eq!(journal.read(&id("a"), 2, 10).await.unwrap(), told);
}

/// A newer build may migrate the file while an older one runs.
#[tokio::test]
async fn nothing_is_written_after_a_newer_build_took_over() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    sqlite(directory.path()).execute_batch("PRAGMA user_version = 9").unwrap();
    let failure = journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(failure.to_string().contains("newer Dragoman"), "{failure}");
}

#[tokio::test]
async fn a_removed_file_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "a").await;
    assert_eq!(journal.newest(&id("a")).await.unwrap(), Some(1));
    for file in ["chats.sqlite", "chats.sqlite-wal", "chats.sqlite-shm"] {
        fs::remove_file(directory.path().join(file)).unwrap();
    }
    let failure = journal.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(failure.message.contains("no chat a"), "{failure}");
    assert_eq!(journal.newest(&id("a")).await.unwrap(), None);
    chat(&journal, "b").await;
    assert_eq!(journal.newest(&id("b")).await.unwrap(), Some(1));
}

/// What is opened early is what the first use needs, and a folder that is not there yet costs nothing later.
#[tokio::test]
async fn a_prepared_store_is_open_and_one_that_failed_works_later() {
    let folder = memory_folder();
    let data = folder.path().join("data");
    fs::write(&data, "a file where the folder belongs").unwrap();
    let journal = journal(&data);
    assert!(journal.prepare().await.is_err());
    fs::remove_file(&data).unwrap();
    journal.prepare().await.unwrap();
    assert!(data.join("chats.sqlite").is_file());
    journal.lease(&id("a")).await.unwrap();
    journal.append(&id("a"), vec![opened("One", &["/w"])]).await.unwrap();
    assert_eq!(read_all(&journal, &id("a")).await.len(), 1);
}
