//! The projection, seen by a client: events in, updates out.

use std::collections::BTreeMap;

use domain::command::SessionSettings;
use domain::event::Channel;
use domain::item::ItemKind;
use domain::{Fact, ItemId, Outcome, Part, SessionId, ToolState, TurnId};
use serde_json::{Value, json};
use testkit::FakeEngine;
use testkit::fake_engine::item;

use crate::client::{Client, tool_call};

const TURN: TurnId = TurnId(1);
/// The item that marks the end of the updates a test waits for.
const MARKER: u64 = 999;

/// The updates that the client was sent so far, up to a marker that is sent now.
async fn updates(client: &mut Client, engine: &FakeEngine, session: &SessionId) -> Vec<Value> {
    let marker = ItemKind::SystemText { text: "marker".into() };
    engine.fact(session, Fact::ItemEnded { item: item(MARKER, TURN, marker) });
    let mut updates = Vec::new();
    loop {
        let update = client.update().await;
        if update["messageId"] == format!("item-{MARKER}") {
            return updates;
        }
        updates.push(update);
    }
}

#[tokio::test]
async fn every_kind_of_item_is_shown() {
    let both = || json!({"session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}}});
    let none = || json!({});
    let compaction = || ItemKind::Compaction { summary: "short".into(), kept: Vec::new() };
    let text = |update: &Value| update["content"]["text"].as_str().unwrap_or_default().to_owned();
    for (kind, capabilities, expected, holds) in [
        (ItemKind::SystemText { text: "costs".into() }, none(), "agent_message_chunk", "costs\n"),
        (ItemKind::Command { text: "/costs".into() }, none(), "user_message_chunk", "/costs"),
        (
            ItemKind::Citation { title: "T".into(), url: "https://e.org".into() },
            none(),
            "agent_message_chunk",
            "\n[T](https://e.org)\n",
        ),
        (compaction(), none(), "agent_message_chunk", "Earlier messages are now represented by a summary.\n"),
        (compaction(), both(), "compaction_update", ""),
    ] {
        let (mut client, engine, session) = Client::session(capabilities).await;
        engine.fact(&session, Fact::ItemEnded { item: item(3, TURN, kind.clone()) });
        let updates = updates(&mut client, &engine, &session).await;
        assert_eq!(updates.len(), 1, "{kind:?}");
        assert_eq!(updates[0]["sessionUpdate"], expected, "{kind:?}");
        assert_eq!(text(&updates[0]), holds, "{kind:?}");
    }
}

#[tokio::test]
async fn tools_have_their_kinds() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    let start = |id: u64, call: domain::ToolCall| {
        let call = ItemKind::ToolCall(Box::new(call));
        engine.fact(&session, Fact::ItemStarted { item: item(id, TURN, call) });
    };
    let kinds = [
        ("read_file", "read"),
        ("grep", "search"),
        ("edit_file", "edit"),
        ("move_file", "move"),
        ("shell_command", "execute"),
        ("task", "think"),
    ];
    for (id, (name, _)) in (1..).zip(kinds) {
        start(id, tool_call(name, json!({})));
    }
    let mut foreign = tool_call("read_file", json!({}));
    foreign.origin = domain::tool_call::Origin::Mcp;
    foreign.server = "files".into();
    start(50, foreign);
    let updates = updates(&mut client, &engine, &session).await;
    for (update, (name, kind)) in updates.iter().zip(kinds) {
        assert_eq!(update["kind"], kind, "{name}");
        assert_eq!(update["name"], name);
    }
    let foreign = updates.last().unwrap();
    assert_eq!(foreign["name"], "files__read_file");
    assert!(foreign.get("kind").is_none());
}

/// What a client that put the updates together would show: texts and calls by id.
fn shown(updates: &[Value]) -> BTreeMap<String, Value> {
    let mut shown: BTreeMap<String, Value> = BTreeMap::new();
    for update in updates {
        let Some(id) = update["messageId"].as_str().or(update["toolCallId"].as_str()) else { continue };
        let entry = shown.entry(format!("{id} {}", kind(update))).or_insert_with(|| json!({}));
        for (name, value) in update.as_object().unwrap() {
            if name == "content" && value["type"] == "text" {
                let before = entry["text"].as_str().unwrap_or_default().to_owned();
                entry["text"] = json!(before + value["text"].as_str().unwrap());
            } else if name != "sessionUpdate" {
                entry[name] = value.clone();
            }
        }
    }
    shown
}

fn kind(update: &Value) -> &str {
    match update["sessionUpdate"].as_str().unwrap() {
        "tool_call_update" => "tool_call",
        kind => kind,
    }
}

#[tokio::test]
async fn live_and_replayed_chats_look_the_same() {
    let mut call = tool_call("shell_command", json!({"command": "ls"}));
    call.state = ToolState::Preparing;
    let preparing = call.clone();
    call.state = ToolState::Running;
    let running = call.clone();
    call.state = ToolState::Done;
    call.result = vec![Part::text("a\nb")];
    call.live_output = "a\nb".into();
    let tool = |call: domain::ToolCall| item(3, TURN, ItemKind::ToolCall(Box::new(call)));
    let said = |text: &str| {
        item(2, TURN, ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None })
    };
    let grew = |offset, text: &str| Fact::ItemGrew {
        item: ItemId(2),
        channel: Channel::Text,
        offset,
        text: text.into(),
    };
    let facts = vec![
        Fact::TurnStarted { turn: TURN, model: "m".into() },
        Fact::ItemStarted { item: said("Grü") },
        grew(4, "ße, "),
        Fact::ItemEnded { item: said("Grüße, Welt") },
        Fact::ItemStarted { item: tool(preparing) },
        Fact::ItemChanged { item: tool(running) },
        Fact::ItemEnded { item: tool(call) },
        Fact::TurnEnded { turn: TURN, outcome: Outcome::Refused { reason: "no".into() } },
    ];
    let (mut client, engine, session) = Client::session(json!({})).await;
    for (number, fact) in (1..).zip(facts.clone()) {
        engine.fact(&session, fact);
        let deltas: &[(u64, Channel, u64, &str)] = match number {
            2 => &[(2, Channel::Text, 0, "Grü"), (2, Channel::Text, 4, "ße"), (2, Channel::Text, 99, "?")],
            3 => &[(2, Channel::Text, 9, "Wel")],
            6 => &[(3, Channel::ToolOutput, 0, "a\n"), (3, Channel::ToolOutput, 2, "b")],
            _ => &[],
        };
        for (item, channel, offset, text) in deltas {
            engine.delta(&session, *item, *channel, *offset, text);
        }
    }
    let live = updates(&mut client, &engine, &session).await;
    let stored = SessionId::new("stored");
    engine.store(&stored, SessionSettings::default(), "/w", facts);
    client.request("session/load", json!({"sessionId": stored, "cwd": "/w", "mcpServers": []})).await;
    let replayed = updates(&mut client, &engine, &stored).await;
    assert!(live.len() > replayed.len());
    assert_eq!(shown(&live), shown(&replayed));
    assert_eq!(shown(&live)["item-2 agent_message_chunk"]["text"], "Grüße, Welt");
}

#[tokio::test]
async fn the_state_of_a_stored_chat_is_sent_once_after_its_contents() {
    let (mut client, engine, _) = Client::session(json!({})).await;
    let title = |title: &str| Fact::SessionChanged {
        change: SessionSettings { title: Some(title.into()), ..SessionSettings::default() },
    };
    let said = ItemKind::SystemText { text: "x".into() };
    let facts = vec![title("One"), Fact::ItemEnded { item: item(1, TURN, said) }, title("Two")];
    let stored = SessionId::new("stored");
    let settings = SessionSettings { title: Some("Two".into()), ..SessionSettings::default() };
    engine.store(&stored, settings, "/w", facts);
    client.request("session/load", json!({"sessionId": stored, "cwd": "/w", "mcpServers": []})).await;
    let updates = updates(&mut client, &engine, &stored).await;
    let said = updates.iter().position(|it| it["content"]["text"] == "x\n").unwrap();
    let titles: Vec<usize> =
        (0..updates.len()).filter(|at| updates[*at]["sessionUpdate"] == "session_info_update").collect();
    assert!(titles.len() == 1 && titles[0] > said, "{updates:#?}");
    assert_eq!(updates[titles[0]]["title"], "Two");
}
