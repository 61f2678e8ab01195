//! What a page reads and what its commands become.

use std::sync::Arc;

use domain::ask::{Answer, Ask, AskKind};
use domain::command::{RollbackScope, SessionSettings};
use domain::event::Channel;
use domain::item::{ItemKind, Part, PlanEntry, PlanStatus};
use domain::tool_call::{Details, FileChange, Origin};
use domain::{AskId, EventBody, Fact, ItemId, Outcome, Recorded, SessionId, ToolCall, ToolState, TurnId};
use serde_json::{Value, json};
use testkit::fake_engine::{Seen, item};

use crate::{Events, Served};

fn id() -> SessionId {
    SessionId::new("c")
}

fn call(state: ToolState, details: Option<Details>) -> ToolCall {
    ToolCall {
        call_id: "1".into(),
        name: "edit_file".into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: Some(json!({"path": "a\u{202e}b"})),
        state,
        summary: "Edit".into(),
        details,
        manual_approval: true,
        live_output: String::new(),
        result: vec![Part::text("ok")],
        error: false,
        millis: 3,
        locations: Vec::new(),
        provider: None,
    }
}

fn user(number: u64, text: &str) -> Fact {
    let kind = ItemKind::UserMessage { text: text.into(), parts: vec![Part::text(text)] };
    Fact::ItemEnded { item: item(number, TurnId(1), kind) }
}

fn begun(number: u64) -> Fact {
    let kind = ItemKind::AgentMessage { text: String::new(), interrupted: false, provider: None };
    Fact::ItemStarted { item: item(number, TurnId(1), kind) }
}

/// The fold of a page, over the items and their texts.
fn texts(events: &[(String, Value)]) -> Vec<(String, String)> {
    let mut items: Vec<(String, String)> = Vec::new();
    for (name, data) in events {
        let id = data["item"].as_str().unwrap_or_default().to_owned();
        let text = data["text"].as_str().unwrap_or_default();
        match (name.as_str(), items.iter_mut().find(|(known, _)| *known == id)) {
            ("item", Some((_, known))) => text.clone_into(known),
            ("item", None) => items.push((id, text.to_owned())),
            ("grow", Some((_, known))) => known.push_str(text),
            _ => {}
        }
    }
    items
}

fn entries(snapshot: &Value) -> Vec<(String, Value)> {
    let entries = snapshot["entries"].as_array().unwrap();
    entries.iter().map(|entry| (entry["event"].as_str().unwrap().to_owned(), entry["data"].clone())).collect()
}

/// A reader that does not know the events finds the words of a chat beside them.
#[tokio::test]
async fn a_chat_has_its_words_as_text() {
    let started = Fact::TurnStarted { turn: TurnId(1), model: "a/plain".into() };
    let served = Served::start(vec![started, user(1, "Hello")]).await;
    let (status, chat) = served.get("/chats/c").await;
    assert_eq!(status, 200);
    let entries = chat["entries"].as_array().unwrap();
    let found: Vec<_> = entries.iter().map(|it| (it["event"].as_str(), it["text"].as_str())).collect();
    assert_eq!(found, [(Some("turn"), None), (Some("item"), Some("Hello"))]);
}

/// A stream begins in the middle of an answer and ends with what a later reader finds.
#[tokio::test]
async fn live_and_stored_are_the_same() {
    let started = Fact::TurnStarted { turn: TurnId(1), model: "a/plain".into() };
    let grew = Fact::ItemGrew { item: ItemId(2), channel: Channel::Text, offset: 0, text: "Grü".into() };
    let mut served = Served::start(vec![started, user(1, "Hello"), begun(2), grew]).await;
    let mut events = Events::open(&served, "/chats/c/events").await;
    while !matches!(served.engine.next().await, Seen::Load { .. }) {}
    let (name, snapshot) = events.next().await;
    assert_eq!(name, "snapshot");
    let mut seen = entries(&snapshot);
    // Deltas run ahead of the journal; what the journal brings again is not shown twice.
    served.engine.delta(&id(), 2, Channel::Text, 4, "ße");
    served.engine.fact(
        &id(),
        Fact::ItemGrew { item: ItemId(2), channel: Channel::Text, offset: 4, text: "ße, Welt".into() },
    );
    served.engine.say(&id(), TurnId(1), 2, "Grüße, Welt!");
    served.engine.end(&id(), TurnId(1), Outcome::Stopped);
    loop {
        let event = events.next().await;
        let is_end = event.0 == "turn";
        seen.push(event);
        if is_end {
            break;
        }
    }
    assert_eq!(seen.last().unwrap().1["outcome"], "stopped");
    let live = texts(&seen);
    assert_eq!(live, [("item-1".into(), "Hello".into()), ("item-2".into(), "Grüße, Welt!".into())]);
    let (status, stored) = served.get("/chats/c").await;
    assert_eq!(status, 200);
    assert_eq!(texts(&entries(&stored)), live);
}

