//! Beginning, finding, leaving: initialize, authenticate, sessions and what can be chosen in them.

use domain::command::{
    Catalog, ServerSpec, ServerTransport, SessionSettings, SlashArgument, SlashCommand, SlashOrigin,
};
use domain::event::{CatalogKind, EventBody, Level, Notice, SessionUsage};
use domain::item::ItemKind;
use domain::model::{ModelInfo, Tokens};
use domain::tool::{ServerStatus, ToolServer};
use domain::tool_call::Origin;
use domain::{AskId, Fact, Failure, ItemId, Outcome, SessionId, TurnId};
use serde_json::{Value, json};
use testkit::fake_engine::{FakeEngine, Seen, item};

use crate::client::{Client, catalog, tool_call};

#[tokio::test]
async fn initialize_tells_what_we_can_do_and_learns_what_the_client_can() {
    let engine = FakeEngine::start(catalog());
    let mut client = Client::connect(&engine, 1 << 16);
    let (code, sentence) = client.refused("session/list", json!({})).await;
    assert_eq!((code, sentence.as_str()), (-32600, "Send initialize first."));
    let capabilities = json!({
        "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "elicitation": {"form": {}},
        "_meta": {"x": 1}, "unheardOf": [1, 2],
    });
    let params = json!({
        "protocolVersion": 1, "clientCapabilities": capabilities, "unknown": true,
        "clientInfo": {"name": "zed", "version": "1.2"}, "_meta": null,
    });
    let result = client.request("initialize", params).await;
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(result["agentInfo"]["name"], "dragoman");
    let offered = &result["agentCapabilities"];
    assert_eq!(offered["loadSession"], true);
    assert_eq!(
        offered["promptCapabilities"],
        json!({"image": true, "audio": false, "embeddedContext": true})
    );
    assert_eq!(offered["mcpCapabilities"], json!({"http": true, "sse": false}));
    for name in ["list", "delete", "resume", "close"] {
        assert_eq!(offered["sessionCapabilities"][name], json!({}), "{name}");
    }
    assert_eq!(offered["auth"]["logout"], json!({}));
    let abilities = engine.abilities();
    assert_eq!(abilities.client, "zed 1.2");
    assert!(abilities.approvals && abilities.read_text && abilities.write_text && abilities.terminal);
    assert!(abilities.questions && abilities.forms);
    assert_eq!(client.refused("initialize", json!({"protocolVersion": 1})).await.0, -32600);
}

#[tokio::test]
async fn a_plain_client_gets_plain_abilities() {
    let (_client, engine) = Client::start(json!({})).await;
    let abilities = engine.abilities();
    assert!(abilities.approvals);
    assert!(!abilities.read_text && !abilities.write_text && !abilities.terminal && !abilities.forms);
}

#[tokio::test]
async fn a_client_with_a_terminal_is_offered_a_login_there() {
    for (auth, count) in [(json!({"terminal": true}), 2), (json!({}), 1)] {
        let engine = FakeEngine::start(catalog());
        let mut client = Client::connect(&engine, 1 << 16);
        let params = json!({"protocolVersion": 1, "clientCapabilities": {"auth": auth}});
        let result = client.request("initialize", params).await;
        let methods = result["authMethods"].as_array().expect("methods");
        assert_eq!(methods.len(), count, "{methods:?}");
        if let Some(login) = methods.get(1) {
            assert_eq!((&login["type"], &login["args"]), (&json!("terminal"), &json!(["--login"])));
        }
        client.request("authenticate", json!({"methodId": "login"})).await;
    }
}

#[tokio::test]
async fn who_is_logged_out_begins_nothing_until_authenticated() {
    let (mut client, engine) = Client::start(json!({})).await;
    client.request("logout", json!({})).await;
    let new = json!({"cwd": "/w", "mcpServers": []});
    assert_eq!(client.refused("session/new", new.clone()).await.0, -32000);
    assert_eq!(client.refused("authenticate", json!({"methodId": "magic"})).await.0, -32602);
    client.request("authenticate", json!({"methodId": "configured"})).await;
    client.request("session/new", new).await;
    engine.set_catalog(Catalog::default());
    let (code, sentence) = client.refused("authenticate", json!({"methodId": "configured"})).await;
    assert_eq!(code, -32000);
    assert!(sentence.contains("dragoman login"), "{sentence}");
}

