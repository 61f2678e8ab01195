//! The queue of tasks: each task ends once, whatever becomes of workers, the wire and the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use store_postgres::{Address, NewTask, Renewal, TaskQueue, TaskState, Timing};
use testkit::PostgresServer;

use crate::proxy::Proxy;
use crate::{scaled, timing};

fn queue_at(address: &str, lease: Duration) -> TaskQueue {
    TaskQueue::with_timing(Address::parse(address, None).unwrap(), Timing { lease, ..timing() })
}

fn task(repo: &str) -> NewTask {
    NewTask {
        prompt: "do \u{0} it".to_owned(),
        repo: repo.to_owned(),
        reference: "HEAD".to_owned(),
        limits: "{}".to_owned(),
    }
}

const ALL: &[&str] = &["/"];

fn allowed(beginnings: &[&str]) -> Vec<String> {
    beginnings.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_goes_through_the_queue() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.database("queue");
    let (first, second) = (queue_at(&address, timing().lease), queue_at(&address, timing().lease));
    assert!(first.claim(&allowed(ALL)).await.unwrap().is_none());
    let old = first.submit(&task("/srv/a")).await.unwrap();
    let new = first.submit(&task("/srv/b")).await.unwrap();
    assert!(second.claim(&allowed(&["/other/", "/srv/a2/"])).await.unwrap().is_none());
    // The oldest first, and never twice.
    let claim = first.claim(&allowed(&["/srv/"])).await.unwrap().unwrap();
    assert_eq!((claim.task.id.as_str(), claim.task.attempts), (old.as_str(), 1));
    assert_eq!(claim.task.prompt, "do \u{fffd} it");
    let other = second.claim(&allowed(ALL)).await.unwrap().unwrap();
    assert_eq!(other.task.id, new);
    assert_eq!(
        queue_at(&address, timing().lease).claim(&allowed(ALL)).await.unwrap().map(|it| it.task.id),
        None
    );
    assert_eq!(first.renew(&claim, Some(b"patch"), Some("base")).await.unwrap(), Renewal::Held);
    assert!(first.cancel(&old).await.unwrap());
    assert_eq!(first.renew(&claim, None, None).await.unwrap(), Renewal::Cancelled);
    // A worker that was given back its task by mistake of time ends nothing.
    second.release(&other).await.unwrap();
    let again = first.list(Some(TaskState::Waiting), 10).await.unwrap();
    assert_eq!(again.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), [new.as_str()]);
    assert!(!second.finish(&other, TaskState::Done, "{}", None).await.unwrap());
    assert!(first.finish(&claim, TaskState::Cancelled, "{}", None).await.unwrap());
    assert!(
        first.finish(&claim, TaskState::Cancelled, "{}", None).await.unwrap(),
        "the same end again is the same"
    );
    assert!(!first.finish(&claim, TaskState::Done, "{}", None).await.unwrap(), "another end is none");
    let ended = first.get(&old).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.base.as_deref()), (TaskState::Cancelled, Some("base")));
    assert!(!first.cancel(&old).await.unwrap() || ended.is_cancelled);
    // One that waits ends at once.
    assert!(first.cancel(&new).await.unwrap());
    assert_eq!(first.get(&new).await.unwrap().unwrap().state, TaskState::Cancelled);
    assert_eq!(first.unfinished().await.unwrap(), 0);
    assert!(first.get("unknown").await.unwrap().is_none());
}

