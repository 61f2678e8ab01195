//! The draft of version 2: chosen by the client, every message checked against its official schema.

use std::sync::OnceLock;

use domain::event::Channel;
use domain::item::{ItemKind, Part};
use domain::tool_call::{Details, FileChange};
use domain::{Ask, AskId, AskKind, Fact, Failure, ItemId, Outcome, SessionId, ToolState};
use serde_json::{Value, json};
use testkit::fake_engine::item;
use testkit::{FakeEngine, Lines, Seen};

use crate::client::{catalog, tool_call};

/// With what is unstable; by the number of the version.
fn unstable_schema(version: u64) -> &'static crate::schema::Schema {
    static SCHEMAS: OnceLock<[crate::schema::Schema; 2]> = OnceLock::new();
    let both = SCHEMAS
        .get_or_init(|| [1, 2].map(|it| crate::schema::read(&format!("schema/v{it}/schema.unstable.json"))));
    if version == 2 { &both[1] } else { &both[0] }
}

fn check_message(message: &Value, called: Option<&str>) {
    crate::schema::check_with(crate::schema::schema_of_version_two(), message, called);
}

fn connect(engine: &FakeEngine, is_permitted: bool, check: fn(&Value, Option<&str>)) -> Lines {
    let (lines, input, output) = Lines::piped(1 << 20, true, check);
    let transport = rpc::Transport::stream(input, output);
    tokio::spawn(proto_acp::serve_versions(engine.engine(), transport, false, move || is_permitted));
    lines
}

fn initialize() -> Value {
    let info = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": 2, "info": info, "capabilities": {"elicitation": {"form": {}}}})
}

async fn session() -> (Lines, FakeEngine, SessionId) {
    let mut engine = FakeEngine::start(catalog());
    let mut client = connect(&engine, true, check_message);
    let started = client.request("initialize", initialize()).await;
    assert_eq!((&started["protocolVersion"], &started["info"]["name"]), (&json!(2), &json!("dragoman")));
    let opened = client.request("session/new", json!({"cwd": "/w"})).await;
    assert_eq!(opened["configOptions"][0]["configId"], "mode", "{opened}");
    assert!(matches!(engine.next().await, Seen::Open { .. }));
    let session = SessionId::new(opened["sessionId"].as_str().unwrap());
    (client, engine, session)
}

async fn update(client: &mut Lines) -> Value {
    client.next_where(|message| message["method"] == "session/update").await["params"]["update"].clone()
}

/// The updates up to the next one of this kind.
async fn until(client: &mut Lines, kind: &str, state: Option<&str>) -> Vec<Value> {
    let mut updates = Vec::new();
    loop {
        let next = update(client).await;
        let is_last = next["sessionUpdate"] == kind && state.is_none_or(|state| next["state"] == state);
        updates.push(next);
        if is_last {
            return updates;
        }
    }
}

#[tokio::test]
async fn the_version_is_the_one_that_the_client_asks_for_and_the_settings_permit() {
    for (asked, is_permitted, version) in [(2, true, 2), (7, true, 2), (2, false, 1), (1, true, 1)] {
        let engine = FakeEngine::start(catalog());
        let mut client = connect(&engine, is_permitted, |_, _| {});
        let mut params = initialize();
        params["protocolVersion"] = json!(asked);
        let started = client.request("initialize", params).await;
        assert_eq!(started["protocolVersion"], version, "{asked} {is_permitted}");
        assert_eq!(started["info"].is_object(), version == 2);
        // A method of the other version is unknown.
        let other = if version == 2 { "authenticate" } else { "auth/login" };
        assert_eq!(client.refused(other, json!({"methodId": "configured"})).await.0, -32601);
    }
}