#[tokio::test]
async fn a_new_session_has_its_folder_servers_modes_options_and_commands() {
    let (mut client, mut engine) =
        Client::start(json!({"session": {"configOptions": {"boolean": {}}}})).await;
    let argument = |name: &str, required| SlashArgument { name: name.into(), description: None, required };
    engine.set_commands(vec![
        SlashCommand {
            name: "compact".into(),
            description: "Make it short".into(),
            origin: SlashOrigin::Native,
            arguments: vec![argument("what", true), argument("more", false)],
        },
        SlashCommand {
            name: "costs".into(),
            description: "Money".into(),
            origin: SlashOrigin::Native,
            arguments: Vec::new(),
        },
    ]);
    let servers = json!([
        {"name": "files", "command": "/bin/files", "args": ["-v"], "env": [{"name": "K", "value": "v"}]},
        {"type": "http", "name": "web", "url": "https://e.org/mcp", "headers": []},
    ]);
    let params = json!({"cwd": "/w", "additionalDirectories": ["/x"], "mcpServers": servers, "_meta": {}});
    let opened = client.request("session/new", params).await;
    let Seen::Open { session, workspace, servers } = engine.next().await else { panic!("a chat is opened") };
    assert_eq!(opened["sessionId"], session.as_str());
    assert_eq!(workspace.unwrap(), ["/w", "/x"].map(std::path::PathBuf::from));
    let stdio = ServerTransport::Stdio {
        command: "/bin/files".into(),
        args: vec!["-v".into()],
        env: vec![("K".into(), "v".into())],
    };
    assert_eq!(servers[0], ServerSpec { name: "files".into(), transport: stdio });
    assert_eq!(servers[1].name, "web");
    assert_eq!(opened["modes"]["currentModeId"], "agent");
    let names: Vec<&Value> =
        opened["modes"]["availableModes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(names, ["agent", "plan"]);
    let options: Vec<(&Value, &Value)> = opened["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["id"], &it["currentValue"]))
        .collect();
    assert_eq!(options[0], (&json!("mode"), &json!("agent")));
    assert_eq!(options[1], (&json!("model"), &json!("a/plain")));
    assert_eq!(options[2], (&json!("trust"), &json!(false)));
    let commands = client.update().await;
    assert_eq!(
        commands["availableCommands"],
        json!([
            {"name": "compact", "description": "Make it short", "input": {"hint": "what [more]"}},
            {"name": "costs", "description": "Money"},
        ])
    );
}

#[tokio::test]
async fn wrong_parameters_get_a_sentence() {
    let (mut client, engine) = Client::start(json!({})).await;
    let sse = json!([{"type": "sse", "name": "old", "url": "u", "headers": []}]);
    for (params, word) in [
        (json!({"cwd": "relative", "mcpServers": []}), "absolute"),
        (json!({"mcpServers": []}), "cwd"),
        (json!({"cwd": "/w", "mcpServers": sse}), "SSE"),
        (json!({"cwd": "/w", "mcpServers": "none"}), "Wrong parameters"),
    ] {
        let (code, sentence) = client.refused("session/new", params.clone()).await;
        assert_eq!(code, -32602, "{params}");
        assert!(sentence.contains(word), "{params}: {sentence}");
    }
    // The schema demands the list; clients leave it out.
    client.request("session/new", json!({"cwd": "/w"})).await;
    engine.refuse(Failure::internal("The disk is full."));
    assert_eq!(
        client.refused("session/new", json!({"cwd": "/w"})).await,
        (-32603, "The disk is full.".to_owned())
    );
}

/// A chat with everything in it, as the engine would have recorded it.
fn conversation() -> Vec<Fact> {
    let turn = TurnId(1);
    let ended = |id, kind| Fact::ItemEnded { item: item(id, turn, kind) };
    let said = |text: &str| ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None };
    let mut call = tool_call("read_file", json!({"path": "/w/a"}));
    call.state = domain::ToolState::Done;
    call.result = vec![domain::Part::text("content")];
    let ask = domain::Ask {
        id: AskId(1),
        turn,
        item: Some(ItemId(4)),
        kind: domain::AskKind::Approval { reason: "r".into(), keys: Vec::new() },
    };
    let change = |change: SessionSettings| Fact::SessionChanged { change };
    vec![
        change(SessionSettings { behavior: Some("plan".into()), ..SessionSettings::default() }),
        Fact::TurnStarted { turn, model: "a/plain".into() },
        ended(
            1,
            ItemKind::UserMessage {
                text: "Look".into(),
                parts: vec![
                    domain::Part::text("context"),
                    domain::Part::Image { mime: "image/png".into(), data: "AAAA".into() },
                    domain::Part::text("Look"),
                ],
            },
        ),
        Fact::ItemStarted {
            item: item(2, turn, ItemKind::Reasoning { text: "h".into(), millis: 0, provider: None }),
        },
        ended(2, ItemKind::Reasoning { text: "hm".into(), millis: 5, provider: None }),
        Fact::AskRaised { ask },
        Fact::AskSettled { id: AskId(1), answer: domain::Answer::Allow { remember: false } },
        ended(4, ItemKind::ToolCall(Box::new(call))),
        ended(5, said("dropped")),
        Fact::TurnEnded { turn, outcome: Outcome::Done },
        Fact::HistoryReplaced { keep: Some(ItemId(4)) },
        ended(6, said("Done.")),
        change(SessionSettings { title: Some("Looking".into()), ..SessionSettings::default() }),
        Fact::UsageChanged { usage: SessionUsage::default() },
    ]
}

#[tokio::test]
async fn load_shows_everything_and_then_answers() {
    let (mut client, mut engine) = Client::start(json!({})).await;
    let session = SessionId::new("old");
    let settings = SessionSettings {
        title: Some("Looking".into()),
        behavior: Some("plan".into()),
        ..SessionSettings::default()
    };
    engine.store(&session, settings, "/w", conversation());
    let id = client.call("session/load", json!({"sessionId": "old", "cwd": "/w", "mcpServers": []})).await;
    let mut updates = Vec::new();
    let response = loop {
        let message = client.receive().await.unwrap();
        if message["id"] == id {
            break message["result"].clone();
        }
        updates.push(message["params"]["update"].clone());
    };
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    let kinds: Vec<&str> = updates.iter().map(|it| it["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "user_message_chunk",
            "user_message_chunk",
            "agent_thought_chunk",
            "tool_call",
            "agent_message_chunk",
            "session_info_update"
        ]
    );
    assert_eq!(updates[0]["content"], json!({"type": "text", "text": "Look"}));
    assert_eq!(updates[1]["content"]["data"], "AAAA");
    assert_eq!(updates[3]["status"], "completed");
    assert_eq!(updates[4]["content"]["text"], "Done.");
    assert_eq!(updates[5]["title"], "Looking");
    assert_eq!(updates[5]["updatedAt"], "2024-07-30T12:00:00Z");
    assert_eq!(response["modes"]["currentModeId"], "plan");
    // The chat goes on from there.
    let id = client.prompt(&session, "more").await;
    let (_, turn, _) = engine.prompt().await;
    engine.begin(&session, turn, 7, "more");
    engine.say(&session, turn, 8, "Yes.");
    engine.end(&session, turn, Outcome::Done);
    assert_eq!(client.response(id).await["result"]["stopReason"], "end_turn");
    assert_eq!(client.update().await["sessionUpdate"], "available_commands_update");
    assert_eq!(client.update().await["content"]["text"], "Yes.");
}

#[tokio::test]
async fn a_client_need_not_wait_for_a_load() {
    let (mut client, mut engine) = Client::start(json!({})).await;
    let session = SessionId::new("old");
    engine.store(&session, SessionSettings::default(), "/w", Vec::new());
    let load = client.call("session/load", json!({"sessionId": "old", "cwd": "/w", "mcpServers": []})).await;
    let prompt = client.prompt(&session, "now").await;
    client.notify("session/cancel", json!({"sessionId": "old"})).await;
    assert!(client.response(load).await.get("error").is_none());
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    let (_, turn, _) = engine.prompt().await;
    assert_eq!(engine.next().await, Seen::Cancel { session: session.clone() });
    engine.end(&session, turn, Outcome::Stopped);
    assert_eq!(client.response(prompt).await["result"]["stopReason"], "cancelled");
    // Nor for one that fails.
    let load = client.call("session/load", json!({"sessionId": "no", "cwd": "/w", "mcpServers": []})).await;
    let prompt = client.prompt(&SessionId::new("no"), "now").await;
    assert_eq!(client.response(load).await["error"]["code"], -32002);
    assert_eq!(client.response(prompt).await["error"]["code"], -32002);
}

#[tokio::test]
async fn an_open_question_of_a_busy_chat_is_asked_after_loading() {
    let (mut client, mut engine) = Client::start(json!({})).await;
    let session = SessionId::new("busy");
    let mut facts = conversation();
    facts.truncate(2);
    let ask = domain::Ask {
        id: AskId(9),
        turn: TurnId(1),
        item: Some(ItemId(4)),
        kind: domain::AskKind::Approval { reason: "r".into(), keys: Vec::new() },
    };
    let mut call = tool_call("write_file", json!({"path": "/w/a"}));
    call.state = domain::ToolState::Waiting { ask: AskId(9) };
    facts.push(Fact::ItemStarted { item: item(4, TurnId(1), ItemKind::ToolCall(Box::new(call))) });
    facts.push(Fact::AskRaised { ask });
    engine.store(&session, SessionSettings::default(), "/w", facts);
    engine.set_busy(&session);
    client.request("session/load", json!({"sessionId": "busy", "cwd": "/w", "mcpServers": []})).await;
    let asked = client.asked("session/request_permission").await;
    assert_eq!(asked["params"]["toolCall"]["title"], "Calling write_file");
    client.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})).await;
    assert!(matches!(engine.next().await, Seen::Load { .. }));
    let answer = domain::Answer::Allow { remember: false };
    assert_eq!(engine.next().await, Seen::Answer { session, ask: AskId(9), answer });
}

