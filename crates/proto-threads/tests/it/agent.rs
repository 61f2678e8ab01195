//! The agent drives, as the headings of the document have it.

use std::time::Duration;

use domain::command::{Context, SessionSettings};
use domain::item::{ItemKind, Part};
use domain::{Fact, Failure, HostCall, Outcome, SessionId, TurnId};
use proto_threads::Driver;
use serde_json::{Value, json};
use testkit::FakeEngine;
use testkit::fake_engine::{Seen, item};

use crate::client::{Client, NEVER};

const SOON: Duration = Duration::from_millis(30);

async fn stream(client: &mut Client, thread: &str, text: &str) {
    let chunk = json!({"type": "text", "chunk": text});
    let streamed = client.request("streamMessageChunk", json!({"threadId": thread, "chunk": chunk})).await;
    assert_eq!(streamed, Value::Null);
}

fn entry(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "chunks": [{"type": "text", "chunk": text}]})
}

/// Carries out the turn of a prompt and takes its answer.
async fn answer(client: &mut Client, engine: &mut FakeEngine, text: &str) -> Value {
    let (session, turn, prompt) = engine.prompt().await;
    engine.begin(&session, turn, turn.0 * 10, &prompt.text);
    engine.say(&session, turn, turn.0 * 10 + 1, text);
    engine.end(&session, turn, Outcome::Done);
    let sent = client.asked("sendMessage").await;
    client.answer(&sent, Value::Null).await;
    sent["params"].clone()
}

#[tokio::test]
async fn a_message_is_complete_when_the_clients_entries_show_it() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    stream(&mut client, "t", "Good ").await;
    let opened = client.asked("openThread").await;
    assert_eq!(opened["params"], json!({"threadId": "t"}));
    client.answer(&opened, Value::Null).await;
    let asked = client.asked("getThreadEntries").await;
    assert_eq!(asked["params"], json!({"threadId": "t"}));
    let earlier = [entry("user", "Hi"), entry("assistant", "Hello")];
    client.answer(&asked, json!({"entries": earlier})).await;
    stream(&mut client, "t", "morning").await;
    let asked = client.asked("getThreadEntries").await;
    let file = json!({"type": "readFile", "path": "/w/f", "content": "c"});
    let now = json!({"entries": [earlier[0], earlier[1], file, entry("user", "Good morning")]});
    client.answer(&asked, now).await;
    let Seen::Open { session, workspace, .. } = engine.next().await else { panic!("a chat is opened") };
    assert_eq!(session.as_str(), "t");
    assert_eq!(workspace.unwrap(), [std::path::PathBuf::from("/w")]);
    let (session, turn, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "Good morning");
    // The model gets the thread's earlier contents once.
    let text = "User: Hi\n\nAssistant: Hello\n\nFile /w/f:\nc".to_owned();
    assert_eq!(prompt.contexts, [Context::Text { name: "Earlier in this thread".into(), text }]);
    engine.begin(&session, turn, 1, "Good morning");
    engine.say(&session, turn, 2, "To you");
    engine.say(&session, turn, 3, "too.");
    engine.end(&session, turn, Outcome::Done);
    let sent = client.asked("sendMessage").await;
    let chunks = json!([{"type": "text", "chunk": "To you"}, {"type": "text", "chunk": "too."}]);
    assert_eq!(sent["params"], json!({"threadId": "t", "message": {"role": "assistant", "chunks": chunks}}));
    client.answer(&sent, Value::Null).await;
    // The next message goes on in the same chat.
    stream(&mut client, "t", "Bye").await;
    let asked = client.asked("getThreadEntries").await;
    client.answer(&asked, json!({"entries": [entry("user", "Bye")]})).await;
    let Seen::Open { session, .. } = engine.next().await else { panic!("the chat is opened again") };
    assert_eq!(session.as_str(), "t");
    let (_, _, prompt) = engine.prompt().await;
    assert_eq!((prompt.text.as_str(), prompt.contexts.len()), ("Bye", 0));
}

/// A client that extends its entry with every chunk.
#[tokio::test]
async fn an_entry_that_grows_with_the_chunks_is_not_cut() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let opened = async |client: &mut Client| {
        let opened = client.asked("openThread").await;
        client.answer(&opened, Value::Null).await;
    };
    stream(&mut client, "t", "Good ").await;
    opened(&mut client).await;
    let asked = client.asked("getThreadEntries").await;
    client.answer(&asked, json!({"entries": [entry("user", "Good ")]})).await;
    stream(&mut client, "t", "morning").await;
    let asked = client.asked("getThreadEntries").await;
    client.answer(&asked, json!({"entries": [entry("user", "Good morning")]})).await;
    engine.next().await;
    let (_, _, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "Good morning");
}

#[tokio::test]
async fn a_message_is_complete_after_a_quiet_time() {
    let (mut client, mut engine) = Client::start(None, SOON);
    stream(&mut client, "t", "one ").await;
    let asked = client.asked("getThreadEntries").await;
    client.refuse(&asked, -32601).await;
    stream(&mut client, "t", "two").await;
    engine.next().await;
    let sent = answer(&mut client, &mut engine, "three").await;
    assert_eq!(sent["message"]["chunks"][0]["chunk"], "three");
}

