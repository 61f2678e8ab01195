//! Runs to the end: what comes out, how it ends, what is said when it cannot start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use process::{Child, End, Finished, OutputLimit, ProcessError, Source, Spawn};

use super::{is_gone, pids, unstopped, within, zombies};

async fn run(spawn: Spawn) -> Finished {
    spawn.run(&unstopped()).await.expect("it starts")
}

#[tokio::test]
async fn output_and_end_as_the_child_gave_them() {
    let rows: &[(&str, &str, &str, End)] = &[
        ("echo out; echo err >&2", "out\n", "err\n", End::Exited(0)),
        ("exit 3", "", "", End::Exited(3)),
        ("kill -9 $$", "", "", End::Signalled(9)),
        ("printf 'a\\377b'", "a\u{fffd}b", "", End::Exited(0)),
        ("cat", "", "", End::Exited(0)),
        ("no-such-program-of-ours 2>/dev/null", "", "", End::Exited(127)),
        // What finishes shortly after the shell is heard to its end.
        ("{ sleep 0.05; echo late; } &", "late\n", "", End::Exited(0)),
    ];
    for (line, stdout, stderr, end) in rows {
        let got = run(Spawn::shell(*line)).await;
        assert_eq!((&*got.stdout.text(), &*got.stderr.text(), got.end), (*stdout, *stderr, *end), "{line}");
    }
}

/// The thread that reads is kept from it for longer than it would wait for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_machine_loses_no_output() {
    for _ in 0..8 {
        let spawn = Spawn::shell("printf a; sleep 0.1; printf b; printf c >&2").grace(Duration::ZERO);
        let busy = |_: Source, _: &[u8]| std::thread::sleep(Duration::from_millis(320));
        let got = spawn.run_with(&unstopped(), busy).await.expect("it starts");
        assert_eq!((&*got.stdout.text(), &*got.stderr.text()), ("ab", "c"));
    }
}

#[tokio::test]
async fn bytes_go_in_and_come_out_unchanged() {
    let input: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let limit = OutputLimit { head: 1 << 20, tail: 0 };
    let got = run(Spawn::new("cat").input(input.clone()).limit(limit)).await;
    assert_eq!((got.end, got.stdout.head == input), (End::Exited(0), true));
}

#[tokio::test]
async fn a_child_that_closes_its_input_early_is_no_error() {
    let got = run(Spawn::shell("exec <&-; sleep 0.05; echo done").input(vec![b'x'; 1 << 20])).await;
    assert_eq!((&*got.stdout.text(), got.end), ("done\n", End::Exited(0)));
}

#[tokio::test]
async fn a_flood_is_bounded_and_counted() {
    let limit = OutputLimit { head: 1000, tail: 1000 };
    let got = run(Spawn::shell("head -c 50000000 /dev/zero; echo end").limit(limit)).await;
    assert_eq!(got.end, End::Exited(0));
    assert_eq!((got.stdout.head.len(), got.stdout.tail.len(), got.stdout.total()), (1000, 1000, 50_000_004));
    assert!(got.stdout.text().ends_with("end\n"));
    assert!(got.stdout.text().contains("[… 49998004 bytes left out …]"));
}

#[tokio::test]
async fn output_is_shown_as_it_comes() {
    let mut seen = Vec::new();
    let spawn = Spawn::shell("echo one; sleep 0.3; echo two >&2; sleep 0.3; echo three");
    let see = |source, bytes: &[u8]| seen.push((source, String::from_utf8_lossy(bytes).into_owned()));
    spawn.run_with(&unstopped(), see).await.unwrap();
    let seen: Vec<(Source, &str)> = seen.iter().map(|(source, text)| (*source, text.as_str())).collect();
    assert_eq!(seen, [(Source::Stdout, "one\n"), (Source::Stderr, "two\n"), (Source::Stdout, "three\n")]);
}

#[tokio::test]
async fn merged_errors_keep_their_place() {
    let got = run(Spawn::shell("echo a; echo b >&2; echo c; echo d >&2").merge_stderr()).await;
    assert_eq!((&*got.stdout.text(), got.stderr.is_empty()), ("a\nb\nc\nd\n", true));
}