#[tokio::test]
async fn resume_says_nothing_of_what_was() {
    let (mut client, mut engine) = Client::start(json!({})).await;
    let session = SessionId::new("old");
    engine.store(&session, SessionSettings::default(), "/w", conversation());
    let params = json!({"sessionId": "old", "cwd": "/w", "mcpServers": []});
    let resumed = client.request("session/resume", params).await;
    assert_eq!(resumed["modes"]["currentModeId"], "agent");
    assert!(client.unread().is_empty());
    let missing = json!({"sessionId": "none", "cwd": "/w", "mcpServers": []});
    assert_eq!(client.refused("session/resume", missing.clone()).await.0, -32002);
    assert_eq!(client.refused("session/load", missing).await.0, -32002);
    assert!(matches!(engine.next().await, Seen::Load { .. }));
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_by_folder() {
    let (mut client, engine) = Client::start(json!({})).await;
    for number in 0..60 {
        let folder = if number < 52 { "/w" } else { "/other" };
        let title = Some(format!("Chat {number}"));
        let settings = SessionSettings { title, ..SessionSettings::default() };
        engine.store(&SessionId::new(format!("s{number:02}")), settings, folder, Vec::new());
    }
    let first = client.request("session/list", json!({})).await;
    assert_eq!(first["sessions"].as_array().unwrap().len(), 50);
    assert_eq!(
        first["sessions"][0],
        json!({"sessionId": "s00", "cwd": "/w", "title": "Chat 0", "updatedAt": "2024-07-30T12:00:00Z"})
    );
    let second = client.request("session/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(second["sessions"].as_array().unwrap().len(), 10);
    assert!(second.get("nextCursor").is_none());
    let other = client.request("session/list", json!({"cwd": "/other"})).await;
    assert_eq!(other["sessions"].as_array().unwrap().len(), 8);
    assert_eq!(client.refused("session/list", json!({"cursor": "x"})).await.0, -32602);
    assert_eq!(client.refused("session/list", json!({"cwd": "x"})).await.0, -32602);
}

#[tokio::test]
async fn close_and_delete_end_what_runs() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let prompt = client.prompt(&session, "hello").await;
    engine.prompt().await;
    client.request("session/close", json!({"sessionId": session})).await;
    assert_eq!(client.response(prompt).await["result"]["stopReason"], "cancelled");
    assert_eq!(engine.next().await, Seen::Close { session: session.clone() });
    assert_eq!(client.refused("session/close", json!({"sessionId": session})).await.0, -32002);
    client.request("session/delete", json!({"sessionId": session})).await;
    // The specification: a session that does not exist is deleted silently.
    client.request("session/delete", json!({"sessionId": session})).await;
}

#[tokio::test]
async fn modes_and_options_are_set_here_and_told_from_elsewhere() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    client.request("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
    let change = SessionSettings { behavior: Some("plan".into()), ..SessionSettings::default() };
    assert_eq!(engine.next().await, Seen::Configure { session: Some(session.clone()), change });
    let params = json!({"sessionId": session, "configId": "model", "value": "b/deep"});
    let set = client.request("session/set_config_option", params).await;
    let values: Vec<&Value> =
        set["configOptions"].as_array().unwrap().iter().map(|it| &it["currentValue"]).collect();
    assert_eq!(values, ["plan", "b/deep", "default", "ask"]);
    engine.next().await;
    // What the client set itself is not told to it again; what another does is.
    let elsewhere = SessionSettings {
        title: Some("New".into()),
        behavior: Some("agent".into()),
        variant: Some("high".into()),
        ..SessionSettings::default()
    };
    engine.fact(&session, Fact::SessionChanged { change: elsewhere });
    let updates = client.updates(3).await;
    assert_eq!(updates[0]["title"], "New");
    assert_eq!(updates[1]["currentModeId"], "agent");
    assert_eq!(updates[2]["configOptions"][2]["currentValue"], "high");
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "wild"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": "x/y"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "size", "value": "big"})),
    ] {
        assert_eq!(client.refused(method, params).await.0, -32602, "{method}");
    }
    let nowhere = json!({"sessionId": "no", "modeId": "plan"});
    assert_eq!(client.refused("session/set_mode", nowhere).await.0, -32002);
}

