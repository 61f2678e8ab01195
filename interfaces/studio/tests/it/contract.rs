//! The host's side of the contract, with a clock that stands still until everybody waits.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use studio::cli::{Chunk, Cli, CliErrorKind, CliState, MOST_WAITING, Method};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use crate::fake_child::{Do, FakeCli};

fn start(fake: &Arc<FakeCli>) -> (Cli, Arc<Mutex<Vec<String>>>) {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = lines.clone();
    let cli = Cli::start(fake.clone(), Arc::new(move |line| kept.lock().unwrap().push(line)));
    (cli, lines)
}

/// Answers `initialize`, and the rest by the script.
fn ready(
    mut script: impl FnMut(usize, &Value) -> Do + Send + 'static,
) -> impl FnMut(usize, &Value) -> Do + Send {
    move |child, message| match message["method"].as_str() {
        Some("initialize") => Do::Answer(json!({"serverName": "fake"})),
        _ => script(child, message),
    }
}

async fn reach(cli: &Cli, state: CliState) {
    let mut status = cli.status();
    status.wait_for(|status| status.state == state).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ids_rise_and_answers_find_their_requests() {
    let fake = FakeCli::new(ready(|_, message| Do::Answer(message["params"].clone())));
    let (cli, _) = start(&fake);
    let calls = (0..20).map(|number| {
        let cli = cli.clone();
        async move { (number, cli.call(Method::Chat, json!({"number": number}), None).await.unwrap()) }
    });
    for (number, answer) in futures_util::future::join_all(calls).await {
        assert_eq!(answer["number"], number);
    }
    let ids = fake.ids();
    assert_eq!(ids.len(), 21);
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn deadlines_and_retries_are_those_of_the_table() {
    // The seconds between the tries, and after the last one until the error.
    let table = [
        (Method::Generate, vec![60, 60]),
        (Method::Customize, vec![30, 30]),
        (Method::Chat, vec![18, 21, 15]),
    ];
    for (method, expected) in table {
        let fake = FakeCli::new(ready(|_, _| Do::Nothing));
        let (cli, lines) = start(&fake);
        reach(&cli, CliState::Running).await;
        let error = cli.call(method, json!({}), None).await.unwrap_err();
        let end = fake.seen.lock().unwrap().len();
        assert_eq!(error.kind, CliErrorKind::TimedOut);
        let mut times: Vec<u64> = fake.calls(method.name()).iter().map(|(_, at, _)| *at).collect();
        assert_eq!(times.len(), expected.len(), "{method:?}, {end} messages");
        times.push(times[0] + expected.iter().sum::<u64>());
        let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps, expected, "{method:?}");
        assert_eq!(lines.lock().unwrap().len(), expected.len());
        assert_eq!(cli.status().borrow().pending, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn initialize_is_tried_four_times_then_the_child_is_started_again() {
    let fake = FakeCli::new(|child, _| if child == 1 { Do::Nothing } else { Do::Answer(json!({})) });
    let (cli, _) = start(&fake);
    reach(&cli, CliState::Running).await;
    let times: Vec<(usize, u64)> =
        fake.calls("initialize").iter().map(|(child, at, _)| (*child, *at)).collect();
    // 10 s each with pauses of 2, 5 and 10 s; then 5 s until the next child.
    assert_eq!(times, [(1, 0), (1, 12), (1, 27), (1, 47), (2, 62)]);
}

#[tokio::test(start_paused = true)]
async fn errors_that_stay_are_not_tried_again_and_those_that_pass_are() {
    for (code, tries) in [(-32001, 1), (-32002, 1), (-32602, 1), (-32603, 2), (-32004, 2)] {
        let fake = FakeCli::new(ready(move |_, _| Do::Error(code)));
        let (cli, _) = start(&fake);
        let error = cli.call(Method::Customize, json!({}), None).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert_eq!(fake.calls("customize").len(), tries, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_try_that_was_given_up_is_passed_over() {
    let mut first = true;
    let fake = FakeCli::new(ready(move |_, _| {
        if std::mem::take(&mut first) {
            Do::Later(Duration::from_secs(31), json!({"code": "old"}))
        } else {
            Do::Answer(json!({"code": "new"}))
        }
    }));
    let (cli, _) = start(&fake);
    let answer = cli.call(Method::Customize, json!({}), None).await.unwrap();
    assert_eq!(answer["code"], "new");
}

#[tokio::test(start_paused = true)]
async fn chunks_come_in_order_and_begin_anew_after_a_retry() {
    let mut tries = 0;
    let fake = FakeCli::new(ready(move |_, message| {
        tries += 1;
        let id = &message["id"];
        let chunk = |index: u64, text: &str| {
            json!({"jsonrpc": "2.0", "method": "stream/chunk", "params":
                {"requestId": id, "chunk": text, "done": false, "index": index}})
        };
        if tries == 1 {
            return Do::Say(vec![chunk(0, "a"), chunk(1, "b"), chunk(7, "lost")]);
        }
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"code": "xy"}});
        Do::Say(vec![chunk(0, "x"), chunk(1, "y"), json!({"method": "unknown"}), answer])
    }));
    let (cli, _) = start(&fake);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    cli.call(Method::Generate, json!({}), Some(sender)).await.unwrap();
    let mut got = Vec::new();
    while let Some(Chunk { index, text }) = receiver.recv().await {
        got.push(format!("{index}{text}"));
    }
    assert_eq!(got, ["0a", "1b", "0x", "1y"]);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_child_is_started_again_and_gets_what_waited_once() {
    let fake = FakeCli::new(ready(|child, message| match message["method"].as_str() {
        Some("generate") if child < 3 => Do::Die,
        _ => Do::Answer(json!({"child": child})),
    }));
    let (cli, lines) = start(&fake);
    reach(&cli, CliState::Running).await;
    let twice = {
        let cli = cli.clone();
        tokio::spawn(async move { cli.call(Method::Generate, json!({}), None).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = cli.status().borrow().clone();
    assert_eq!((status.state, status.restarts, status.pending), (CliState::Restarting, 1, 1));
    assert!(status.message.unwrap().contains("ended unexpectedly"));
    // A request that comes while there is no child waits for the next one.
    let later = cli.call(Method::Chat, json!({}), None);
    let (first, later) = tokio::join!(twice, later);
    let error = first.unwrap().unwrap_err();
    assert_eq!(error.kind, CliErrorKind::Crashed);
    assert_eq!(later.unwrap()["child"], 3);
    // 5 s before the second child, 10 s before the third.
    let starts: Vec<u64> = fake.calls("initialize").iter().map(|(_, at, _)| *at).collect();
    assert_eq!(starts, [0, 5, 15]);
    assert!(lines.lock().unwrap().iter().any(|line| line.contains("ended unexpectedly")));
    assert_eq!(cli.status().borrow().restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_are_an_error_that_stays_until_somebody_starts_it_again() {
    let fake = FakeCli::with_pipe(1 << 16, 5, ready(|_, _| Do::Answer(json!({}))));
    let began = Instant::now();
    let (cli, _) = start(&fake);
    let waiting = cli.call(Method::Chat, json!({}), None);
    let error = waiting.await.unwrap_err();
    assert_eq!(error.kind, CliErrorKind::Unavailable);
    // 5, 10, 30 and 30 s.
    assert_eq!(began.elapsed().as_secs(), 75);
    reach(&cli, CliState::Failed).await;
    assert!(cli.status().borrow().message.as_ref().unwrap().contains("5 times in a row"));
    let refused = cli.call(Method::Chat, json!({}), None).await.unwrap_err();
    assert_eq!(refused.kind, CliErrorKind::Unavailable);
    cli.restart().await;
    reach(&cli, CliState::Running).await;
    cli.call(Method::Chat, json!({}), None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_wait_while_the_pipe_is_full_and_the_next_is_refused() {
    // The pipe takes `initialize` and little more; the child reads nothing after it.
    let fake = FakeCli::with_pipe(1 << 10, 0, ready(|_, _| Do::Later(Duration::from_secs(20), json!({}))));
    let (cli, _) = start(&fake);
    reach(&cli, CliState::Running).await;
    let padding = "x".repeat(2000);
    let calls: Vec<_> = (0..130)
        .map(|_| {
            let (cli, params) = (cli.clone(), json!({"padding": padding}));
            tokio::spawn(async move { cli.call(Method::Generate, params, None).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let done: Vec<_> = calls.iter().filter(|call| call.is_finished()).collect();
    let waiting = cli.status().borrow().pending;
    assert!((MOST_WAITING..=MOST_WAITING + 4).contains(&waiting), "{waiting}");
    assert_eq!(done.len(), 130 - waiting);
    for call in calls {
        if call.is_finished() {
            let error = call.await.unwrap().unwrap_err();
            assert_eq!(error.code(), Some(-32004));
        } else {
            call.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stderr_reaches_the_console_and_exit_ends_the_child() {
    let fake = FakeCli::new(ready(|_, message| match message["method"].as_str() {
        Some("exit") => Do::Die,
        _ => Do::Complain("careful", json!({})),
    }));
    let (cli, lines) = start(&fake);
    cli.call(Method::Chat, json!({}), None).await.unwrap();
    cli.stop().await;
    assert!(lines.lock().unwrap().contains(&"careful".to_owned()));
    let seen = fake.seen.lock().unwrap();
    let (_, _, last) = seen.last().unwrap();
    assert_eq!(last["method"], "exit");
    assert!(last.get("id").is_none(), "a notification has no id");
    assert_eq!(cli.status().borrow().state, CliState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_not_json_are_told_and_passed_over() {
    let fake = FakeCli::new(ready(|_, message| {
        Do::Say(vec![
            json!("text"),
            json!({"id": 999, "result": 1}),
            json!({"id": message["id"], "result": {"ok": 1}}),
        ])
    }));
    let (cli, _) = start(&fake);
    assert_eq!(cli.call(Method::Chat, json!({}), None).await.unwrap()["ok"], 1);
}

/// A real process in place of the child: it tells its environment, then reads and says nothing.
#[cfg(unix)]
#[tokio::test]
async fn the_child_has_the_environment_that_is_handed_over_and_no_other() {
    let program = studio::cli::Program {
        path: "/bin/sh".into(),
        arguments: vec!["-c".into(), "env >&2; exec cat >/dev/null".into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("OPENAI_API_KEY".into(), "k".into())],
    };
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = lines.clone();
    let cli = Cli::start(Arc::new(program), Arc::new(move |line| kept.lock().unwrap().push(line)));
    let has_told = || lines.lock().unwrap().iter().any(|line| line.starts_with("PATH="));
    for _ in 0..500 {
        if has_told() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The shell may name its own folder and level.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut names: Vec<String> =
        lines.lock().unwrap().iter().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect();
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    // Every child of this program carries the mark.
    assert_eq!(names, ["DRAGOMAN_CHILD", "OPENAI_API_KEY", "PATH"]);
    let began = std::time::Instant::now();
    cli.stop().await;
    assert!(began.elapsed().as_secs() < 5, "a child that ignores `exit` is ended by force");
}