#[tokio::test]
async fn messages_of_a_thread_are_answered_one_after_another() {
    let (mut client, mut engine) = Client::start(Some(Driver::Agent), SOON);
    stream(&mut client, "t", "first").await;
    engine.next().await;
    let (session, turn, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "first");
    stream(&mut client, "t", "second").await;
    stream(&mut client, "u", "other").await;
    // Another thread does not wait.
    let Seen::Open { session: other, .. } = engine.next().await else { panic!("a chat is opened") };
    assert_eq!(other.as_str(), "u");
    assert_eq!(engine.prompt().await.2.text, "other");
    engine.begin(&session, turn, 1, "first");
    engine.end(&session, turn, Outcome::Failed { failure: Failure::provider("It is down.") });
    let sent = client.asked("sendMessage").await;
    assert_eq!(sent["params"]["message"]["chunks"][0]["chunk"], "It is down.");
    client.answer(&sent, Value::Null).await;
    engine.next().await;
    assert_eq!(engine.prompt().await.2.text, "second");
}

#[tokio::test]
async fn a_chat_of_the_same_id_that_began_otherwise_is_another() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    let kind = ItemKind::UserMessage { text: "Mine".into(), parts: vec![Part::text("Mine")] };
    let facts = vec![Fact::ItemEnded { item: item(1, TurnId(1), kind) }];
    for thread in ["same", "other"] {
        engine.store(&SessionId::new(thread), SessionSettings::default(), "/w", facts.clone());
    }
    for (thread, beginning, expected) in [("same", "Mine", "same"), ("other", "Yours", "chat-3")] {
        stream(&mut client, thread, "go on").await;
        let asked = client.asked("getThreadEntries").await;
        client.answer(&asked, json!({"entries": [entry("user", beginning), entry("user", "go on")]})).await;
        loop {
            match engine.next().await {
                Seen::Open { .. } => {}
                Seen::Prompt { session, .. } => {
                    assert_eq!(session.as_str(), expected, "{thread}");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn files_of_the_workspace_are_read_by_the_client() {
    let (mut client, mut engine) = Client::start(None, NEVER);
    engine.set_file("/w/a.txt", b"one\ntwo\nthree");
    engine.set_file("/w/b.bin", &[0, 255, 2]);
    let read = json!({"threadId": "t", "path": "/w/a.txt", "lineOffset": 1, "lineLimit": 1});
    assert_eq!(client.request("readTextFile", read).await, json!({"version": 13, "content": "two\n"}));
    assert_eq!(engine.next().await, Seen::ReadFile { session: None, path: "/w/a.txt".into() });
    let whole = json!({"threadId": "t", "path": "/w/a.txt"});
    assert_eq!(client.request("readTextFile", whole).await["content"], "one\ntwo\nthree");
    let read = json!({"threadId": "t", "path": "/w/b.bin", "byteOffset": 1, "byteLimit": 5});
    assert_eq!(client.request("readBinaryFile", read).await, json!({"version": 3, "content": "/wI="}));
    assert_eq!(client.refused("readTextFile", json!({"threadId": "t", "path": "/w/b.bin"})).await, -32602);
    assert_eq!(client.refused("readTextFile", json!({"threadId": "t", "path": "/w/none"})).await, -32602);
    // What was read in a thread is one of its entries.
    engine.store(&SessionId::new("t"), SessionSettings::default(), "/w", Vec::new());
    let entries = client.request("getThreadEntries", json!({"threadId": "t"})).await;
    let entry = |content: &str| json!({"type": "readFile", "path": "/w/a.txt", "content": content});
    assert_eq!(entries, json!({"entries": [entry("two\n"), entry("one\ntwo\nthree")]}));
    assert_eq!(
        client.request("stat", json!({"threadId": "t", "path": "/w/a.txt"})).await,
        json!({"exists": true, "isDirectory": false})
    );
    assert_eq!(
        client.request("globSearch", json!({"threadId": "t", "pattern": "*"})).await,
        json!({"matches": ["/w/a.txt", "/w/b.bin"]})
    );
}

#[tokio::test]
async fn a_silent_client_is_asked_who_drives() {
    // It has threads: we drive, and make the first.
    let (mut client, _engine) = Client::start(None, NEVER);
    let (mut other, _other_engine) = Client::start(None, NEVER);
    let asked = client.asked("getThreads").await;
    assert_eq!(asked["params"], Value::Null);
    client.answer(&asked, json!({"threads": []})).await;
    let created = client.asked("createThread").await;
    assert_eq!(created["params"], Value::Null);
    client.answer(&created, json!({"threadId": "t"})).await;
    assert_eq!(client.asked("openThread").await["params"], json!({"threadId": "t"}));
    // It has none: the editor drives, and calls when it likes.
    let asked = other.asked("getThreads").await;
    other.refuse(&asked, -32601).await;
    assert_eq!(other.request("getThreads", Value::Null).await, json!({"threads": []}));
}

#[tokio::test]
async fn who_drives_can_be_fixed() {
    let (mut client, engine) = Client::start(Some(Driver::Agent), NEVER);
    let asked = client.asked("getThreads").await;
    let thread = json!({"id": "t", "title": "T", "modifiedAt": "2024-07-30T12:00:00Z"});
    client.answer(&asked, json!({"threads": [thread]})).await;
    for method in ["getThreads", "createThread", "openThread", "getThreadEntries", "sendMessage"] {
        assert_eq!(client.refused(method, Value::Null).await, -32601, "{method}");
    }
    drop(engine);
}

#[tokio::test]
async fn a_client_that_lets_us_drive_is_not_asked_for_files() {
    let (mut client, mut engine) = Client::start(None, SOON);
    stream(&mut client, "t", "read").await;
    engine.next().await;
    let (session, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 1, "read");
    // The chat is the client's thread from the answer to our prompt on.
    let asked = client.asked("getThreadEntries").await;
    client.refuse(&asked, -32601).await;
    client.request("stat", json!({"threadId": "t", "path": "/w"})).await;
    let call = HostCall::ReadText { path: "/w/a".into() };
    let reply = engine.host(&session, None, call, Duration::from_secs(5)).await.unwrap();
    assert!(reply.is_err());
}