#[tokio::test]
async fn lists_that_change_are_told() {
    let (mut client, engine, _) = Client::session(json!({})).await;
    let mut more = catalog();
    more.models.push(ModelInfo { id: "c/new".into(), ..ModelInfo::default() });
    engine.set_catalog(more);
    engine.event(None, EventBody::Catalog(CatalogKind::Models));
    let offered = client.update().await;
    assert_eq!(offered["configOptions"][1]["options"][2]["value"], "c/new");
    engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
    assert_eq!(client.update().await["sessionUpdate"], "available_commands_update");
}

#[tokio::test]
async fn notices_reach_a_person_once() {
    let notice = |level, text: &str| Notice { level, text: text.into() };
    let told = vec![notice(Level::Warning, "The file is broken."), notice(Level::Info, "All is well.")];
    for (capabilities, kind) in
        [(json!({"session": {"notices": {}}}), "notice"), (json!({}), "agent_message_chunk")]
    {
        let (mut client, engine) = Client::start(capabilities).await;
        engine.set_catalog(Catalog { notices: told.clone(), ..catalog() });
        let mut session = json!(null);
        for _ in 0..2 {
            session = client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
        }
        let session = SessionId::new(session["sessionId"].as_str().unwrap());
        engine.fact(&session, Fact::Notice { notice: notice(Level::Error, "The disk is full.") });
        let mut shown = Vec::new();
        while shown.last().is_none_or(|last: &String| !last.contains("disk")) {
            let update = client.update().await;
            if update["sessionUpdate"] == kind {
                let text = update["title"].as_str().or(update["content"]["text"].as_str()).unwrap();
                shown.push(text.trim_end().to_owned());
            }
        }
        assert_eq!(shown, ["The file is broken.", "All is well.", "The disk is full."]);
    }
}

