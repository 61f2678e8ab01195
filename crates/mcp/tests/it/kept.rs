//! The tools of a server that ran before are offered at once, and a call waits for the server.

use std::collections::HashMap;

use super::*;
use domain::tool::ServerAction;
use futures_util::FutureExt;
use mcp::ListStore;

#[derive(Default)]
struct MemoryLists(Mutex<HashMap<String, String>>);

impl ListStore for MemoryLists {
    fn read(&self, key: &str) -> Option<String> {
        self.0.lock().unwrap().get(key).cloned()
    }

    fn write(&self, key: &str, text: &str) {
        self.0.lock().unwrap().insert(key.to_owned(), text.to_owned());
    }

    fn remove(&self, key: &str) {
        self.0.lock().unwrap().remove(key);
    }
}

fn options(bench: &Bench, lists: &Arc<MemoryLists>) -> Options {
    Options { kept_lists: Some(lists.clone()), ..bench.options() }
}

fn offers(servers: &Supervisor, name: &str) -> bool {
    servers.tools().iter().any(|tool| tool.spec().name == name)
}

#[tokio::test]
async fn a_server_that_ran_before_is_offered_at_once_and_a_call_waits_for_it() {
    let (bench, lists) = (Bench::new(), Arc::new(MemoryLists::default()));
    let first = bench.with_options(&[("s", "shifting")], options(&bench, &lists));
    assert!(!offers(&first, "echo"), "nothing is known yet");
    assert!(first.first_lists().now_or_never().is_none(), "a new server is waited for");
    reaches(&first, "s", ServerStatus::Running).await;
    first.first_lists().now_or_never().expect("it has answered");
    first.shutdown().await;

    let second = bench.with_options(&[("s", "shifting")], options(&bench, &lists));
    assert_eq!(server(&second, "s").status, ServerStatus::Starting);
    assert!(offers(&second, "echo"), "its tools are known");
    second.first_lists().now_or_never().expect("nobody waits for a server that ran before");
    echoes(&second, "s").await;
    second.shutdown().await;

    // The server has another definition of `echo` now.
    fs::write(bench.log_path("s.again"), "").unwrap();
    let third = bench.with_options(&[("s", "shifting")], options(&bench, &lists));
    let approved = tool(&third, "s__echo");
    let result = approved.run(invocation(json!({}), Port::new(None), CancellationToken::new())).await;
    assert!(result.error && said(&result.parts).contains("no longer offers echo as it was"), "{result:?}");
    assert!(server(&third, "s").error.unwrap().contains("the definition of echo"));
    third.act("s", ServerAction::Stop).await.unwrap();
    third.act("s", ServerAction::Start).await.unwrap();
    reaches(&third, "s", ServerStatus::Running).await;
    assert!(offers(&third, "echo"), "the user's stop allows the new definition");
}

#[tokio::test]
async fn a_server_that_never_answered_is_waited_for_once() {
    let (bench, lists) = (Bench::new(), Arc::new(MemoryLists::default()));
    let first = bench.with_options(&[("s", "mute")], options(&bench, &lists));
    assert!(within(LONG, || !lists.0.lock().unwrap().is_empty()).await, "it is known from now on");
    first.shutdown().await;
    let second = bench.with_options(&[("s", "mute")], options(&bench, &lists));
    assert_eq!(server(&second, "s").status, ServerStatus::Starting);
    second.first_lists().now_or_never().expect("a process later nobody waits");
}

#[tokio::test]
async fn a_call_of_a_kept_tool_ends_when_it_is_stopped() {
    let (bench, lists) = (Bench::new(), Arc::new(MemoryLists::default()));
    let first = bench.with_options(&[("s", "good")], options(&bench, &lists));
    reaches(&first, "s", ServerStatus::Running).await;
    first.shutdown().await;
    let second = bench.with_options(&[("s", "good")], options(&bench, &lists));
    let (tool, stop) = (tool(&second, "s__echo"), CancellationToken::new());
    stop.cancel();
    let result = tool.run(invocation(json!({}), Port::new(None), stop)).await;
    assert!(result.error && said(&result.parts).contains("stopped"), "{result:?}");
}
