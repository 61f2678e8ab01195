//! Real children on Windows (`scripts/cross test` runs them under wine). This test program plays the children itself: it
//! runs `in_a_process_of_its_own` alone, told by a variable what to do. Every wait has a deadline.

#![allow(clippy::disallowed_methods, reason = "tests start and watch processes of their own")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::{End, ParentEnd, ProcessError, Spawn};

const PART: &str = "DRAGOMAN_TEST_PART";
const LIST: &str = "DRAGOMAN_TEST_LIST";
const ARGUMENTS: &[&str] = &["--exact", "windows_tests::in_a_process_of_its_own", "--nocapture"];
const TIMEOUT: Duration = Duration::from_secs(60);

fn part(name: &str, list: &Path) -> Spawn {
    Spawn::new(std::env::current_exe().unwrap()).args(ARGUMENTS).env(PART, name).env(LIST, list)
}

fn play(name: &str, list: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGUMENTS).env(PART, name).env(LIST, list).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Does nothing unless another test plays a part through it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let Ok(name) = std::env::var(PART) else { return };
    let list = PathBuf::from(std::env::var_os(LIST).unwrap());
    let note = || {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&list).unwrap();
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
    };
    match name.as_str() {
        "sleep" => {
            note();
            tokio::time::sleep(TIMEOUT).await;
        }
        "start another and sleep" => {
            note();
            let _child = play("sleep", &list);
            tokio::time::sleep(TIMEOUT).await;
        }
        "start another and end" => {
            note();
            let _child = play("sleep", &list);
            pids(&list, 2).await;
        }
        "keep a child" => {
            let _child = part("sleep", &list).start().await.unwrap();
            tokio::time::sleep(TIMEOUT).await;
        }
        "shut down" => {
            let _child = part("start another and sleep", &list).start().await.unwrap();
            pids(&list, 2).await;
            crate::shutdown().await;
            let refused = Spawn::new("cmd").run(&CancellationToken::new()).await;
            assert!(matches!(refused, Err(ProcessError::ShuttingDown)));
        }
        "repeat the input" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            println!("<{text}>");
            eprintln!("<error>");
        }
        other => panic!("no part is called {other}"),
    }
}

/// The numbers of processes in the list, once there are `count`.
async fn pids(list: &Path, count: usize) -> Vec<u32> {
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(list).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let found: Vec<u32> = whole.lines().filter_map(|line| line.parse().ok()).collect();
        if found.len() >= count {
            return found;
        }
        assert!(begin.elapsed() < TIMEOUT, "the parts named their processes: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn all_gone(pids: &[u32]) {
    for pid in pids {
        let gone = tokio::time::timeout(TIMEOUT / 2, crate::watch_parent(*pid)).await;
        assert!(gone.is_ok(), "{pid} of {pids:?} lives");
    }
}

#[tokio::test]
async fn output_and_end_as_the_child_gave_them() {
    for (line, stdout, stderr, end) in [
        ("echo out", "out", "", End::Exited(0)),
        ("echo err>&2", "", "err", End::Exited(0)),
        ("exit 3", "", "", End::Exited(3)),
    ] {
        let spawn = Spawn::new("cmd").args(["/c", line]);
        let got = spawn.run(&CancellationToken::new()).await.unwrap();
        let texts = (got.stdout.text().trim().to_owned(), got.stderr.text().trim().to_owned());
        assert_eq!((texts.0.as_str(), texts.1.as_str(), got.end), (stdout, stderr, end), "{line}");
    }
    let missing = Spawn::new("no-such-program-here").run(&CancellationToken::new()).await;
    assert!(matches!(missing, Err(ProcessError::NotFound { .. })), "{missing:?}");
}

#[tokio::test]
async fn a_child_reads_its_input_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let input = "line\n".repeat(20_000);
    let spawn = part("repeat the input", &folder.path().join("list")).input(input.clone()).merge_stderr();
    let got = spawn.limit(crate::OutputLimit::default()).run(&CancellationToken::new()).await.unwrap();
    assert_eq!(got.end, End::Exited(0));
    assert!(got.stdout.text().contains("<error>"), "errors are merged into the output");
}

/// npx and most servers of npm are such files.
#[tokio::test]
async fn a_batch_file_is_found_by_its_ending_and_gets_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["cmd", "bat"] {
        let name = format!("tool-{ending}");
        std::fs::write(folder.path().join(format!("{name}.{ending}")), "@echo [%1] [%2]\r\n").unwrap();
        let spawn = Spawn::new(&name).args(["a b", "c&d"]).env("PATH", folder.path());
        let got = spawn.run(&CancellationToken::new()).await.unwrap();
        assert_eq!(got.stdout.text().trim(), r#"["a b"] ["c&d"]"#, "{ending}: {}", got.stderr.text());
    }
}

#[tokio::test]
async fn every_way_to_end_a_child_ends_its_tree() {
    for way in ["stop", "drop", "deadline", "own end"] {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        let (tree, unstopped) = (part("start another and sleep", &list), CancellationToken::new());
        let found = match way {
            "deadline" => {
                let run = tokio::spawn(async move {
                    tree.deadline(Duration::from_secs(5)).run(&CancellationToken::new()).await
                });
                let found = pids(&list, 2).await;
                assert_eq!(run.await.unwrap().unwrap().end, End::DeadlinePassed);
                found
            }
            "own end" => {
                let run = part("start another and end", &list).run(&unstopped).await.unwrap();
                assert_eq!(run.end, End::Exited(0));
                pids(&list, 2).await
            }
            way => {
                let child = tree.start().await.unwrap();
                let found = pids(&list, 2).await;
                assert!(crate::parents::is_below(found[1]), "a grandchild is known as one");
                if way == "stop" {
                    child.stop().await;
                }
                drop(child);
                found
            }
        };
        all_gone(&found).await;
    }
}

#[tokio::test]
async fn a_killed_parent_takes_its_child_along() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let mut parent = play("keep a child", &list);
    let found = pids(&list, 1).await;
    let watched = tokio::spawn(crate::watch_parent(parent.id()));
    tokio::task::yield_now().await;
    parent.kill().unwrap();
    parent.wait().unwrap();
    all_gone(&found).await;
    assert_eq!(tokio::time::timeout(TIMEOUT, watched).await.unwrap().unwrap(), ParentEnd::Died);
}

#[tokio::test]
async fn shutdown_ends_every_tree_and_starts_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let mut parent = play("shut down", &list);
    let found = pids(&list, 2).await;
    let status = tokio::task::spawn_blocking(move || parent.wait()).await.unwrap().unwrap();
    assert!(status.success());
    all_gone(&found).await;
}