/// An editor has several sessions on one connection: each one names the servers that failed, once.
#[tokio::test]
async fn every_session_names_the_servers_that_failed() {
    let (mut client, engine) = Client::start(json!({})).await;
    engine.set_servers(vec![ToolServer {
        name: "gone".into(),
        origin: Origin::Mcp,
        status: ServerStatus::Failed,
        command: String::new(),
        args: Vec::new(),
        url: None,
        error: None,
        tools: Vec::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        has_login: false,
    }]);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let new = client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
        sessions.push(new["sessionId"].clone());
    }
    engine.event(None, EventBody::Catalog(CatalogKind::ToolServers));
    engine.fact(
        &SessionId::new(sessions[1].as_str().unwrap()),
        Fact::Notice { notice: Notice { level: Level::Info, text: "the last one".into() } },
    );
    let mut named = Vec::new();
    loop {
        let message = client.next_where(|it| it["method"] == "session/update").await;
        let text = message["params"]["update"]["content"]["text"].to_string();
        if text.contains("The MCP server gone failed.") {
            named.push(message["params"]["sessionId"].clone());
        }
        if text.contains("the last one") {
            break;
        }
    }
    assert_eq!(named, sessions);
}

#[tokio::test]
async fn how_much_was_used_is_told() {
    let (mut client, engine, session) = Client::session(json!({})).await;
    let usage = SessionUsage {
        last: Tokens { input: 100, output: 20, ..Tokens::default() },
        session_cost: Some(0.25),
        context_limit: Some(1000),
        ..SessionUsage::default()
    };
    engine.fact(&session, Fact::UsageChanged { usage });
    let used = client.update().await;
    assert_eq!(
        used,
        json!({
            "sessionUpdate": "usage_update", "used": 120, "size": 1000,
            "cost": {"amount": 0.25, "currency": "USD"},
        })
    );
}

