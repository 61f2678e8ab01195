//! A confined child behaves like any other: exit codes, signals, deadlines, missing programs, input and output.

use std::fs;
use std::time::Duration;

use process::sandbox::Allowance;
use process::{End, ProcessError, Spawn};
use tokio_util::sync::CancellationToken;

use crate::kit::World;

#[tokio::test]
async fn it_ends_as_the_command_ended() {
    let world = World::new();
    for (line, end) in [
        ("exit 0", End::Exited(0)),
        ("exit 42", End::Exited(42)),
        ("kill -TERM $$", End::Signalled(15)),
        ("kill -KILL $$", End::Signalled(9)),
        ("kill -SEGV $$", End::Signalled(11)),
    ] {
        let (finished, text) = world.run(line).await;
        assert_eq!(finished.end, end, "{line}: {text}");
    }
}

#[tokio::test]
async fn input_output_and_the_working_folder() {
    let world = World::new();
    let spawn =
        world.spawn("pwd; cat; echo late >&2; echo $DRAGOMAN_CHILD | grep -c .").input("from outside\n");
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    let text = finished.stdout.text();
    assert_eq!(text, format!("{}\nfrom outside\nlate\n1\n", world.workspace.display()));
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let world = World::new();
    let spawn = Spawn::new("no-such-program")
        .directory(&world.workspace)
        .confine(world.sandbox.clone(), Allowance::default());
    let error = spawn.run(&CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&error, ProcessError::NotFound { program } if program == "no-such-program"), "{error}");
    fs::write(world.workspace.join("text"), "no program").unwrap();
    let spawn =
        Spawn::new("./text").directory(&world.workspace).confine(world.sandbox.clone(), Allowance::default());
    let error = spawn.run(&CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&error, ProcessError::NotExecutable { .. }), "{error}");
}

#[tokio::test]
async fn a_command_may_clean_up_when_it_is_stopped() {
    let world = World::new();
    let spawn =
        world.spawn("trap 'echo cleaned > cleaned; exit 3' TERM; echo ready; while :; do sleep 0.05; done");
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let finished =
        spawn.grace(Duration::from_secs(20)).run_with(&stop, move |_, _| stopping.cancel()).await.unwrap();
    assert_eq!(finished.end, End::Stopped);
    assert_eq!(fs::read_to_string(world.workspace.join("cleaned")).unwrap(), "cleaned\n");
}

#[tokio::test]
async fn nothing_outlives_a_stopped_command() {
    let world = World::new();
    // A daemon with a session of its own, deaf to every request.
    let line = "setsid bash -c 'trap \"\" TERM HUP INT; while :; do date +%N > beat; sleep 0.02; done' & \
                while [ ! -s beat ]; do sleep 0.01; done; echo ready; trap '' TERM; while :; do sleep 1; done";
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let finished = world.spawn(line).run_with(&stop, move |_, _| stopping.cancel()).await.unwrap();
    assert_eq!(finished.end, End::Stopped);
    let beat = fs::read_to_string(world.workspace.join("beat")).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fs::read_to_string(world.workspace.join("beat")).unwrap(), beat);
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let line = "setsid bash -c 'while :; do date +%N > beat; sleep 0.02; done' >/dev/null 2>&1 & \
                while [ ! -s beat ]; do sleep 0.01; done; echo done";
    let (finished, text) = world.run(line).await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "done\n"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let beat = fs::read_to_string(world.workspace.join("beat")).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fs::read_to_string(world.workspace.join("beat")).unwrap(), beat);
}

#[tokio::test]
async fn late_output_of_a_background_process_is_heard() {
    let world = World::new();
    let (_, text) = world.run("(sleep 0.02; echo late) & echo early").await;
    assert_eq!(text, "early\nlate\n");
}

#[tokio::test]
async fn output_ends_when_the_command_closes_it() {
    let world = World::new();
    let mut child = world.spawn("exec >&- 2>&-; sleep 30").start().await.unwrap();
    let mut output = child.take_stdout().unwrap();
    let mut bytes = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut output, &mut bytes).await.unwrap();
    assert!(child.exit().is_none(), "it still runs: {}", String::from_utf8_lossy(&bytes));
    child.stop().await;
}
