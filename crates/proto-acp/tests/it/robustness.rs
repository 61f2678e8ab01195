//! Clients that are odd, slow or gone.

use std::time::Duration;

use domain::event::Channel;
use domain::item::ItemKind;
use domain::{Fact, Outcome, SessionId};
use serde_json::{Value, json};
use testkit::FakeEngine;
use testkit::fake_engine::{Seen, item};

use crate::client::{Client, catalog};

#[tokio::test]
async fn what_is_unknown_or_broken_ends_nothing() {
    let (mut client, _engine, session) = Client::session(json!({})).await;
    for method in ["_zed/secret", "session/set_title", "no/such", "session/update"] {
        let (code, sentence) = client.refused(method, json!({"sessionId": session})).await;
        assert_eq!(code, -32601);
        assert!(sentence.contains(method), "{sentence}");
    }
    client.notify("_zed/told", json!({"x": 1})).await;
    client.notify("session/cancel", json!({"sessionId": 7})).await;
    client.notify("session/cancel", json!({"sessionId": "no"})).await;
    client.notify("$/cancel_request", json!({"requestId": 99})).await;
    for line in ["{", "[]", "7", "{\"jsonrpc\":\"2.0\"}", "", "\u{feff}", "{\"id\":1}"] {
        client.send_line(line).await;
    }
    client.send(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}})).await;
    client.request("session/list", json!({"_meta": {"a": 1}, "later": {}})).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_nothing_and_costs_little() {
    let mut engine = FakeEngine::start(catalog());
    let mut client = Client::connect(&engine, 2048);
    client.request("initialize", json!({"protocolVersion": 1})).await;
    client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
    let Seen::Open { session, .. } = engine.next().await else { panic!("a chat is opened") };
    let id = client.prompt(&session, "count").await;
    let (_, turn, _) = engine.prompt().await;
    let mut whole = String::new();
    let kind = |text: &str| ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None };
    engine.fact(&session, Fact::ItemStarted { item: item(2, turn, kind("")) });
    for number in 0..20_000 {
        let text = format!("{number} ");
        engine.delta(&session, 2, Channel::Text, whole.len() as u64, &text);
        whole.push_str(&text);
    }
    engine.fact(&session, Fact::ItemEnded { item: item(2, turn, kind(&whole)) });
    for number in 0..3000 {
        let kind = ItemKind::SystemText { text: format!("line {number}") };
        engine.fact(&session, Fact::ItemEnded { item: item(10 + number, turn, kind) });
    }
    engine.end(&session, turn, Outcome::Done);
    // The engine said it all while nobody read.
    let response = client.response(id).await;
    assert_eq!(response["result"]["stopReason"], "end_turn");
    let text = |message: &str| -> String {
        let of = client.unread().into_iter().filter(|it| it["messageId"] == message);
        of.map(|it| it["content"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(text("item-2"), whole);
    let lines = client
        .unread()
        .into_iter()
        .filter(|it| it["content"]["text"].as_str().is_some_and(|text| text.starts_with("line ")));
    assert_eq!(lines.count(), 3000);
}

#[tokio::test]
async fn who_hangs_up_is_gone() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let prompt = client.prompt(&session, "go").await;
    engine.prompt().await;
    let list = client.call("session/list", json!({})).await;
    client.hang_up().await;
    // What was under way is still answered.
    let mut answered: Vec<Value> = Vec::new();
    while let Some(message) = client.receive().await {
        answered.push(message["id"].clone());
    }
    assert!(answered.contains(&json!(list)) && answered.contains(&json!(prompt)), "{answered:?}");
    assert_eq!(engine.next().await, Seen::Detach);
    tokio::time::timeout(Duration::from_secs(5), &mut client.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn two_sessions_do_not_mix() {
    let (mut client, mut engine, first) = Client::session(json!({})).await;
    let opened = client.request("session/new", json!({"cwd": "/v", "mcpServers": []})).await;
    let second = SessionId::new(opened["sessionId"].as_str().unwrap());
    engine.next().await;
    let (one, two) = (client.prompt(&first, "a").await, client.prompt(&second, "b").await);
    let (_, turn_one, _) = engine.prompt().await;
    let (_, turn_two, _) = engine.prompt().await;
    engine.begin(&second, turn_two, 1, "b");
    engine.say(&second, turn_two, 2, "to b");
    engine.begin(&first, turn_one, 1, "a");
    engine.say(&first, turn_one, 2, "to a");
    engine.end(&second, turn_two, Outcome::Done);
    engine.end(&first, turn_one, Outcome::MaxTokens);
    assert_eq!(client.response(one).await["result"]["stopReason"], "max_tokens");
    assert_eq!(client.response(two).await["result"]["stopReason"], "end_turn");
}