#[tokio::test]
async fn a_fork_is_a_session_of_its_own() {
    let (mut client, mut engine, session) = Client::session(json!({})).await;
    let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
    let forked = client.request("session/fork", params).await;
    assert_eq!(engine.next().await, Seen::Fork { session: session.clone(), until: None });
    let fork = SessionId::new(forked["sessionId"].as_str().unwrap());
    assert_ne!(fork, session);
    assert!(matches!(engine.next().await, Seen::Load { session, .. } if session == fork));
    assert_eq!(forked["modes"]["currentModeId"], "agent");
    client.prompt(&fork, "hello").await;
    assert_eq!(engine.prompt().await.0, fork);
}

#[tokio::test]
async fn trust_takes_every_value_that_clients_send() {
    for (value, expected) in [
        (json!({"value": "trust"}), true),
        (json!({"value": "ask"}), false),
        (json!({"type": "boolean", "value": true}), true),
        // Without the type that the schema demands.
        (json!({"value": false}), false),
        (json!({"value": "true"}), true),
    ] {
        let (mut client, mut engine, session) = Client::session(json!({})).await;
        let mut params = json!({"sessionId": session, "configId": "trust"});
        params.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        client.request("session/set_config_option", params).await;
        let Seen::Configure { change, .. } = engine.next().await else { panic!("a setting changes") };
        assert_eq!(change.trust, Some(expected), "{value}");
    }
    let (mut client, _, session) = Client::session(json!({})).await;
    let params = json!({"sessionId": session, "configId": "trust", "value": "maybe"});
    let (_, sentence) = client.refused("session/set_config_option", params).await;
    assert!(sentence.contains("\"ask\" or \"trust\""), "{sentence}");
}