#[tokio::test]
async fn calls_show_what_they_change_and_what_is_hidden() {
    let change = FileChange {
        path: "/w/a".into(),
        diff: "-a\n+b\u{200b}\n".into(),
        lines_added: 1,
        lines_removed: 1,
        old_text: None,
        new_text: None,
    };
    let waiting = call(ToolState::Waiting { ask: AskId(1) }, Some(Details::FileChange(change)));
    let kind = ItemKind::ToolCall(Box::new(waiting));
    let reason = "It could change something.\u{202e}".to_owned();
    let ask = Ask {
        id: AskId(1),
        turn: TurnId(1),
        item: Some(ItemId(2)),
        kind: AskKind::Approval { reason, keys: vec!["edit".into()] },
    };
    let tasks = Details::Tasks {
        entries: vec![PlanEntry { text: "One".into(), status: PlanStatus::InProgress, priority: None }],
    };
    let done = ItemKind::ToolCall(Box::new(call(ToolState::Done, Some(tasks))));
    let served = Served::start(vec![
        user(1, "x"),
        Fact::ItemEnded { item: item(3, TurnId(1), done) },
        Fact::ItemChanged { item: item(2, TurnId(1), kind) },
        Fact::AskRaised { ask },
    ])
    .await;
    let (_, chat) = served.get("/chats/c").await;
    let text = chat.to_string();
    assert!(!text.contains('\u{202e}') && !text.contains('\u{200b}'), "{text}");
    let shown = entries(&chat);
    let call = &shown.iter().find(|(_, data)| data["item"] == "item-2").unwrap().1;
    assert_eq!(call["state"], "waiting");
    assert_eq!(call["details"]["added"], 1);
    assert_eq!(shown.last().unwrap().0, "ask");
    let (_, tasks) = served.get("/chats/c/tasks").await;
    assert_eq!(tasks, json!({"tasks": [{"text": "One", "status": "inProgress", "priority": null}]}));
    let (_, cost) = served.get("/chats/c/cost").await;
    assert_eq!(cost["outputTokens"], 0);
}

/// Each route becomes its command, and a page can set no trust.
#[tokio::test]
async fn requests_become_commands() {
    let mut served = Served::start(vec![user(1, "x")]).await;
    let session = id();
    let check = async |served: &mut Served, method: &str, path: &str, body: Value, wanted: Seen| {
        let (status, answer) = served.send(method, path, body).await;
        // The scripted engine gives no answer of its own to an answer.
        assert!(status < 300 || path.contains("/asks/"), "{path}: {status} {answer}");
        loop {
            let seen = served.engine.next().await;
            if matches!(seen, Seen::Load { .. }) {
                continue;
            }
            assert_eq!(seen, wanted);
            return;
        }
    };
    let steer = Seen::Steer { session: session.clone(), text: Some("left".into()) };
    check(&mut served, "POST", "/chats/c/steer", json!({"text": "left"}), steer).await;
    let stop = Seen::Cancel { session: session.clone() };
    check(&mut served, "POST", "/chats/c/stop", json!({}), stop).await;
    let answer =
        Seen::Answer { session: session.clone(), ask: AskId(7), answer: Answer::Allow { remember: true } };
    let body = json!({"type": "allow", "remember": true});
    check(&mut served, "POST", "/chats/c/asks/ask-7", body, answer).await;
    let change = SessionSettings { behavior: Some("plan".into()), ..SessionSettings::default() };
    let configure = Seen::Configure { session: Some(session.clone()), change };
    let body = json!({"behavior": "plan", "trust": true});
    check(&mut served, "PUT", "/chats/c/settings", body, configure).await;
    let from = Some(ItemId(1));
    let back = Seen::Rollback { session: session.clone(), from, scope: RollbackScope::Both };
    let body = json!({"from": "item-1", "scope": "both"});
    check(&mut served, "POST", "/chats/c/rollback", body, back).await;
    let fork = Seen::Fork { session: session.clone(), until: Some(ItemId(1)) };
    check(&mut served, "POST", "/chats/c/fork", json!({"until": "item-1"}), fork).await;
    let (status, answer) =
        served.send("POST", "/chats/c/prompt", json!({"text": "Go", "model": "a/b", "trust": true})).await;
    assert_eq!(status, 202, "{answer}");
    let prompt = loop {
        if let Seen::Prompt { prompt, .. } = served.engine.next().await {
            break prompt;
        }
    };
    assert_eq!((prompt.text.as_str(), prompt.change.model.as_deref()), ("Go", Some("a/b")));
    assert_eq!(prompt.change.trust, None);
    let (status, made) = served.send("POST", "/chats", json!({})).await;
    assert_eq!((status, made["key"].is_string()), (201, true));
    let (status, _) = served.send("PUT", "/preferences", json!({"theme": "dark"})).await;
    assert_eq!(status, 200);
    assert_eq!(served.get("/state").await.1["theme"], "dark");
}

/// After a rollback the stream sends what is left.
#[tokio::test]
async fn a_rollback_sends_the_chat_again() {
    let served = Served::start(vec![user(1, "kept"), user(2, "dropped")]).await;
    let mut events = Events::open(&served, "/chats/c/events").await;
    assert_eq!(texts(&entries(&events.until("snapshot").await)).len(), 2);
    served.engine.fact(&id(), Fact::HistoryReplaced { keep: Some(ItemId(1)) });
    let again = events.until("snapshot").await;
    assert_eq!(texts(&entries(&again)), [("item-1".into(), "kept".into())]);
}

/// Whatever ends a stream, its last event says so.
#[tokio::test]
async fn a_stream_never_ends_without_a_last_event() {
    let served = Served::start(vec![user(1, "kept")]).await;
    let mut events = Events::open(&served, "/chats/c/events").await;
    events.until("snapshot").await;
    served.engine.forget(&id());
    let replaced = Recorded { number: 3, at: 0, fact: Fact::HistoryReplaced { keep: None } };
    served.engine.event(Some(&id()), EventBody::Fact(Arc::new(replaced)));
    assert_eq!(events.until("end").await["again"], true);
    assert!(events.is_over().await, "nothing follows");
}
