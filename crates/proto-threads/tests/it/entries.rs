//! Stored chats as entries of a thread.

use domain::command::SessionSettings;
use domain::item::{ItemKind, Part};
use domain::tool_call::{Location, Origin, ToolCall, ToolState};
use domain::{Fact, ItemId, SessionId, TurnId};
use serde_json::json;
use testkit::fake_engine::item;

use crate::client::{Client, NEVER};

fn read(name: &str, state: ToolState, error: bool) -> ItemKind {
    ItemKind::ToolCall(Box::new(ToolCall {
        call_id: "c".into(),
        name: name.into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: Some(json!({"path": "a"})),
        state,
        summary: String::new(),
        details: None,
        manual_approval: false,
        live_output: String::new(),
        result: vec![Part::text("content")],
        error,
        millis: 0,
        locations: vec![Location { path: "/w/a".into(), line: None }],
        provider: None,
    }))
}

#[tokio::test]
async fn messages_and_files_are_entries_and_the_rest_is_not() {
    let said = |text: &str| ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None };
    let asked = |text: &str| ItemKind::UserMessage { text: text.into(), parts: vec![Part::text("more")] };
    let kinds = vec![
        asked("Hello"),
        ItemKind::Reasoning { text: "hm".into(), millis: 0, provider: None },
        said("Let me look."),
        read("read_file", ToolState::Done, false),
        read("read_file", ToolState::Done, true),
        read("read_file", ToolState::Stopped { unknown: false }, false),
        read("grep", ToolState::Done, false),
        said("It is content."),
        ItemKind::Command { text: "/costs".into() },
        ItemKind::SystemText { text: "Nothing.".into() },
        asked("dropped"),
    ];
    let mut facts: Vec<Fact> =
        (1..).zip(kinds).map(|(id, kind)| Fact::ItemEnded { item: item(id, TurnId(1), kind) }).collect();
    facts.push(Fact::HistoryReplaced { keep: Some(ItemId(10)) });
    let (mut client, engine) = Client::start(None, NEVER);
    engine.store(&SessionId::new("a"), SessionSettings::default(), "/w", facts);
    let message = |role: &str, text: &str| json!({"type": "message", "role": role, "chunks": [{"type": "text", "chunk": text}]});
    let shown = client.request("getThreadEntries", json!({"threadId": "a"})).await;
    assert_eq!(
        shown["entries"],
        json!([
            message("user", "Hello"),
            message("assistant", "Let me look."),
            {"type": "readFile", "path": "/w/a", "content": "content"},
            message("assistant", "It is content."),
            message("user", "/costs"),
            message("assistant", "Nothing."),
        ])
    );
}