#[tokio::test]
async fn a_turn_has_states_and_its_prompt_is_answered_with_a_message() {
    let (mut client, mut engine, session) = session().await;
    until(&mut client, "state_update", Some("idle")).await;
    let blocks = json!([{"type": "text", "text": "Hello"}]);
    let prompted = client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    let (_, turn, prompt) = engine.prompt().await;
    assert_eq!(prompt.text, "Hello");
    engine.begin(&session, turn, 1, "Hello");
    assert_eq!(client.response(prompted).await["result"]["messageId"], "item-1");
    let begun = until(&mut client, "user_message", None).await;
    assert!(begun.iter().any(|it| it["state"] == "running"), "{begun:?}");
    assert_eq!(begun.last().unwrap()["messageId"], "item-1");
    assert_eq!(begun.last().unwrap()["content"], json!([{"type": "text", "text": "Hello"}]));
    engine.delta(&session, 2, Channel::Reasoning, 0, "Hm.");
    engine.delta(&session, 3, Channel::Text, 0, "Hi.");
    let mut call = tool_call("edit_file", json!({"path": "a"}));
    call.details = Some(Details::FileChange(FileChange {
        path: "/w/a".into(),
        diff: "@@ -1 +1 @@\n-o\n+n\n".into(),
        old_text: Some("o\n".into()),
        new_text: Some("n\n".into()),
        lines_added: 1,
        lines_removed: 1,
    }));
    let mut waiting = call.clone();
    waiting.state = ToolState::Waiting { ask: AskId(1) };
    engine.fact(&session, Fact::ItemStarted { item: item(4, turn, ItemKind::ToolCall(Box::new(waiting))) });
    let kind = AskKind::Approval { reason: "asks".into(), keys: vec!["edit_file".into()] };
    engine.fact(&session, Fact::AskRaised { ask: Ask { id: AskId(1), turn, item: Some(ItemId(4)), kind } });
    let asked = client.asked("session/request_permission").await;
    assert_eq!(asked["params"]["subject"]["toolCall"]["toolCallId"], "item-4", "{asked}");
    assert!(!asked["params"]["title"].as_str().unwrap().is_empty());
    client.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})).await;
    assert!(matches!(engine.next().await, Seen::Answer { .. }));
    let answer = domain::Answer::Allow { remember: false };
    engine.fact(&session, Fact::AskSettled { id: AskId(1), answer });
    call.state = ToolState::Done;
    call.result = vec![Part::text("ok")];
    engine.fact(&session, Fact::ItemEnded { item: item(4, turn, ItemKind::ToolCall(Box::new(call))) });
    engine.end(&session, turn, Outcome::Done);
    let shown = until(&mut client, "state_update", Some("idle")).await;
    let patch = shown.iter().find_map(|it| it["content"][0]["patch"]["text"].as_str()).unwrap();
    assert!(patch.starts_with("diff --git a/w/a b/w/a\n@@"), "{patch}");
    let states: Vec<&str> = shown.iter().filter_map(|it| it["state"].as_str()).collect();
    assert_eq!(states, ["requires_action", "running", "idle"]);
    assert_eq!(shown.last().unwrap()["stopReason"], "end_turn");
    // A failure is the reason of the end.
    client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 9, "Hello");
    engine.end(&session, turn, Outcome::Failed { failure: Failure::provider("It is away.") });
    let end = until(&mut client, "state_update", Some("idle")).await.pop().unwrap();
    assert_eq!(end["stopReason"], "error");
    assert!(end["error"]["message"].as_str().unwrap().contains("It is away."), "{end}");
}

#[tokio::test]
async fn options_take_the_place_of_modes_and_a_session_is_resumed_with_its_contents() {
    let (mut client, mut engine, session) = session().await;
    let set = json!({"sessionId": session, "configId": "mode", "type": "id", "value": "plan"});
    let options = client.request("session/set_config_option", set).await;
    assert_eq!(options["configOptions"][0]["currentValue"], "plan", "{options}");
    assert!(matches!(engine.next().await, Seen::Configure { .. }));
    let blocks = json!([{"type": "text", "text": "Hello"}]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 1, "Hello");
    engine.say(&session, turn, 2, "Hi.");
    engine.end(&session, turn, Outcome::Done);
    until(&mut client, "state_update", Some("running")).await;
    until(&mut client, "state_update", Some("idle")).await;
    client.request("session/close", json!({"sessionId": session})).await;
    let again = json!({"sessionId": session, "cwd": "/w", "replayFrom": {"type": "start"}});
    client.request("session/resume", again).await;
    let replayed = until(&mut client, "state_update", Some("idle")).await;
    let kinds: Vec<&str> = replayed.iter().filter_map(|it| it["sessionUpdate"].as_str()).collect();
    assert!(kinds.contains(&"user_message") && kinds.contains(&"agent_message"), "{kinds:?}");
    let answer = replayed.iter().find(|it| it["sessionUpdate"] == "agent_message").unwrap();
    assert_eq!(answer["content"][0]["text"], "Hi.", "{answer}");
    assert!(!kinds.contains(&"current_mode_update"));
}

