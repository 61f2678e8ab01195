//! Children and the life of the process that started them. A second copy of this test program plays that
//! process: it runs `in_a_process_of_its_own` alone, told by a variable what to do.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use process::{ProcessError, Spawn};

use super::{is_gone, pids, unstopped, within};

const PART: &str = "DRAGOMAN_TEST_PART";

fn play(part: &str, list: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "outlive::in_a_process_of_its_own", "--nocapture"])
        .env(PART, part)
        .env("LIST", list)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Does nothing unless another test plays a part through it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    match std::env::var(PART).as_deref() {
        Ok("wait to be killed") => {
            let _child = Spawn::shell("echo $$ >> $LIST; exec sleep 60").start().await.unwrap();
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        Ok("shut down") => {
            let line = "echo $$ >> $LIST; trap '' TERM; sleep 3600 & echo $! >> $LIST; wait; wait";
            let _kept = Spawn::shell(line).start().await.unwrap();
            // Nothing here ends by itself while the test may run.
            let patient = Duration::from_secs(3600);
            let ending = Spawn::shell(line).grace(patient).start().await.unwrap();
            std::mem::forget(Spawn::shell(line).grace(patient).start().await.unwrap());
            pids(Path::new(&std::env::var("LIST").unwrap()), 6).await;
            ending.begin_stop();
            process::shutdown().await;
            let refused = Spawn::new("true").run(&unstopped()).await;
            assert!(matches!(refused, Err(ProcessError::ShuttingDown)));
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_killed_parent_takes_its_child_along() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let mut parent = play("wait to be killed", &list);
    let child = pids(&list, 1).await;
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(within(Duration::from_secs(2), || is_gone(child[0])).await);
}

#[tokio::test]
async fn shutdown_ends_every_tree_and_starts_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let mut parent = play("shut down", &list);
    let children = pids(&list, 6).await;
    let status = tokio::task::spawn_blocking(move || parent.wait()).await.unwrap().unwrap();
    assert!(status.success());
    assert!(children.iter().all(|pid| is_gone(*pid)), "some of {children:?} live");
}

#[tokio::test]
async fn a_child_outlives_the_thread_that_asked_for_it() {
    let child = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { Spawn::shell("sleep 0.5; exit 7").start().await.unwrap() })
    })
    .join()
    .unwrap();
    assert_eq!(child.wait().await.code, Some(7));
}
