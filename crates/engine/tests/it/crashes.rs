//! What a panic, a kill or a full disk leaves behind.

use domain::event::EventBody;
use domain::tool_call::ToolState;
use domain::{Failure, FailureKind, Outcome};
use serde_json::json;
use std::time::Duration;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::{calls, lines};

fn is_internal(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { failure } if failure.kind == FailureKind::Internal)
}

#[tokio::test(start_paused = true)]
async fn a_panic_leaves_no_call_and_no_question_open() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::text("I will")
        .and_call("eca__read", json!({"outside": "/far/away"}))
        .and_call("eca__panic_in_review", json!({}))]);
    client.prompt("do it").await.unwrap();
    let ask = client.next_ask().await;
    assert!(is_internal(&client.turn_end().await));
    let state = bench.check_state(&client.session).await;
    assert_eq!(state.open_asks().count(), 0);
    assert_eq!(state.open_turn(), None);
    let states: Vec<ToolState> = calls(&state).into_iter().map(|call| call.state).collect();
    assert_eq!(states, vec![ToolState::Stopped { unknown: false }; 2]);
    client.answer(ask.id, domain::Answer::Allow { remember: false }).await;
    assert_eq!(client.run("again").await, Outcome::Done, "the chat goes on");
    bench.check_state(&client.session).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_panics_interrupts_its_text() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let start = domain::ModelEvent::BlockStarted { block: 9, kind: domain::model::BlockKind::Text };
    let delta = domain::ModelEvent::BlockDelta { block: 9, text: "half".into() };
    let answer = ScriptedAnswer::default().then(ModelStep::Event(start)).then(ModelStep::Event(delta));
    bench.models.answer(answer.then(ModelStep::Panic));
    assert!(is_internal(&client.run("hello").await));
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state), ["user hello", "interrupted half"]);
    assert_eq!(client.run("again").await, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_alone() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__panic_in_run", json!({}))]);
    assert_eq!(client.run("go").await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert!(calls(&state)[0].error);
    assert!(
        bench.last_sent().iter().any(|text| text.contains("mistake in Dragoman")),
        "{:?}",
        bench.last_sent()
    );
}

#[tokio::test(start_paused = true)]
async fn a_killed_turn_is_ended_by_the_next_process() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::text("looking").and_call("eca__wait", json!({}))]);
    client.prompt("go").await.unwrap();
    client.until_progress("Calling tool").await;
    bench.kill();
    let other = bench.other_process();
    let mut client = other.join(&client.session).await;
    let state = other.check_state(&client.session).await;
    assert_eq!(state.open_turn(), None);
    assert_eq!(calls(&state)[0].state, ToolState::Stopped { unknown: true }, "nobody knows how far it came");
    assert_eq!(client.run("and now?").await, Outcome::Done);
    assert!(
        other.last_sent().iter().any(|text| text.contains("outcome is unknown")),
        "{:?}",
        other.last_sent()
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_the_turn_and_the_chat_goes_on_when_there_is_room() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    let start = domain::ModelEvent::BlockStarted { block: 9, kind: domain::model::BlockKind::Text };
    let mut answer = ScriptedAnswer::default().then(ModelStep::Event(start));
    for _ in 0..50 {
        let delta = domain::ModelEvent::BlockDelta { block: 9, text: "x".repeat(5000) };
        answer = answer.then(ModelStep::Event(delta)).then(ModelStep::Wait(Duration::from_millis(20)));
    }
    bench.models.answer(answer);
    client.prompt("two").await.unwrap();
    client.until(|body| matches!(body, EventBody::Delta(_)).then_some(())).await;
    bench.store.fail_appends(Some(Failure::internal("The disk is full.")));
    client.until(|body| matches!(body, EventBody::Lost { .. }).then_some(())).await;
    // The error may have been seen by a commit that nobody awaited: the turn must end all the same.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let info = client.load().await.unwrap();
    assert!(!info.busy, "the turn is over");
    bench.store.fail_appends(None);
    client.prompt("three").await.unwrap();
    assert_eq!(client.turn_end().await, Outcome::Interrupted, "the lost turn is ended first");
    assert_eq!(client.turn_end().await, Outcome::Done);
    let state = bench.check_state(&client.session).await;
    assert_eq!(lines(&state).len(), 6, "{:?}", lines(&state));
    assert!(lines(&state)[3].starts_with("interrupted x"));
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_cannot_be_stored_is_not_shown() {
    let bench = Bench::new();
    let client = bench.client().await;
    bench.check_state(&client.session).await;
    bench.store.fail_appends(Some(Failure::internal("The disk is full.")));
    let change = domain::command::SessionSettings { trust: Some(true), ..Default::default() };
    assert!(client.configure(change).await.is_err());
    assert_eq!(client.load().await.unwrap().settings.trust, None);
}
