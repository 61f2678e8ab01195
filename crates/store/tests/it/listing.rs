//! The index: what a list of chats shows.

use domain::command::Settings;
use domain::store::ListFilter;
use domain::{Fact, ItemId, Store};

use crate::sample::{agent_message, opened, reasoning, user_message};
use crate::{id, journal};

#[tokio::test]
async fn a_list_is_filtered_and_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let chats: [(&str, &str, &[&str]); 4] = [
        ("one", "Fix the Überlauf", &["/work/a"]),
        ("two", "Read the docs", &["/work/b"]),
        ("three", "fix TESTS", &["/work/b", "/work/a"]),
        ("four", "Plan", &[]),
    ];
    for (name, title, workspace) in chats {
        journal.lease(&id(name)).await.unwrap();
        journal.append(&id(name), vec![opened(title, workspace)]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    // The oldest becomes the newest.
    journal.append(&id("one"), vec![user_message(1, "again")]).await.unwrap();

    let all = ListFilter::default;
    let folders = |folders: &[&str]| Some(folders.iter().map(Into::into).collect());
    let cases = [
        (all(), vec!["one", "four", "three", "two"]),
        (ListFilter { limit: Some(2), ..all() }, vec!["one", "four"]),
        (ListFilter { limit: Some(2), offset: 3, ..all() }, vec!["two"]),
        (ListFilter { limit: Some(0), ..all() }, vec![]),
        (ListFilter { text: Some("FIX".to_owned()), ..all() }, vec!["one", "three"]),
        (ListFilter { text: Some("überl".to_owned()), ..all() }, vec!["one"]),
        (ListFilter { text: Some("%".to_owned()), ..all() }, vec![]),
        (ListFilter { workspace: folders(&["/work/a"]), ..all() }, vec!["one", "three"]),
        (ListFilter { workspace: folders(&["/work/b", "/none"]), offset: 1, ..all() }, vec!["two"]),
        (ListFilter { workspace: folders(&["/work"]), ..all() }, vec![]),
        (
            ListFilter { workspace: folders(&["/work/a"]), text: Some("tests".to_owned()), ..all() },
            vec!["three"],
        ),
    ];
    for (filter, expected) in cases {
        let found = journal.list(filter.clone()).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn the_index_follows_the_facts() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let session = id("one");
    journal.lease(&session).await.unwrap();
    let change = |title: Option<&str>, model: Option<&str>| Fact::SessionChanged {
        change: Settings {
            title: title.map(Into::into),
            model: model.map(Into::into),
            ..Settings::default()
        },
    };
    let steps: [(Vec<Fact>, &str, Option<&str>, u64); 8] = [
        (vec![opened("New chat", &["/w"])], "New chat", None, 0),
        (
            vec![change(None, Some("a/b")), user_message(1, "q"), reasoning(2, "r"), agent_message(3, "a")],
            "New chat",
            Some("a/b"),
            2,
        ),
        (vec![change(Some("Better"), None)], "Better", Some("a/b"), 2),
        (vec![user_message(4, "q"), agent_message(5, "a")], "Better", Some("a/b"), 4),
        (vec![Fact::HistoryReplaced { keep: Some(ItemId(2)) }], "Better", Some("a/b"), 1),
        // Items 3 to 5 are gone for good, although their numbers are smaller than the one that is kept now.
        (
            vec![
                user_message(6, "q"),
                agent_message(7, "a"),
                Fact::HistoryReplaced { keep: Some(ItemId(6)) },
            ],
            "Better",
            Some("a/b"),
            2,
        ),
        (vec![Fact::HistoryReplaced { keep: None }, agent_message(8, "a")], "Better", Some("a/b"), 1),
        (vec![change(Some("x"), None), change(Some("Last"), Some("c/d"))], "Last", Some("c/d"), 1),
    ];
    let mut newest = 0;
    for (facts, title, model, messages) in steps {
        newest += facts.len() as u64;
        let told = journal.append(&session, facts.clone()).await.unwrap();
        let found = journal.list(ListFilter::default()).await.unwrap().remove(0);
        let seen = (found.title.as_deref(), found.model.as_deref(), found.message_count, found.newest);
        assert_eq!(seen, (Some(title), model, messages, newest), "{facts:?}");
        assert_eq!(found.updated_at, told[0].at);
        assert!(found.created_at > 1_700_000_000_000 && found.created_at <= found.updated_at);
        assert_eq!(found.workspace, ["/w"].map(std::path::PathBuf::from));
    }
}
