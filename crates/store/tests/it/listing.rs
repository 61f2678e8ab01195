//! The index: what a list of chats shows.

use domain::command::SessionSettings;
use domain::store::ListFilter;
use domain::{Fact, ItemId, Store};

use crate::sample::{agent_message, opened, reasoning, started, user_message};
use crate::{id, journal};

#[tokio::test]
async fn a_list_is_filtered_and_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let chats: [(&str, &str, &[&str]); 4] = [
        ("one", "Fix the Überlauf", &["/projects/a"]),
        ("two", "Read the docs", &["/projects/b"]),
        ("three", "fix TESTS", &["/projects/b", "/projects/a"]),
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
    let listed = journal.list(all()).await.unwrap();
    let after = |name: &str| listed.iter().find(|one| one.id == id(name)).map(|one| one.position());
    let folders = |folders: &[&str]| Some(folders.iter().map(Into::into).collect());
    let cases = [
        (all(), vec!["one", "four", "three", "two"]),
        (ListFilter { limit: Some(2), ..all() }, vec!["one", "four"]),
        (ListFilter { limit: Some(2), after: after("three"), ..all() }, vec!["two"]),
        (ListFilter { limit: Some(0), ..all() }, vec![]),
        (ListFilter { text: Some("FIX".to_owned()), ..all() }, vec!["one", "three"]),
        (ListFilter { text: Some("überl".to_owned()), ..all() }, vec!["one"]),
        (ListFilter { text: Some("%".to_owned()), ..all() }, vec![]),
        (ListFilter { workspace: folders(&["/projects/a"]), ..all() }, vec!["one", "three"]),
        (
            ListFilter { workspace: folders(&["/projects/b", "/none"]), after: after("three"), ..all() },
            vec!["two"],
        ),
        (ListFilter { workspace: folders(&["/work"]), ..all() }, vec![]),
        (
            ListFilter { workspace: folders(&["/projects/a"]), text: Some("tests".to_owned()), ..all() },
            vec!["three"],
        ),
    ];
    for (filter, expected) in cases {
        let found = journal.list(filter.clone()).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

/// Every chat is in exactly one page, also those of one millisecond, and also when chats move up or go meanwhile.
#[tokio::test]
async fn pages_hold_every_chat_once() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    let folders = ["/projects/large", "/projects/small"];
    for number in 0..600 {
        let name = format!("chat-{number}");
        journal.lease(&id(&name)).await.unwrap();
        let workspace: &[&str] = match number % 100 {
            0 => &folders,
            1 => &folders[1..],
            _ => &folders[..1],
        };
        journal.append(&id(&name), vec![opened(&name, workspace)]).await.unwrap();
    }
    for (folder, expected) in [(None, 600), (Some(folders[0]), 594), (Some(folders[1]), 12)] {
        let workspace = folder.map(|folder| vec![folder.into()]);
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let filter =
                ListFilter { workspace: workspace.clone(), limit: Some(7), after, ..ListFilter::default() };
            let page = journal.list(filter).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.position());
            seen.extend(page.into_iter().map(|chat| chat.id));
            // A chat that was listed already moves to the front.
            journal.append(&seen[0], vec![user_message(1, "again")]).await.unwrap();
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), all), (expected, expected), "{folder:?}");
    }
    // The chat where a page ended may be deleted before the next page is asked for.
    let page = journal.list(ListFilter { limit: Some(5), ..ListFilter::default() }).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert!(journal.delete(&page[4].id).await.unwrap());
    let rest = ListFilter { after: Some(page[4].position()), ..ListFilter::default() };
    let rest = journal.list(rest).await.unwrap();
    assert!(rest.iter().all(|chat| chat.updated_at <= page[4].updated_at && !page.contains(chat)));
}

/// Appends step by step and looks at the one chat in the list after each.
async fn check_index(steps: Vec<(Vec<Fact>, &str, Option<&str>, u64)>) {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    journal.lease(&id("one")).await.unwrap();
    let mut newest = 0;
    for (facts, title, model, messages) in steps {
        newest += facts.len() as u64;
        let told = journal.append(&id("one"), facts.clone()).await.unwrap();
        let found = journal.list(ListFilter::default()).await.unwrap().remove(0);
        let seen = (found.title.as_deref(), found.model.as_deref(), found.message_count, found.newest);
        assert_eq!(seen, (Some(title), model, messages, newest), "{facts:?}");
        assert_eq!(found.updated_at, told[0].at);
        assert!(found.created_at > 1_700_000_000_000 && found.created_at <= found.updated_at);
        assert_eq!(found.workspace, ["/w"].map(std::path::PathBuf::from));
    }
}

#[tokio::test]
async fn the_newest_title_and_model_are_listed() {
    let change = |title: Option<&str>, model: Option<&str>| {
        let (title, model) = (title.map(Into::into), model.map(Into::into));
        Fact::SessionChanged { change: SessionSettings { title, model, ..SessionSettings::default() } }
    };
    check_index(vec![
        (vec![opened("New chat", &["/w"])], "New chat", None, 0),
        (vec![change(None, Some("a/b"))], "New chat", Some("a/b"), 0),
        (vec![change(Some("Better"), None), user_message(1, "q")], "Better", Some("a/b"), 1),
        (vec![change(Some("x"), None), change(Some("Last"), Some("c/d"))], "Last", Some("c/d"), 1),
    ])
    .await;
}

#[tokio::test]
async fn messages_are_counted_once_they_are_whole_and_until_they_are_dropped() {
    let keep = |number: Option<u64>| Fact::HistoryReplaced { keep: number.map(ItemId) };
    let steps = vec![
        (vec![opened("t", &["/w"]), user_message(1, "q")], 1),
        (vec![started(reasoning(2, "")), started(agent_message(3, ""))], 1),
        (vec![agent_message(3, "a"), reasoning(2, "r")], 2),
        (vec![user_message(4, "q"), agent_message(5, "a")], 4),
        (vec![keep(Some(2))], 1),
        // Items 3 to 5 are gone for good, although their numbers are smaller than the one that is kept now.
        (vec![user_message(6, "q"), agent_message(7, "a"), keep(Some(6))], 2),
        (vec![keep(None), agent_message(8, "a")], 1),
    ];
    check_index(steps.into_iter().map(|(facts, messages)| (facts, "t", None, messages)).collect()).await;
}
