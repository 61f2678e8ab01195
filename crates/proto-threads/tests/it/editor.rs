//! The editor drives.

use std::time::Duration;

use domain::command::SessionSettings;
use domain::event::Channel;
use domain::host::{Grants, HostReply};
use domain::item::ItemKind;
use domain::{Fact, Failure, HostCall, Outcome, SessionId};
use proto_threads::Driver;
use serde_json::{Value, json};
use testkit::fake_engine::{Seen, item};

use crate::client::{Client, NEVER};

fn message(thread: &SessionId, role: &str, text: &str) -> Value {
    json!({"threadId": thread, "message": {"role": role, "chunks": [{"type": "text", "chunk": text}]}})
}

#[tokio::test]
async fn threads_are_listed_made_opened_and_read() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    engine.store(&SessionId::new("b"), SessionSettings::default(), "/elsewhere", Vec::new());
    let titled = SessionSettings { title: Some("Mine".into()), ..SessionSettings::default() };
    engine.store(&SessionId::new("a"), titled, "/w", Vec::new());
    assert_eq!(
        client.request("getThreads", Value::Null).await,
        json!({"threads": [{"id": "a", "title": "Mine", "modifiedAt": "2024-07-30T12:00:00Z"}]})
    );
    let created = client.request("createThread", Value::Null).await;
    let Seen::Open { session, workspace, .. } = engine.next().await else { panic!("a chat is opened") };
    assert_eq!(created, json!({"threadId": session}));
    assert_eq!(workspace.unwrap(), [std::path::PathBuf::from("/w")]);
    assert_eq!(client.request("openThread", json!({"threadId": "a"})).await, Value::Null);
    assert_eq!(client.refused("openThread", json!({"threadId": "none"})).await, -32602);
    assert_eq!(client.request("getThreadEntries", json!({"threadId": "a"})).await, json!({"entries": []}));
    assert_eq!(client.refused("getThreadEntries", json!({"threadId": "none"})).await, -32602);
    assert_eq!(client.refused("getThreadEntries", Value::Null).await, -32602);
    assert_eq!(client.refused("deleteThread", Value::Null).await, -32601);
    assert_eq!(engine.abilities().grants, Grants::READ);
    assert!(!engine.abilities().approvals);
}

#[tokio::test]
async fn a_message_is_answered_by_chunks_and_then_by_its_response() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let thread = SessionId::new("a");
    engine.store(&thread, SessionSettings::default(), "/w", Vec::new());
    let id = client.call("sendMessage", message(&thread, "user", "Hello")).await;
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    let (_, turn, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "Hello");
    engine.begin(&thread, turn, 1, "Hello");
    let said = |text: &str| ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None };
    let thought = ItemKind::Reasoning { text: "hm".into(), millis: 0, provider: None };
    engine.fact(&thread, Fact::ItemEnded { item: item(2, turn, thought) });
    engine.fact(&thread, Fact::ItemStarted { item: item(3, turn, said("Good ")) });
    engine.delta(&thread, 3, Channel::Text, 0, "Good ");
    engine.delta(&thread, 3, Channel::Text, 5, "mor");
    let chunk = client.asked("streamMessageChunk").await;
    assert_eq!(chunk["params"], json!({"threadId": "a", "chunk": {"type": "text", "chunk": "Good "}}));
    client.answer(&chunk, Value::Null).await;
    engine.fact(&thread, Fact::ItemEnded { item: item(3, turn, said("Good morning.")) });
    engine.say(&thread, turn, 4, "What now?");
    engine.end(&thread, turn, Outcome::Done);
    let response = client.response(id).await;
    assert_eq!(response, json!({"id": id, "result": null}));
    // Every chunk came before the response.
    assert_eq!(client.chunks(), "morning.\n\nWhat now?");
    // A turn that another began is not streamed.
    engine.begin(&thread, domain::TurnId(9), 5, "elsewhere");
    engine.say(&thread, domain::TurnId(9), 6, "not for us");
    engine.end(&thread, domain::TurnId(9), Outcome::Done);
    for (outcome, text) in [(Outcome::Stopped, "Stopped."), (Outcome::MaxSteps, "Stopped: too many")] {
        let id = client.call("sendMessage", message(&thread, "user", "Again")).await;
        engine.next().await;
        let (_, turn, _) = engine.prompt().await;
        engine.begin(&thread, turn, 10 * turn.0, "Again");
        engine.end(&thread, turn, outcome);
        assert_eq!(client.response(id).await["result"], Value::Null);
        let chunks = client.chunks();
        assert!(chunks.starts_with(text), "{chunks}");
    }
}