#[tokio::test]
async fn the_environment_is_what_was_asked_for() {
    let show = || Spawn::new("/bin/sh").arg("-c").arg("echo \"$A|$B|${HOME:+home}\"");
    let rows = [
        (show().env("A", "1").env("B", "2"), "1|2|home\n"),
        (show().env("A", "1").without_env(["A", "HOME"]), "||\n"),
        (show().clear_environment().envs([("B", "2")]), "|2|\n"),
    ];
    for (spawn, want) in rows {
        assert_eq!(run(spawn).await.stdout.text(), want);
    }
}

#[tokio::test]
async fn runs_where_it_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    let got = run(Spawn::shell("pwd -P").directory(&place)).await;
    assert_eq!(got.stdout.text().trim_end(), place.to_str().unwrap());
}

#[tokio::test]
async fn what_cannot_start_is_said_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o600)).unwrap();
    let gone = directory.path().join("gone");
    let rows = [
        (
            Spawn::new("no-such-program-of-ours"),
            "There is no program “no-such-program-of-ours” on the PATH. Install it or give its full path."
                .into(),
        ),
        (
            Spawn::new(&plain),
            format!("“{}” may not be executed. Check its permissions (chmod +x).", plain.display()),
        ),
        (
            Spawn::new("true").directory(&gone),
            format!(
                "The working directory {} does not exist or is no directory. Choose another one.",
                gone.display()
            ),
        ),
        (
            Spawn::new("true").arg("a\0b"),
            "“true” could not be started: nul byte found in provided data.".to_owned(),
        ),
    ];
    for (spawn, want) in rows {
        let error: ProcessError = spawn.run(&unstopped()).await.expect_err("it cannot start");
        assert_eq!(error.to_string(), want);
    }
}

#[tokio::test]
async fn without_bash_a_shell_line_still_runs() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", directory.path().join("sh")).unwrap();
    let got = run(Spawn::shell("echo here").env("PATH", directory.path())).await;
    assert_eq!(got.stdout.text(), "here\n");
}

#[tokio::test]
async fn what_a_child_left_running_does_not_hold_us_up() {
    // In the group it is ended; a daemon with a session of its own is left alone and not waited for.
    let rows = [
        ("sleep 3600 & echo $! >> $LIST", false),
        (
            "setsid bash -c 'echo $$ >> $LIST; exec sleep 3600' & until [ -s $LIST ]; do sleep 0.01; done",
            true,
        ),
    ];
    for (line, survives) in rows {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        let got = run(Spawn::shell(line).env("LIST", &list)).await;
        assert_eq!(got.end, End::Exited(0), "{line}");
        let pid = pids(&list, 1).await[0];
        assert_eq!(!within(Duration::from_secs(1), || is_gone(pid)).await, survives, "{line}");
        if survives {
            run(Spawn::new("kill").arg(pid.to_string())).await;
        }
    }
}

#[tokio::test]
async fn a_long_lived_child_is_spoken_to_through_its_pipes() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let mut child: Child =
        Spawn::shell("while read -r line; do echo \"got $line\"; done").piped_input().start().await.unwrap();
    let mut stdin = child.take_stdin().unwrap();
    let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
    for word in ["one", "two"] {
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), format!("got {word}"));
    }
    assert_eq!(child.exit(), None);
    drop(stdin);
    assert!(child.wait().await.success());
    assert!(child.exit().is_some_and(|exit| exit.success()));
}

#[tokio::test]
async fn many_children_at_once_leave_no_zombie() {
    let runs: Vec<_> =
        (0..40).map(|number| tokio::spawn(run(Spawn::shell(format!("exit {}", number % 3))))).collect();
    for (number, finished) in runs.into_iter().enumerate() {
        assert_eq!(finished.await.unwrap().end, End::Exited((number % 3) as i32));
    }
    assert!(within(Duration::from_secs(5), || zombies().is_empty()).await, "zombies: {:?}", zombies());
}