#[tokio::test]
async fn a_command_is_a_terminal_and_is_cancelled_alone() {
    let (mut client, mut engine, session) = session().await;
    let blocks = json!([{"type": "text", "text": "Hello"}]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 1, "Hello");
    let mut call = tool_call("shell_command", json!({"command": "make test"}));
    let kind = |call: &domain::ToolCall| ItemKind::ToolCall(Box::new(call.clone()));
    engine.fact(&session, Fact::ItemStarted { item: item(4, turn, kind(&call)) });
    engine.delta(&session, 4, Channel::ToolOutput, 0, "one\n");
    // Lost on its way; the end of the call brings it.
    engine.delta(&session, 4, Channel::ToolOutput, 8, "three\n");
    let begun = until(&mut client, "terminal_output_chunk", None).await;
    let of_kind = |kind: &str| begun.iter().find(|it| it["sessionUpdate"] == kind).unwrap();
    assert_eq!(of_kind("terminal_update")["command"], "make test");
    assert!(of_kind("terminal_update")["capabilities"]["cancel"].is_object());
    assert_eq!(of_kind("tool_call_update")["content"], json!([{"type": "terminal", "terminalId": "item-4"}]));
    assert!(begun.iter().any(|it| it["toolCallId"] == "item-4" && it["capabilities"]["cancel"].is_object()));
    let cancel = json!({"sessionId": session, "toolCallId": "item-4"});
    client.request("tool_call/cancel", cancel.clone()).await;
    let seen = Seen::CancelCall { session: session.clone(), call: ItemId(4) };
    assert_eq!(engine.next().await, seen);
    client.request("terminal/cancel", json!({"sessionId": session, "terminalId": "item-4"})).await;
    assert_eq!(engine.next().await, seen);
    call.state = ToolState::Stopped { unknown: false };
    (call.live_output, call.error) = ("one\ntwo\nthree\n".into(), true);
    call.result = vec![Part::text("The user stopped this call.")];
    engine.fact(&session, Fact::ItemEnded { item: item(4, turn, kind(&call)) });
    engine.end(&session, turn, Outcome::Done);
    let ended = until(&mut client, "state_update", Some("idle")).await;
    let chunks = ended.iter().filter(|it| it["sessionUpdate"] == "terminal_output_chunk");
    let chunks: Vec<&Value> = chunks.map(|it| &it["data"]).collect();
    // "two\nthree\n" in base64.
    assert_eq!(chunks, [&json!("dHdvCnRocmVlCg==")]);
    assert!(ended.iter().any(|it| it["terminalId"] == "item-4" && it["exitStatus"].is_object()), "{ended:?}");
    let statuses: Vec<&str> = ended.iter().filter_map(|it| it["status"].as_str()).collect();
    assert_eq!(statuses, ["cancelled"]);
    // A call that is over cannot be canceled, nor one of another session.
    engine.refuse(Failure::user("The call item-4 does not run."));
    assert_eq!(client.refused("tool_call/cancel", cancel).await.0, -32602);
    let elsewhere = json!({"sessionId": "other", "toolCallId": "item-4"});
    assert_eq!(client.refused("tool_call/cancel", elsewhere).await.0, -32002);
}

#[tokio::test]
async fn unstable_methods_are_for_clients_that_ask_for_them() {
    for (version, capabilities) in [(1, "clientCapabilities"), (2, "capabilities")] {
        for asks in [false, true] {
            let mut engine = FakeEngine::start(catalog());
            let check: fn(&Value, Option<&str>) = if version == 2 {
                |message, called| crate::schema::check_with(unstable_schema(2), message, called)
            } else {
                |message, called| crate::schema::check_with(unstable_schema(1), message, called)
            };
            let mut client = connect(&engine, true, check);
            let mut params = json!({"protocolVersion": version, "info": {"name": "test", "version": "1"}});
            params[capabilities] = json!({"_meta": {"unstable": asks}});
            let started = client.request("initialize", params).await.to_string();
            assert_eq!(
                started.contains(r#""title":{}"#) && started.contains(r#""status":{}"#),
                asks,
                "{started}"
            );
            engine.store(&SessionId::new("old"), Default::default(), "/w", Vec::new());
            let title = json!({"sessionId": "old", "title": "  A new\nname "});
            let old = json!({"sessionId": "old"});
            if !asks {
                for (method, params) in [("session/set_title", title), ("session/status", old)] {
                    assert_eq!(client.refused(method, params).await.0, -32601, "{method}");
                }
                assert_eq!(client.refused("auth/status", json!({})).await.0, -32601);
                continue;
            }
            assert_eq!(client.request("session/set_title", title).await["title"], "A new name");
            assert!(
                matches!(engine.next().await, Seen::Configure { session: Some(id), .. } if id.as_str() == "old")
            );
            // It was not open here, and is left again.
            assert!(matches!(engine.next().await, Seen::Close { .. }));
            let empty = json!({"sessionId": "old", "title": " "});
            assert_eq!(client.refused("session/set_title", empty).await.0, -32602);
            assert_eq!(client.request("session/status", old).await["status"], "saved");
            assert_eq!(client.refused("session/status", json!({"sessionId": "x"})).await.0, -32002);
            let opened = client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
            let here = json!({"sessionId": opened["sessionId"]});
            assert_eq!(client.request("session/status", here).await["status"], "open");
            assert_eq!(client.request("auth/status", json!({})).await["state"], "authenticated");
        }
    }
}
