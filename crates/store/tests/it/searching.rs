//! Words that were said are found, in every language, until the chat is deleted.

use domain::store::SearchQuery;
use domain::{Fact, ItemId, Store};

use crate::sample::{agent_message, chat, opened, user_message};
use crate::{id, journal, sqlite};

fn waiting(directory: &std::path::Path) -> u64 {
    sqlite(directory).query_row("SELECT count(*) FROM unindexed", [], |row| row.get(0)).unwrap()
}

async fn found(journal: &store::Journal, text: &str, folder: Option<&str>) -> Vec<String> {
    let workspace = folder.map(|folder| vec![folder.into()]);
    let hits =
        journal.search(SearchQuery { text: text.to_owned(), workspace, limit: Some(10) }).await.unwrap();
    hits.into_iter().map(|hit| hit.chat.id.to_string()).collect()
}

#[tokio::test]
async fn messages_are_found_by_their_words() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let said = [
        ("one", "/a", "Why does the Überlauf happen in parse_header()?"),
        ("two", "/b", "Fix the race condition between reader and writer"),
        ("three", "/b", "Читатель и писатель: race"),
    ];
    for (name, folder, text) in said {
        journal.lease(&id(name)).await.unwrap();
        let facts = vec![opened(name, &[folder]), user_message(1, text), agent_message(2, "I see.")];
        journal.append(&id(name), facts).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let cases: [(&str, Option<&str>, &[&str]); 11] = [
        ("race", None, &["three", "two"]),
        ("RACE cond", None, &["two"]),
        ("cond race", None, &[]),
        ("überlauf", None, &["one"]),
        ("uberlauf", None, &[]),
        ("parse_header()", None, &["one"]),
        ("писатель", None, &["three"]),
        ("race", Some("/a"), &[]),
        ("see", Some("/b"), &["three", "two"]),
        ("\"race\" OR * NEAR(", None, &[]),
        (" -- ", None, &[]),
    ];
    // The same before and after they are in the index.
    for is_indexed in [false, true] {
        for (text, folder, expected) in cases {
            assert_eq!(found(&journal, text, folder).await, expected, "{text}, indexed: {is_indexed}");
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
    let query = SearchQuery { text: "between".to_owned(), ..SearchQuery::default() };
    let hits = journal.search(query).await.unwrap();
    assert_eq!(hits[0].excerpt, "Fix the race condition between reader and writer");

    // What was rolled back was said all the same; what was deleted is gone.
    journal.append(&id("two"), vec![Fact::HistoryReplaced { keep: None::<ItemId> }]).await.unwrap();
    assert_eq!(found(&journal, "condition", None).await, ["two"]);
    assert!(journal.delete(&id("two")).await.unwrap());
    assert!(found(&journal, "condition", None).await.is_empty());
    assert_eq!(found(&journal, "race", None).await, ["three"]);
}

#[tokio::test]
async fn a_long_message_is_cut_around_the_word() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    chat(&journal, "long").await;
    let text = format!("{} needle\n\tin {}", "hay ".repeat(500), "hay ".repeat(500));
    journal.append(&id("long"), vec![user_message(1, &text)]).await.unwrap();
    let hits =
        journal.search(SearchQuery { text: "needle".to_owned(), ..SearchQuery::default() }).await.unwrap();
    assert!(
        hits[0].excerpt.contains("hay needle in hay") && hits[0].excerpt.chars().count() < 170,
        "{hits:?}"
    );
    assert!(hits[0].excerpt.starts_with('…') && hits[0].excerpt.ends_with('…'));
}
