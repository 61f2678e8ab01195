//! One suite over both stores: what the engine may rely on, whichever store the user has chosen.

use std::future::Future;
use std::pin::Pin;

use domain::command::SessionSettings;
use domain::store::{AUDIT, Lease, ListFilter, SearchQuery};
use domain::{Fact, ItemId, Recorded, Store};
use testkit::PostgresServer;

use crate::{id, read_all, store_at};
use testkit::sample::{agent_message, chat, opened, reasoning, started, user_message};

/// Makes another store on the same data, as another process would.
type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);
type Check = for<'a> fn(Open<'a>) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

const CHECKS: &[(&str, Check)] = &[
    ("numbering", |open| Box::pin(numbering(open))),
    ("pages", |open| Box::pin(pages(open))),
    ("permission", |open| Box::pin(permission(open))),
    ("leases", |open| Box::pin(leases(open))),
    ("list", |open| Box::pin(list(open))),
    ("list_pages", |open| Box::pin(list_pages(open))),
    ("index", |open| Box::pin(index(open))),
    ("search", |open| Box::pin(search(open))),
    ("values", |open| Box::pin(values(open))),
    ("adoption", |open| Box::pin(adoption(open))),
    ("records", |open| Box::pin(records(open))),
    ("audit", |open| Box::pin(audit(open))),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_conforms() {
    for (name, check) in CHECKS {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        check(&|| Box::new(store::Journal::open(directory.path()).unwrap())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_conforms() {
    let Some(server) = PostgresServer::start() else { return };
    for (name, check) in CHECKS {
        println!("{name}");
        let address = server.database(name);
        check(&|| Box::new(store_at(&address))).await;
    }
}

async fn numbering(open: Open<'_>) {
    let facts = vec![
        opened("t\u{0}", &["/w"]),
        user_message(1, "hello \u{0} there"),
        agent_message(2, "hi \"there\" \u{1f980}\n"),
    ];
    let session = id("chat/with ../ odd\u{0} \u{1} name");
    let first = open();
    assert_eq!(first.lease(&session).await.unwrap(), Lease::Held);
    let mut told = first.append(&session, facts[..2].to_vec()).await.unwrap();
    told.extend(first.append(&session, facts[2..].to_vec()).await.unwrap());
    assert!(first.append(&session, Vec::new()).await.unwrap().is_empty());
    assert_eq!(told.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(told.iter().map(|one| one.fact.clone()).collect::<Vec<_>>(), facts);
    assert!(told.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(read_all(first.as_ref(), &session).await, told);
    first.release(&session).await.unwrap();
    drop(first);

    let second = open();
    assert_eq!(read_all(second.as_ref(), &session).await, told);
    assert_eq!(second.newest(&session).await.unwrap(), Some(3));
    assert_eq!(second.newest(&id("unknown")).await.unwrap(), None);
    assert!(second.read(&id("unknown"), 0, 10).await.unwrap().is_empty());
    assert_eq!(second.list(ListFilter::default()).await.unwrap()[0].id, session);
    // The next holder goes on with the next number.
    assert_eq!(second.lease(&session).await.unwrap(), Lease::Held);
    assert_eq!(second.append(&session, vec![user_message(3, "on")]).await.unwrap()[0].number, 4);
}

async fn pages(open: Open<'_>) {
    let store = open();
    let session = id("big");
    chat(store.as_ref(), "big").await;
    let large = "x".repeat(400_000);
    for number in 0..6 {
        store.append(&session, vec![agent_message(number, &large)]).await.unwrap();
    }
    let numbers = |page: Vec<Recorded>| page.iter().map(|one| one.number).collect::<Vec<_>>();
    assert_eq!(numbers(store.read(&session, 0, 2).await.unwrap()), [1, 2]);
    assert_eq!(numbers(store.read(&session, 1, 100).await.unwrap()), [2, 3, 4]);
    assert_eq!(numbers(store.read(&session, 6, usize::MAX).await.unwrap()), [7]);
    assert_eq!(numbers(store.read(&session, 7, 100).await.unwrap()), [0_u64; 0]);
    assert_eq!(numbers(store.read(&session, u64::MAX, 100).await.unwrap()), [0_u64; 0]);
    let end = store.preview(&session, 5).await.unwrap().expect("the chat is there");
    assert_eq!(numbers(end.facts), [3, 4, 5, 6, 7], "the newest ones, also where they fill several pages");
    assert_eq!(numbers(store.preview(&session, 100).await.unwrap().unwrap().facts), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(store.preview(&id("unknown"), 5).await.unwrap(), None);
    // A fact larger than a page is a page.
    store.append(&session, vec![agent_message(9, &"y".repeat(3 << 20))]).await.unwrap();
    assert_eq!(numbers(store.read(&session, 7, 100).await.unwrap()), [8]);
}

async fn permission(open: Open<'_>) {
    let store = open();
    let refused = store.append(&id("a"), vec![opened("a", &[])]).await.unwrap_err();
    assert!(refused.message.contains("without its lease"), "{refused}");
    store.lease(&id("a")).await.unwrap();
    let refused = store.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(refused.message.contains("no chat a"), "{refused}");
    assert_eq!(store.newest(&id("a")).await.unwrap(), None);
    store.append(&id("a"), vec![opened("a", &[])]).await.unwrap();
    store.release(&id("a")).await.unwrap();
    let refused = store.append(&id("a"), vec![user_message(1, "hello")]).await.unwrap_err();
    assert!(refused.message.contains("without its lease"), "{refused}");
    assert_eq!(store.newest(&id("a")).await.unwrap(), Some(1));
}

async fn leases(open: Open<'_>) {
    let (first, second) = (open(), open());
    chat(first.as_ref(), "a").await;
    assert_eq!(first.lease(&id("a")).await.unwrap(), Lease::Held, "it is held already");
    let Lease::HeldBy { holder, .. } = second.lease(&id("a")).await.unwrap() else { panic!("held by two") };
    assert!(holder.contains("process"), "{holder}");
    let refused = second.delete(&id("a")).await.unwrap_err();
    assert!(refused.message.contains("in use by"), "{refused}");
    assert_eq!(second.newest(&id("a")).await.unwrap(), Some(1));
    first.release(&id("a")).await.unwrap();
    assert_eq!(second.lease(&id("a")).await.unwrap(), Lease::Held);
    assert!(matches!(first.lease(&id("a")).await.unwrap(), Lease::HeldBy { .. }));
    second.release(&id("a")).await.unwrap();
    assert!(second.delete(&id("a")).await.unwrap());
    assert!(!second.delete(&id("a")).await.unwrap());
    assert_eq!(first.newest(&id("a")).await.unwrap(), None);
    assert!(first.read(&id("a"), 0, 10).await.unwrap().is_empty());
    // The same name begins a new chat.
    chat(first.as_ref(), "a").await;
    assert_eq!(first.newest(&id("a")).await.unwrap(), Some(1));
}

async fn list(open: Open<'_>) {
    let store = open();
    let chats: [(&str, &str, &[&str]); 4] = [
        ("one", "Fix the Überlauf", &["/projects/a"]),
        ("two", "Read the docs", &["/projects/b"]),
        ("three", "fix TESTS", &["/projects/b", "/projects/a"]),
        ("four", "Plan", &[]),
    ];
    for (name, title, workspace) in chats {
        store.lease(&id(name)).await.unwrap();
        store.append(&id(name), vec![opened(title, workspace)]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    // The oldest becomes the newest.
    store.append(&id("one"), vec![user_message(1, "again")]).await.unwrap();
    let all = ListFilter::default;
    let listed = store.list(all()).await.unwrap();
    let after = |name: &str| listed.iter().find(|one| one.id == id(name)).map(|one| one.position());
    let folders = |folders: &[&str]| Some(folders.iter().map(Into::into).collect());
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (all(), vec!["one", "four", "three", "two"]),
        (ListFilter { limit: Some(2), ..all() }, vec!["one", "four"]),
        (ListFilter { limit: Some(2), after: after("three"), ..all() }, vec!["two"]),
        (ListFilter { limit: Some(0), ..all() }, vec![]),
        (ListFilter { text: text("FIX"), ..all() }, vec!["one", "three"]),
        (ListFilter { text: text("überl"), ..all() }, vec!["one"]),
        (ListFilter { text: text("%"), ..all() }, vec![]),
        (ListFilter { workspace: folders(&["/projects/a"]), ..all() }, vec!["one", "three"]),
        (
            ListFilter { workspace: folders(&["/projects/b", "/none"]), after: after("three"), ..all() },
            vec!["two"],
        ),
        (ListFilter { workspace: folders(&["/work"]), ..all() }, vec![]),
        (ListFilter { workspace: folders(&["/projects/a"]), text: text("tests"), ..all() }, vec!["three"]),
    ];
    for (filter, expected) in cases {
        let found = store.list(filter.clone()).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

/// Every chat is in exactly one page, also those of one millisecond, and also when chats move up or go meanwhile.
async fn list_pages(open: Open<'_>) {
    let store = open();
    let folders = ["/projects/large", "/projects/small"];
    for number in 0..120 {
        let name = format!("chat-{number}");
        store.lease(&id(&name)).await.unwrap();
        let workspace: &[&str] = match number % 20 {
            0 => &folders,
            1 => &folders[1..],
            _ => &folders[..1],
        };
        store.append(&id(&name), vec![opened(&name, workspace)]).await.unwrap();
    }
    for (folder, expected) in [(None, 120), (Some(folders[0]), 114), (Some(folders[1]), 12)] {
        let workspace = folder.map(|folder| vec![folder.into()]);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let filter =
                ListFilter { workspace: workspace.clone(), limit: Some(7), after, ..ListFilter::default() };
            let page = store.list(filter).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.position());
            seen.extend(page.into_iter().map(|chat| chat.id));
            store.append(&seen[0], vec![user_message(1, "again")]).await.unwrap();
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), all), (expected, expected), "{folder:?}");
    }
    // The chat where a page ended may be deleted before the next page is asked for.
    let page = store.list(ListFilter { limit: Some(5), ..ListFilter::default() }).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert!(store.delete(&page[4].id).await.unwrap());
    let rest = ListFilter { after: Some(page[4].position()), ..ListFilter::default() };
    let rest = store.list(rest).await.unwrap();
    assert!(!rest.is_empty());
    assert!(rest.iter().all(|chat| chat.updated_at <= page[4].updated_at && !page.contains(chat)));
}

/// Appends step by step and looks at the one chat in the list after each.
async fn index(open: Open<'_>) {
    let change = |title: Option<&str>, model: Option<&str>| {
        let (title, model) = (title.map(Into::into), model.map(Into::into));
        Fact::SessionChanged { change: SessionSettings { title, model, ..SessionSettings::default() } }
    };
    let keep = |number: Option<u64>| Fact::HistoryReplaced { keep: number.map(ItemId) };
    let steps: Vec<(Vec<Fact>, &str, Option<&str>, u64)> = vec![
        (vec![opened("New chat", &["/w"]), user_message(1, "q")], "New chat", None, 1),
        (vec![change(None, Some("a/b"))], "New chat", Some("a/b"), 1),
        (vec![change(Some("x"), None), change(Some("Last"), Some("c/d"))], "Last", Some("c/d"), 1),
        (vec![started(reasoning(2, "")), started(agent_message(3, ""))], "Last", Some("c/d"), 1),
        (vec![agent_message(3, "a"), reasoning(2, "r")], "Last", Some("c/d"), 2),
        (vec![user_message(4, "q"), agent_message(5, "a")], "Last", Some("c/d"), 4),
        (vec![keep(Some(2))], "Last", Some("c/d"), 1),
        (vec![user_message(6, "q"), agent_message(7, "a"), keep(Some(6))], "Last", Some("c/d"), 2),
        (vec![keep(None), agent_message(8, "a")], "Last", Some("c/d"), 1),
    ];
    let store = open();
    store.lease(&id("one")).await.unwrap();
    let mut newest = 0;
    for (facts, title, model, messages) in steps {
        newest += facts.len() as u64;
        let told = store.append(&id("one"), facts.clone()).await.unwrap();
        let found = store.list(ListFilter::default()).await.unwrap().remove(0);
        let seen = (found.title.as_deref(), found.model.as_deref(), found.message_count, found.newest);
        assert_eq!(seen, (Some(title), model, messages, newest), "{facts:?}");
        assert_eq!(found.updated_at, told[0].at);
        assert!(found.created_at > 1_700_000_000_000 && found.created_at <= found.updated_at);
        assert_eq!(found.workspace, ["/w"].map(std::path::PathBuf::from));
    }
}

async fn search(open: Open<'_>) {
    let store = open();
    let said = [
        ("one", "/a", "Why does the Überlauf happen in parse_header()?".to_owned()),
        ("two", "/b", "Fix the race condition between reader and writer".to_owned()),
        ("three", "/b", "Читатель и писатель: race".to_owned()),
        ("four", "/c", format!("{} {} 'quoted' \u{0}nul", "x".repeat(5000), "hay ".repeat(500))),
    ];
    for (name, folder, text) in &said {
        store.lease(&id(name)).await.unwrap();
        let facts = vec![opened(name, &[folder]), user_message(1, text), agent_message(2, "I see.")];
        store.append(&id(name), facts).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let cases: [(&str, Option<&str>, &[&str]); 13] = [
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
        ("it's 'quoted", None, &[]),
        ("'quoted' & nul", None, &["four"]),
    ];
    let found = async |text: &str, folder: Option<&str>| -> Vec<String> {
        let workspace = folder.map(|folder| vec![folder.into()]);
        let query = SearchQuery { text: text.to_owned(), workspace, limit: Some(10) };
        store.search(query).await.unwrap().into_iter().map(|hit| hit.chat.id.to_string()).collect()
    };
    for (text, folder, expected) in cases {
        assert_eq!(found(text, folder).await, expected, "{text}");
    }
    let query = SearchQuery { text: "between".to_owned(), ..SearchQuery::default() };
    let hits = store.search(query).await.unwrap();
    assert_eq!(hits[0].excerpt, "Fix the race condition between reader and writer");
    // A long message is cut around the word.
    let long = format!("{} needle\n\tin {}", "hay ".repeat(500), "hay ".repeat(500));
    store.append(&id("three"), vec![user_message(3, &long)]).await.unwrap();
    let query = SearchQuery { text: "needle".to_owned(), ..SearchQuery::default() };
    let excerpt = store.search(query).await.unwrap().remove(0).excerpt;
    assert!(excerpt.contains("hay needle in hay") && excerpt.chars().count() < 170, "{excerpt}");
    assert!(excerpt.starts_with('…') && excerpt.ends_with('…'), "{excerpt}");
    // What was rolled back was said all the same; what was deleted is gone.
    store.append(&id("two"), vec![Fact::HistoryReplaced { keep: None::<ItemId> }]).await.unwrap();
    assert_eq!(found("condition", None).await, ["two"]);
    assert!(store.delete(&id("two")).await.unwrap());
    assert!(found("condition", None).await.is_empty());
    assert_eq!(found("race", None).await, ["three"]);
}

async fn values(open: Open<'_>) {
    let (first, second) = (open(), open());
    assert_eq!(first.get("day", "x").await.unwrap(), None);
    first.put("day", "x", "text".to_owned()).await.unwrap();
    first.put("day", "x", "other".to_owned()).await.unwrap();
    assert_eq!(second.get("day", "x").await.unwrap().as_deref(), Some("other"));
    let refused = first.add("day", "x", 1.0).await.unwrap_err();
    assert!(refused.message.contains("not a number"), "{refused}");
    first.add("cost", "today", f64::INFINITY).await.unwrap_err();
    let adding = (0..20).map(|number| {
        let store = if number % 2 == 0 { &first } else { &second };
        store.add("cost", "today", 0.25)
    });
    for sum in futures_util::future::join_all(adding).await {
        assert!(sum.unwrap() > 0.0);
    }
    assert_eq!(first.add("cost", "today", 0.0).await.unwrap(), 5.0);
    assert_eq!(first.add("cost", "never", 0.0).await.unwrap(), 0.0);
}

/// A chat that comes from another store keeps its times.
async fn adoption(open: Open<'_>) {
    let store = open();
    let session = id("moved");
    let facts =
        [opened("t", &["/w"]), user_message(1, "needle"), agent_message(2, "a"), user_message(3, "b")];
    let records: Vec<Recorded> = (1_u64..)
        .zip([1_000_u64, 1_000, 2_000, 5_000])
        .zip(facts)
        .map(|((number, at), fact)| Recorded { number, at, fact })
        .collect();
    store.adopt(&session, records[..1].to_vec()).await.unwrap_err();
    store.lease(&session).await.unwrap();
    store.adopt(&session, records[..2].to_vec()).await.unwrap();
    store.adopt(&session, Vec::new()).await.unwrap();
    store.adopt(&session, records[2..].to_vec()).await.unwrap();
    assert_eq!(read_all(store.as_ref(), &session).await, records);
    let listed = store.list(ListFilter::default()).await.unwrap().remove(0);
    assert_eq!(
        (listed.created_at, listed.updated_at, listed.message_count, listed.newest),
        (1_000, 5_000, 3, 4)
    );
    let query = SearchQuery { text: "needle".to_owned(), ..SearchQuery::default() };
    assert_eq!(store.search(query).await.unwrap().len(), 1);
    let told = store.append(&session, vec![user_message(4, "c")]).await.unwrap();
    assert!(told[0].number == 5 && told[0].at > 5_000);
}

/// Accounts are records: one per name, listed in order, gone when removed.
async fn records(open: Open<'_>) {
    let (first, second) = (open(), open());
    for key in ["b", "a", "Z", "\u{e4}"] {
        assert!(first.insert("k", key, format!("value of {key}")).await.unwrap());
    }
    assert!(!second.insert("k", "a", "another".into()).await.unwrap(), "nothing is overwritten");
    assert!(second.insert("l", "a", "of another kind".into()).await.unwrap());
    let keys = |found: Vec<(String, String)>| found.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(second.records("k", "", 10).await.unwrap()), ["Z", "a", "b", "\u{e4}"]);
    assert_eq!(keys(second.records("k", "a", 1).await.unwrap()), ["b"]);
    assert_eq!(second.get("k", "a").await.unwrap().as_deref(), Some("value of a"));
    assert_eq!(second.last_record("k").await.unwrap().unwrap().0, "\u{e4}");
    assert_eq!(second.last_record("none").await.unwrap(), None);
    assert!(second.remove("k", "a").await.unwrap());
    assert!(!first.remove("k", "a").await.unwrap());
    assert_eq!(first.get("k", "a").await.unwrap(), None);
}

/// The log of a server only grows, also where two processes write it at once.
async fn audit(open: Open<'_>) {
    let (first, second) = (open(), open());
    assert!(first.insert(AUDIT, "1", "entry".into()).await.unwrap());
    let (one, other) =
        tokio::join!(first.insert(AUDIT, "2", "x".into()), second.insert(AUDIT, "2", "y".into()));
    assert!(one.unwrap() != other.unwrap(), "one of the two has the number");
    for refused in [
        second.put(AUDIT, "1", "forged".into()).await.map(|()| true),
        second.remove(AUDIT, "1").await,
        second.add(AUDIT, "1", 1.0).await.map(|_| true),
        second
            .insert(AUDIT, "1", "forged".into())
            .await
            .and_then(|done| if done { Ok(true) } else { Err(domain::Failure::user("append-only")) }),
    ] {
        assert!(refused.unwrap_err().message.contains("append-only"));
    }
    assert_eq!(first.get(AUDIT, "1").await.unwrap().as_deref(), Some("entry"));
    assert_eq!(second.last_record(AUDIT).await.unwrap().unwrap().0, "2");
    let group = |keys: [&str; 2]| keys.map(|key| (key.to_owned(), format!("value of {key}"))).to_vec();
    assert!(first.insert_all(AUDIT, group(["3", "4"])).await.unwrap());
    assert!(!second.insert_all(AUDIT, group(["5", "4"])).await.unwrap(), "one of the keys is taken");
    assert_eq!(first.get(AUDIT, "5").await.unwrap(), None, "all or none");
    let (one, other) =
        tokio::join!(first.insert_all(AUDIT, group(["5", "6"])), second.insert_all(AUDIT, group(["6", "7"])));
    assert!(one.unwrap() != other.unwrap(), "one of the two has the number");
    assert_eq!(second.get(AUDIT, "4").await.unwrap().as_deref(), Some("value of 4"));
}
