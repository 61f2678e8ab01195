//! Tools that run as tasks, and calls whose progress never ends.

use super::*;

#[tokio::test]
async fn a_task_is_followed_to_its_result() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "tasks")]);
    let running = reaches(&servers, "s", ServerStatus::Running).await;
    assert_eq!(running.tools.len(), 3);
    let result = call(&servers, "s__work", json!({})).await;
    assert!(!result.error && said(&result.parts) == "the result of work", "{}", said(&result.parts));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_task_that_never_ends_is_cancelled_at_its_deadline() {
    let bench = Bench::new();
    let options = Options { call_timeout: Duration::from_millis(200), ..bench.options() };
    let servers = bench.with_options(&[("s", "tasks")], options);
    reaches(&servers, "s", ServerStatus::Running).await;
    let result = call(&servers, "s__toil", json!({})).await;
    assert!(result.error && said(&result.parts).contains("did not end"), "{}", said(&result.parts));
    assert!(within(LONG, || bench.told("s", "cancelled") == [json!("toil")]).await);
    servers.shutdown().await;
}

#[tokio::test]
async fn endless_progress_keeps_no_call_alive() {
    let bench = Bench::new();
    let options = Options { call_timeout: Duration::from_millis(200), ..bench.options() };
    let servers = bench.with_options(&[("s", "chatty")], options);
    reaches(&servers, "s", ServerStatus::Running).await;
    let result = call(&servers, "s__chatter", json!({})).await;
    assert!(result.error && said(&result.parts).contains("did not answer"), "{}", said(&result.parts));
    assert!(within(LONG, || bench.told("s", "cancelled").len() == 1).await, "it is cancelled at the server");
    servers.shutdown().await;
}
