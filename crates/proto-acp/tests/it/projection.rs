//! The projection alone: events in, updates out.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::command::SessionSettings;
use domain::event::Channel;
use domain::item::ItemKind;
use domain::{Event, Fact, ItemDelta, ItemId, Outcome, Part, Recorded, SessionId, ToolState, TurnId};
use proto_acp::to_wire::{Projection, is_state};
use proto_acp::wire::{Extras, Out};
use serde_json::{Value, json};
use testkit::fake_engine::item;

use crate::client::{catalog, tool_call};
use crate::schema::schema;

const TURN: TurnId = TurnId(1);

fn projection(extras: Extras) -> Projection {
    Projection::new(SessionId::new("s"), extras, Arc::new(catalog()), SessionSettings::default())
}

fn fact(number: u64, fact: Fact) -> Event {
    Event::fact(SessionId::new("s"), Arc::new(Recorded { number, at: 0, fact }))
}

/// Projects and checks; gives the updates as JSON.
fn show(projection: &mut Projection, event: &Event) -> Vec<Value> {
    let updates = projection.project(event).into_iter().filter_map(|out| match out {
        Out::Update(update) => Some(serde_json::to_value(update).unwrap()),
        _ => None,
    });
    updates
        .inspect(|update| {
            schema().check_call("session/update", &json!({"sessionId": "s", "update": update}));
        })
        .collect()
}

#[test]
fn every_kind_of_item_is_shown() {
    let both = Extras { compaction: true, notices: true, boolean_options: true };
    let compaction = || ItemKind::Compaction { summary: "short".into(), kept: Vec::new() };
    let hook = |status| ItemKind::Hook {
        name: "lint".into(),
        kind: "preToolCall".into(),
        status: Some(status),
        output: "bad".into(),
    };
    let text = |update: &Value| update["content"]["text"].as_str().unwrap_or_default().to_owned();
    for (kind, extras, expected, holds) in [
        (ItemKind::SystemText { text: "costs".into() }, Extras::default(), "agent_message_chunk", "costs\n"),
        (ItemKind::Command { text: "/costs".into() }, Extras::default(), "user_message_chunk", "/costs"),
        (
            ItemKind::Citation { title: "T".into(), url: "https://e.org".into() },
            Extras::default(),
            "agent_message_chunk",
            "\n[T](https://e.org)\n",
        ),
        (
            compaction(),
            Extras::default(),
            "agent_message_chunk",
            "Earlier messages are now represented by a summary.\n",
        ),
        (compaction(), both, "compaction_update", ""),
        (hook(0), Extras::default(), "tool_call", ""),
        (hook(2), Extras::default(), "tool_call", ""),
    ] {
        let event = fact(1, Fact::ItemEnded { item: item(3, TURN, kind.clone()) });
        let updates = show(&mut projection(extras), &event);
        assert_eq!(updates.len(), 1, "{kind:?}");
        assert_eq!(updates[0]["sessionUpdate"], expected, "{kind:?}");
        assert_eq!(text(&updates[0]), holds, "{kind:?}");
    }
    for silent in [
        ItemKind::Flag { text: "x".into() },
        ItemKind::Subagent { session: SessionId::new("c"), name: "n".into() },
    ] {
        let event = fact(1, Fact::ItemEnded { item: item(3, TURN, silent) });
        assert!(show(&mut projection(both), &event).is_empty());
    }
}

#[test]
fn tools_have_their_kinds() {
    for (name, kind) in [
        ("read_file", "read"),
        ("grep", "search"),
        ("edit_file", "edit"),
        ("move_file", "move"),
        ("shell_command", "execute"),
        ("task", "think"),
    ] {
        let call = ItemKind::ToolCall(Box::new(tool_call(name, json!({}))));
        let updates = show(
            &mut projection(Extras::default()),
            &fact(1, Fact::ItemStarted { item: item(1, TURN, call) }),
        );
        assert_eq!(updates[0]["kind"], kind, "{name}");
        assert_eq!(updates[0]["name"], name);
    }
    let mut foreign = tool_call("read_file", json!({}));
    foreign.origin = domain::tool_call::Origin::Mcp;
    foreign.server = "files".into();
    let started = Fact::ItemStarted { item: item(1, TURN, ItemKind::ToolCall(Box::new(foreign))) };
    let updates = show(&mut projection(Extras::default()), &fact(1, started));
    assert_eq!(updates[0]["name"], "files__read_file");
    assert!(updates[0].get("kind").is_none());
}

/// What a client that put the updates together would show: texts and calls by id.
fn shown(updates: &[Value]) -> BTreeMap<String, Value> {
    let mut shown: BTreeMap<String, Value> = BTreeMap::new();
    for update in updates {
        let id = update["messageId"].as_str().or(update["toolCallId"].as_str()).unwrap_or("plan");
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

#[test]
fn live_and_replayed_chats_look_the_same() {
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
    let delta = |item, channel, offset, text: &str| {
        let delta = ItemDelta { item: ItemId(item), channel, offset, text: text.into() };
        Event::delta(SessionId::new("s"), delta)
    };
    let mut replayed = Vec::new();
    let mut projection_of_replay = projection(Extras::default());
    let mut live = Vec::new();
    let mut projection_of_life = projection(Extras::default());
    for (number, one) in (1..).zip(facts) {
        let event = fact(number, one);
        replayed.extend(show(&mut projection_of_replay, &event));
        live.extend(show(&mut projection_of_life, &event));
        let deltas = match number {
            2 => vec![
                delta(2, Channel::Text, 0, "Grü"),
                delta(2, Channel::Text, 4, "ße"),
                delta(2, Channel::Text, 99, "?"),
            ],
            3 => vec![delta(2, Channel::Text, 9, "Wel")],
            6 => vec![delta(3, Channel::ToolOutput, 0, "a\n"), delta(3, Channel::ToolOutput, 2, "b")],
            _ => Vec::new(),
        };
        for event in deltas {
            live.extend(show(&mut projection_of_life, &event));
        }
    }
    assert!(live.len() > replayed.len());
    assert_eq!(shown(&live), shown(&replayed));
    assert_eq!(shown(&live)["item-2 agent_message_chunk"]["text"], "Grüße, Welt");
}

#[test]
fn states_are_told_apart_from_what_was_said() {
    let change = SessionSettings { title: Some("T".into()), ..SessionSettings::default() };
    let outs = projection(Extras::default()).project(&fact(1, Fact::SessionChanged { change }));
    assert!(outs.iter().all(is_state));
    let said = Fact::ItemEnded { item: item(1, TURN, ItemKind::SystemText { text: "x".into() }) };
    assert!(!projection(Extras::default()).project(&fact(1, said)).iter().any(is_state));
}
