//! Ways to end a tree: deadline, stop, drop. After each of them nothing of it is left.

use std::path::Path;
use std::time::{Duration, Instant};

use process::{End, Spawn};
use tokio_util::sync::CancellationToken;

use super::{is_gone, pids, unstopped, within, zombies};

/// Trees that are hard to end; each writes its process ids, `count` of them, into `$LIST`.
const TREES: &[(&str, usize, &str)] = &[
    ("one process", 1, "echo $$ >> $LIST; exec sleep 60"),
    ("a child in the group", 2, "echo $$ >> $LIST; sleep 60 & echo $! >> $LIST; wait"),
    (
        "grandchildren",
        3,
        "echo $$ >> $LIST; bash -c 'echo $$ >> $LIST; sleep 60 & echo $! >> $LIST; wait' & wait",
    ),
    ("deaf to SIGTERM", 2, "trap '' TERM; echo $$ >> $LIST; sleep 60 & echo $! >> $LIST; wait; wait"),
    (
        "left the group",
        2,
        "echo $$ >> $LIST; setsid bash -c 'echo $$ >> $LIST; trap \"\" TERM; sleep 60; sleep 60' & wait",
    ),
    (
        "left the group and its parent",
        2,
        "echo $$ >> $LIST; (setsid bash -c 'echo $$ >> $LIST; sleep 60; sleep 60' &) ; sleep 60",
    ),
    ("stopped", 1, "echo $$ >> $LIST; kill -STOP $$; sleep 60"),
    ("writes without end", 1, "echo $$ >> $LIST; exec yes"),
    ("reads its input", 1, "echo $$ >> $LIST; cat; sleep 60"),
];

fn tree(line: &str, list: &Path) -> Spawn {
    Spawn::shell(line).env("LIST", list).grace(Duration::from_millis(150))
}

async fn all_gone(name: &str, pids: &[u32]) {
    let gone = within(Duration::from_secs(2), || pids.iter().all(|pid| is_gone(*pid))).await;
    assert!(gone, "{name}: some of {pids:?} live");
    assert!(within(Duration::from_secs(2), || zombies().is_empty()).await, "{name}: zombies {:?}", zombies());
}

#[tokio::test]
async fn the_deadline_ends_the_whole_tree() {
    for (name, count, line) in TREES {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        let began = Instant::now();
        let got = tree(line, &list).deadline(Duration::from_millis(400)).run(&unstopped()).await.unwrap();
        assert_eq!(got.end, End::DeadlinePassed, "{name}");
        assert!(began.elapsed() < Duration::from_secs(3), "{name} took {:?}", began.elapsed());
        let pids = pids(&list, *count).await;
        // Nothing has to be waited for any more: `run` returns when the tree is gone.
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{name}: some of {pids:?} live");
        all_gone(name, &pids).await;
    }
}

#[tokio::test]
async fn stop_ends_the_whole_tree() {
    for (name, count, line) in TREES {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (spawn, stop) = (tree(line, &list), stop.clone());
            async move { spawn.run(&stop).await }
        });
        let pids = pids(&list, *count).await;
        stop.cancel();
        assert_eq!(running.await.unwrap().unwrap().end, End::Stopped, "{name}");
        all_gone(name, &pids).await;
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_the_whole_tree() {
    for (name, count, line) in TREES {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        let child = tree(line, &list).piped_input().start().await.unwrap();
        let pids = pids(&list, *count).await;
        drop(child);
        all_gone(name, &pids).await;
    }
}

#[tokio::test]
async fn dropping_a_run_ends_the_whole_tree() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let running = tokio::spawn(async move {
        let list = list.clone();
        tree(TREES[2].2, &list).run(&unstopped()).await
    });
    let pids = pids(&directory.path().join("list"), 3).await;
    running.abort();
    all_gone("aborted run", &pids).await;
}

#[tokio::test]
async fn one_task_waits_while_another_stops() {
    let child = std::sync::Arc::new(Spawn::new("sleep").arg("60").start().await.unwrap());
    let waiting = tokio::spawn({
        let child = child.clone();
        async move { child.wait().await }
    });
    let stopped = child.stop().await;
    assert_eq!((stopped.signal, waiting.await.unwrap().signal), (Some(15), Some(15)));
    assert!(is_gone(child.pid()));
}

#[tokio::test]
async fn what_a_tree_says_while_it_ends_is_kept() {
    let line = "trap 'echo goodbye; exit 0' TERM; echo hello; sleep 60 & wait";
    let got = Spawn::shell(line).deadline(Duration::from_millis(300)).run(&unstopped()).await.unwrap();
    assert_eq!((got.end, &*got.stdout.text()), (End::DeadlinePassed, "hello\ngoodbye\n"));
}
