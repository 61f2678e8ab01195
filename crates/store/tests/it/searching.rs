//! Words are found before and after SQLite has indexed them. What a search finds is checked for both stores in
//! `store-postgres/tests/it/conformance.rs`.

use domain::Store;
use domain::store::SearchQuery;
use testkit::sample::{chat, user_message};

use crate::{id, journal, sqlite};

fn waiting(directory: &std::path::Path) -> u64 {
    sqlite(directory).query_row("SELECT count(*) FROM unindexed", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn messages_are_found_before_and_after_they_are_indexed() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let said = [
        ("one", "Why does the Überlauf happen in parse_header()?"),
        ("two", "Fix the race condition between reader and writer"),
        ("three", "Читатель и писатель: race"),
    ];
    for (name, text) in said {
        chat(&journal, name).await;
        journal.append(&id(name), vec![user_message(1, text)]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let cases: [(&str, &[&str]); 4] = [
        ("race", &["three", "two"]),
        ("RACE cond", &["two"]),
        ("überlauf", &["one"]),
        ("писатель", &["three"]),
    ];
    for is_indexed in [false, true] {
        for (text, expected) in cases {
            let query = SearchQuery { text: text.to_owned(), ..SearchQuery::default() };
            let hits = journal.search(query).await.unwrap();
            let found: Vec<_> = hits.iter().map(|hit| hit.chat.id.as_str()).collect();
            assert_eq!(found, expected, "{text}, indexed: {is_indexed}");
        }
        if !is_indexed {
            chat(&journal, "filler").await;
            let facts = (1..100).map(|number| user_message(number, "nothing"));
            journal.append(&id("filler"), facts.collect()).await.unwrap();
            // The test's own timeout ends a wait that does not end.
            while waiting(directory.path()) > 32 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }
}
