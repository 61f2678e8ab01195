//! Rows that were changed behind our back: by a fault, or by somebody who can write to the database.

use domain::Store;
use domain::store::ListFilter;
use store_postgres::{Address, NewTask, TaskQueue};
use testkit::PostgresServer;
use testkit::sample::{chat, user_message};

use crate::{id, read_all, store_at, timing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_or_lost_fact_is_named_and_other_chats_are_readable() {
    let Some(server) = PostgresServer::start() else { return };
    let store = store_at(&server.database("damage"));
    for name in ["whole", "changed", "lost", "short", "old"] {
        chat(&store, name).await;
        let facts = (0..5).map(|number| user_message(number, "some text")).collect();
        store.append(&id(name), facts).await.unwrap();
    }
    let of = |name: &str| format!("session = (SELECT key FROM dragoman.sessions WHERE id = '{name}')");
    for change in [
        format!(
            "UPDATE dragoman.facts SET body = replace(body, 'some', 'same') WHERE number = 3 AND {}",
            of("changed")
        ),
        format!("DELETE FROM dragoman.facts WHERE number = 3 AND {}", of("lost")),
        format!("DELETE FROM dragoman.facts WHERE number > 3 AND {}", of("short")),
        format!("UPDATE dragoman.facts SET sum = NULL WHERE {}", of("old")),
    ] {
        server.query("damage", &change);
    }
    for (name, number) in [("changed", "3"), ("lost", "3"), ("short", "after 3")] {
        let mut after = 0;
        let failure = loop {
            // Also where the damage is at the end of a page.
            match store.read(&id(name), after, 3).await {
                Ok(page) => after = page.last().unwrap_or_else(|| panic!("{name}")).number,
                Err(failure) => break failure,
            }
        };
        let message = &failure.message;
        assert!(
            message.contains(name) && message.contains("damaged") && message.contains(number),
            "{failure}"
        );
    }
    for name in ["whole", "old"] {
        assert_eq!(read_all(&store, &id(name)).await.len(), 6, "{name}");
    }
    assert!(store.read(&id("whole"), 6, 3).await.unwrap().is_empty());
    assert!(store.read(&id("nobody"), 0, 3).await.unwrap().is_empty());
    assert_eq!(store.list(ListFilter::default()).await.unwrap().len(), 5);
}

/// Workers make folders and branches of the ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_whose_id_is_a_path_is_no_task() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.database("paths");
    let queue = TaskQueue::with_timing(Address::parse(&address, None).unwrap(), timing());
    let task = NewTask {
        prompt: "go".to_owned(),
        repo: "/srv/a".to_owned(),
        limits: "{}".to_owned(),
        ..NewTask::default()
    };
    let good = queue.submit(&task).await.unwrap();
    for bad in [
        "../../x",
        "..",
        "",
        "/etc/passwd",
        "0198C2D4-A1B2-7C3D-8E4F-5A6B7C8D9E0F",
        "0198c2d4a1b27c3d8e4f5a6b7c8d9e0f",
    ] {
        for state in ["waiting", "done"] {
            server.query(
                "paths",
                &format!(
                    "INSERT INTO dragoman.tasks (id, state, prompt, repo, reference, limits, submitted, ended)
                     VALUES ('{bad}{}', '{state}', 'go', '/srv/a', 'HEAD', '{{}}', '2020-01-01', '2020-01-01')",
                    if state == "done" { "/.." } else { "" }
                ),
            );
        }
        assert_eq!(queue.get(bad).await.unwrap(), None, "{bad}");
    }
    assert_eq!(queue.list(None, 10).await.unwrap().len(), 1);
    assert_eq!(queue.unfinished().await.unwrap(), 1);
    assert!(queue.ended_before(0, 10).await.unwrap().is_empty());
    let all = ["/".to_owned()];
    assert_eq!(queue.claim(&all).await.unwrap().unwrap().task.id, good);
    assert!(queue.claim(&all).await.unwrap().is_none_or(|claim| claim.task.id == good));
}