/// A worker that falls silent loses its task, and what it says later changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_worker_loses_its_task() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.database("silent");
    let lease = Duration::from_secs(2);
    let (first, second) = (queue_at(&address, lease), queue_at(&address, lease));
    let id = first.submit(&task("/srv/a")).await.unwrap();
    let lost = first.claim(&allowed(ALL)).await.unwrap().unwrap();
    assert!(second.claim(&allowed(ALL)).await.unwrap().is_none());
    tokio::time::sleep(lease + Duration::from_millis(500)).await;
    let taken = second.claim(&allowed(ALL)).await.unwrap().unwrap();
    assert_eq!((taken.task.id.as_str(), taken.task.attempts), (id.as_str(), 2));
    assert_eq!(first.renew(&lost, Some(b"late"), None).await.unwrap(), Renewal::Lost);
    assert!(!first.finish(&lost, TaskState::Failed, "{}", None).await.unwrap());
    first.release(&lost).await.unwrap();
    assert_eq!(second.renew(&taken, None, None).await.unwrap(), Renewal::Held);
    assert!(second.finish(&taken, TaskState::Done, "{}", Some(b"patch")).await.unwrap());
    assert_eq!(second.patch(&id).await.unwrap().as_deref(), Some(&b"patch"[..]));
    // The process of a dead worker on this machine is not waited for.
    first.submit(&task("/srv/a")).await.unwrap();
    first.claim(&allowed(ALL)).await.unwrap().unwrap();
    server.query("silent", "UPDATE dragoman.tasks SET process = 2000000000 WHERE state = 'running'");
    assert!(second.claim(&allowed(ALL)).await.unwrap().is_some());
}

/// Workers die at any place, the wire is cut and the server killed: every task ends exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_once_whatever_fails() {
    let Some(mut server) = PostgresServer::start() else { return };
    server.database("ends");
    let proxy = Proxy::start(server.socket()).await;
    let address = proxy.address("ends");
    let lease = Duration::from_secs(3);
    let tasks = scaled(1000);
    let submitter = queue_at(&address, lease);
    for _ in 0..tasks {
        submitter.submit(&task("/srv/a")).await.unwrap();
    }
    server.query(
        "ends",
        "CREATE TABLE ends (id text);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF new.state = ''done'' THEN INSERT INTO public.ends VALUES (new.id); END IF; RETURN new; END';
         CREATE TRIGGER note AFTER UPDATE OF state ON dragoman.tasks FOR EACH ROW EXECUTE FUNCTION note()",
    );
    let ended = Arc::new(AtomicUsize::new(0));
    let mut workers: Vec<_> =
        (0..8).map(|_| tokio::spawn(work(queue_at(&address, lease), ended.clone()))).collect();
    let mut random = crate::faults::Random(11);
    let mut faults = HashMap::<&str, usize>::new();
    while submitter.unfinished().await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(50 + random.below(200))).await;
        match random.below(20) {
            0 => tokio::task::block_in_place(|| {
                server.kill();
                server.resume();
                *faults.entry("server").or_default() += 1;
            }),
            1..4 => {
                proxy.cut();
                *faults.entry("wire").or_default() += 1;
            }
            4..8 => {
                let at = random.below(8) as usize;
                workers[at].abort();
                workers[at] = tokio::spawn(work(queue_at(&address, lease), ended.clone()));
                *faults.entry("worker").or_default() += 1;
            }
            _ => {}
        }
    }
    workers.iter().for_each(tokio::task::JoinHandle::abort);
    for query in ["SELECT count(*) FROM public.ends", "SELECT count(DISTINCT id) FROM public.ends"] {
        assert_eq!(server.query("ends", query), tasks.to_string(), "{query}");
    }
    println!(
        "figure: {tasks} tasks in the queue over 8 workers, {} workers, {} times the wire and {} times the server lost: each \
         ended once",
        faults.get("worker").unwrap_or(&0),
        faults.get("wire").unwrap_or(&0),
        faults.get("server").unwrap_or(&0)
    );
    assert!(ended.load(Ordering::Relaxed) <= tasks, "a worker was told of an end that was not its own");
}

async fn work(queue: TaskQueue, ended: Arc<AtomicUsize>) {
    loop {
        let Ok(Some(claim)) = queue.claim(&allowed(ALL)).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        tokio::time::sleep(Duration::from_millis(10)).await;
        if queue.finish(&claim, TaskState::Done, "{}", None).await.is_ok_and(|is_own| is_own) {
            ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}
