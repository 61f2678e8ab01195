//! How front-ends, chats and the engine end.

use domain::{Command, Outcome};
use serde_json::json;
use testkit::ScriptedAnswer;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::client::{calls, person};

#[tokio::test(start_paused = true)]
async fn a_detached_front_end_leaves_the_audience_and_the_last_one_closes_the_chat() {
    let bench = Bench::new();
    let mut first = bench.client().await;
    first.run("one").await;
    let mut second = bench.join(&first.session).await;
    second.send(Command::Detach).await;
    first.run("two").await;
    assert!(second.is_silent().await, "nothing reaches a front-end that left");
    assert!(bench.store.holds_lease(&first.session));
    first.send(Command::Detach).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(!bench.store.holds_lease(&first.session), "another process may have the chat");
    assert!(bench.live.state(&first.session).is_none(), "nothing of it is kept");
}

/// Whoever opens a chat while its last front-end leaves gets it, however close both are.
#[tokio::test(start_paused = true)]
async fn a_chat_that_is_closing_is_loaded_again_for_what_comes_meanwhile() {
    for is_close in [false, true] {
        let bench = Bench::new();
        let mut first = bench.client().await;
        first.run("one").await;
        let mut second = bench.attach(person()).await;
        second.session = first.session.clone();
        let session = first.session.clone();
        let leave = if is_close {
            Command::Close { session, reply: tokio::sync::oneshot::channel().0 }
        } else {
            Command::Detach
        };
        first.send(leave).await;
        let loaded =
            second.call(|session, reply| Command::Load { session, servers: Vec::new(), reply }).await;
        assert!(loaded.is_ok(), "{loaded:?}");
        second.prompt("two").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_front_end_that_went_without_a_word_is_found_at_the_next_attach() {
    let bench = Bench::new();
    let mut first = bench.client().await;
    first.run("one").await;
    let session = first.session.clone();
    drop(first);
    let _second = bench.attach(person()).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(bench.live.state(&session).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_and_a_shutdown_right_after_it_end_the_turn() {
    for tool in ["eca__wait", "eca__stubborn"] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.answers([ScriptedAnswer::call(tool, json!({}))]);
        client.prompt("go").await.unwrap();
        client.until_progress("Calling tool").await;
        client.send(Command::Detach).await;
        let other = bench.attach(person()).await;
        other.call(|_, reply| Command::Shutdown { reply }).await.unwrap();
        let state = bench.stored_state(&client.session);
        assert_eq!(state.open_turn(), None, "{tool}");
        assert!(calls(&state)[0].state.is_over(), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_keeps_its_deadline_whatever_a_tool_does() {
    for tool in ["eca__wait", "eca__stubborn"] {
        let bench = Bench::new();
        let mut client = bench.client().await;
        bench.answers([ScriptedAnswer::call(tool, json!({}))]);
        client.prompt("go").await.unwrap();
        client.until_progress("Calling tool").await;
        let begun = Instant::now();
        client.call(|_, reply| Command::Shutdown { reply }).await.unwrap();
        // On the paused clock this is exact.
        assert!(begun.elapsed() <= engine::SHUTDOWN_TIMEOUT, "{tool}: {:?}", begun.elapsed());
        let state = bench.stored_state(&client.session);
        assert_eq!(state.open_turn(), None, "{tool}: the turn ended before the process");
        assert!(calls(&state)[0].state.is_over(), "{tool}");
        assert!(!bench.store.holds_lease(&client.session), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_a_stubborn_tool_three_seconds() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::call("eca__stubborn", json!({}))]);
    client.prompt("go").await.unwrap();
    client.until_progress("Calling tool").await;
    client.cancel().await;
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    let state = bench.check_state(&client.session).await;
    assert!(calls(&state)[0].state.is_over() && calls(&state)[0].error);
}

#[tokio::test(start_paused = true)]
async fn a_closed_chat_opens_again_and_a_deleted_one_is_gone() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    client.close().await.unwrap();
    client.close().await.unwrap();
    assert_eq!(client.run("two").await, Outcome::Done, "a prompt loads it");
    client.call(|session, reply| Command::Delete { session, reply }).await.unwrap();
    assert!(bench.store.facts(&client.session).is_empty());
    assert!(client.load().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn commands_that_come_while_a_chat_loads_are_answered_in_order() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    client.run("one").await;
    client.close().await.unwrap();
    let change = domain::command::SessionSettings { title: Some("named".into()), ..Default::default() };
    let (configured, accepted, info) =
        tokio::join!(client.configure(change), client.prompt("two"), client.load());
    assert_eq!(configured.unwrap().title.as_deref(), Some("named"));
    assert_eq!(accepted.unwrap().model, "test/one");
    assert!(info.unwrap().busy);
    assert_eq!(client.turn_end().await, Outcome::Done);
    bench.check_state(&client.session).await;
}
