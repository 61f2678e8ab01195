//! Ways to end a tree: deadline, stop, drop. After each of them nothing of it is left.

use std::path::Path;
use std::time::Duration;

use process::{End, Spawn};
use tokio::task::JoinSet;
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

/// Ends every tree, all at once, in one way.
async fn each<F: Future<Output = ()> + Send + 'static>(end: fn(Tree) -> F) {
    let mut trees = JoinSet::new();
    for (name, count, line) in TREES {
        trees.spawn(end(Tree { name, count: *count, line, directory: tempfile::tempdir().unwrap() }));
    }
    while let Some(ended) = trees.join_next().await {
        ended.unwrap();
    }
}

struct Tree {
    name: &'static str,
    count: usize,
    line: &'static str,
    directory: tempfile::TempDir,
}

impl Tree {
    fn spawn(&self) -> Spawn {
        tree(self.line, &self.directory.path().join("list"))
    }

    async fn pids(&self) -> Vec<u32> {
        pids(&self.directory.path().join("list"), self.count).await
    }
}

#[tokio::test]
async fn the_deadline_ends_the_whole_tree() {
    each(|tree| async move {
        let got = tree.spawn().deadline(Duration::from_millis(1500)).run(&unstopped()).await.unwrap();
        assert_eq!(got.end, End::DeadlinePassed, "{}", tree.name);
        let pids = tree.pids().await;
        // There is nothing left to wait for: `run` returns when the tree is gone.
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{}: some of {pids:?} live", tree.name);
        all_gone(tree.name, &pids).await;
    })
    .await;
}

#[tokio::test]
async fn stop_ends_the_whole_tree() {
    each(|tree| async move {
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (spawn, stop) = (tree.spawn(), stop.clone());
            async move { spawn.run(&stop).await }
        });
        let pids = tree.pids().await;
        stop.cancel();
        assert_eq!(running.await.unwrap().unwrap().end, End::Stopped, "{}", tree.name);
        all_gone(tree.name, &pids).await;
    })
    .await;
}

#[tokio::test]
async fn dropping_the_handle_ends_the_whole_tree() {
    each(|tree| async move {
        let child = tree.spawn().piped_input().start().await.unwrap();
        let pids = tree.pids().await;
        drop(child);
        all_gone(tree.name, &pids).await;
    })
    .await;
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
    let got = Spawn::shell(line).deadline(Duration::from_secs(1)).run(&unstopped()).await.unwrap();
    assert_eq!((got.end, &*got.stdout.text()), (End::DeadlinePassed, "hello\ngoodbye\n"));
}