#[tokio::test]
async fn what_fails_is_an_error() {
    let (mut client, mut engine) = Client::start(Some(Driver::Editor), NEVER);
    let thread = SessionId::new("a");
    engine.store(&thread, SessionSettings::default(), "/w", Vec::new());
    let id = client.call("sendMessage", message(&thread, "user", "Hello")).await;
    engine.next().await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&thread, turn, 1, "Hello");
    let failure = Failure::provider("It is down.").hint("Try later.");
    engine.end(&thread, turn, Outcome::Failed { failure });
    let error = client.response(id).await;
    assert_eq!(error, json!({"id": id, "error": {"code": -32000, "message": "It is down. Try later."}}));
    assert_eq!(client.refused("sendMessage", message(&SessionId::new("none"), "user", "x")).await, -32602);
    assert_eq!(client.refused("sendMessage", message(&thread, "assistant", "x")).await, -32602);
    assert_eq!(client.refused("sendMessage", message(&thread, "user", " ")).await, -32602);
    assert_eq!(client.refused("sendMessage", message(&thread, "system", "x")).await, -32602);
    let odd = json!({"threadId": "a", "message": {"role": "user", "chunks": [{"type": "image"}]}});
    assert_eq!(client.refused("sendMessage", odd).await, -32602);
    // Where the editor drives for sure, the other reading's methods are not there.
    for method in ["streamMessageChunk", "readTextFile", "readBinaryFile", "stat", "globSearch"] {
        assert_eq!(client.refused(method, json!({"threadId": "a"})).await, -32601, "{method}");
    }
}

#[tokio::test]
async fn a_client_without_chunks_is_answered_all_the_same() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let thread = SessionId::new("a");
    engine.store(&thread, SessionSettings::default(), "/w", Vec::new());
    let id = client.call("sendMessage", message(&thread, "user", "Hello")).await;
    engine.next().await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&thread, turn, 1, "Hello");
    engine.say(&thread, turn, 2, "one");
    let chunk = client.asked("streamMessageChunk").await;
    client.refuse(&chunk, -32601).await;
    // It is heard before anything more is sent, because the client speaks next.
    client.request("getThreadEntries", json!({"threadId": "a"})).await;
    engine.say(&thread, turn, 3, "two");
    engine.end(&thread, turn, Outcome::Done);
    assert_eq!(client.response(id).await["result"], Value::Null);
    assert_eq!(client.chunks(), "");
}

#[tokio::test]
async fn our_tools_read_through_the_client() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let thread = SessionId::new("a");
    engine.store(&thread, SessionSettings::default(), "/w", Vec::new());
    client.request("openThread", json!({"threadId": "a"})).await;
    engine.next().await;
    let deadline = Duration::from_secs(10);
    let lines = HostCall::ReadLines { path: "/w/a".into(), skip: 4, limit: 3 };
    let reply = engine.host(&thread, None, lines, deadline);
    let asked = client.asked("readTextFile").await;
    assert_eq!(asked["params"], json!({"threadId": "a", "path": "/w/a", "lineOffset": 4, "lineLimit": 3}));
    client.answer(&asked, json!({"version": 3, "content": "five\n"})).await;
    assert_eq!(reply.await.unwrap().unwrap(), HostReply::Text("five\n".into()));
    for (call, method, params, result, expected) in [
        (
            HostCall::ReadText { path: "/w/a".into() },
            "readTextFile",
            json!({"threadId": "a", "path": "/w/a"}),
            json!({"version": 3, "content": "unsaved"}),
            HostReply::Text("unsaved".into()),
        ),
        (
            HostCall::ReadBytes { path: "/w/b".into() },
            "readBinaryFile",
            json!({"threadId": "a", "path": "/w/b"}),
            json!({"version": 0, "content": "AAE="}),
            HostReply::Bytes(vec![0, 1]),
        ),
        (
            HostCall::Stat { path: "/w".into() },
            "stat",
            json!({"threadId": "a", "path": "/w"}),
            json!({"exists": true, "isDirectory": true}),
            HostReply::Stat { exists: true, directory: true },
        ),
        (
            HostCall::Glob { pattern: "*.rs".into() },
            "globSearch",
            json!({"threadId": "a", "pattern": "*.rs"}),
            json!({"matches": ["/w/x.rs"]}),
            HostReply::Paths(vec!["/w/x.rs".into()]),
        ),
    ] {
        let reply = engine.host(&thread, None, call.clone(), deadline);
        let asked = client.asked(method).await;
        assert_eq!(asked["params"], params);
        client.answer(&asked, result).await;
        assert_eq!(reply.await.unwrap().unwrap(), expected);
        // A method that the client does not have is asked for once.
        let reply = engine.host(&thread, None, call.clone(), deadline);
        let asked = client.asked(method).await;
        client.refuse(&asked, -32601).await;
        assert!(reply.await.unwrap().is_err());
        assert!(engine.host(&thread, None, call, deadline).await.unwrap().is_err());
    }
    let call = HostCall::WriteText { path: "/w/a".into(), text: String::new() };
    assert!(engine.host(&thread, None, call, deadline).await.unwrap().is_err());
}

#[tokio::test]
async fn closing_the_pipe_stops() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let thread = SessionId::new("a");
    engine.store(&thread, SessionSettings::default(), "/w", Vec::new());
    let id = client.call("sendMessage", message(&thread, "user", "Hello")).await;
    engine.next().await;
    engine.prompt().await;
    client.hang_up().await;
    assert_eq!(client.response(id).await["error"]["code"], -32603);
    assert!(client.receive().await.is_none());
    assert_eq!(engine.next().await, Seen::Detach);
    tokio::time::timeout(Duration::from_secs(5), &mut client.serving).await.unwrap().unwrap().unwrap();
}
