//! `dragoman acp --proxy`: an editor, the scripted agent of `acp-client`, and Dragoman between them.

use serde_json::{Value, json};

use crate::acp_client::Editor;
use crate::client::Home;
use crate::lines::LineClient;
use crate::other_agents::{config, exported, is_whole, script};

/// Settings with an agent that offers modes, options and commands.
fn offering(home: &Home) -> Value {
    let mut config = config(home);
    config["acpAgents"]["double"]["env"]["AGENT_OFFERS"] = json!("1");
    config
}

async fn connect(home: &Home, config: &Value) -> LineClient {
    let mut client = LineClient::spawn(home, config, &["acp", "--proxy", "double"]);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    client
}

/// The commands that the client was told of last, once they fit.
async fn until_commands(client: &mut LineClient, wanted: &str) -> Vec<Value> {
    loop {
        let message = client.next().await.expect("the server is there");
        let update = &message["params"]["update"];
        let commands = update["availableCommands"].as_array().cloned().unwrap_or_default();
        if commands.iter().any(|command| command["name"] == wanted) {
            return commands;
        }
    }
}

fn ids(options: &Value) -> Vec<&str> {
    options.as_array().expect("options").iter().filter_map(|option| option["id"].as_str()).collect()
}

#[tokio::test]
async fn an_editor_sees_what_the_agent_offers_unchanged_and_ours_beside_it() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = offering(&home);
    let mut client = connect(&home, &config).await;
    let new = json!({"cwd": home.workspace(), "mcpServers": []});
    let opened = client.request("session/new", new).await;
    let session = opened["sessionId"].clone();
    let modes = json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    assert_eq!(opened["modes"], modes);
    assert_eq!(opened["models"]["currentModelId"], "first");
    assert_eq!(ids(&opened["configOptions"]), ["effort", "dragoman-mode", "dragoman-trust"]);
    let commands = until_commands(&mut client, "shout").await;
    let of_name = |name: &str| commands.iter().filter(|command| command["name"] == name).collect::<Vec<_>>();
    assert_eq!(
        of_name("shout"),
        [&json!({"name": "shout", "description": "Says it loudly", "input": {"hint": "what"}})]
    );
    assert_eq!(of_name("compact"), [&json!({"name": "compact", "description": "Its own compaction"})]);
    assert_eq!((of_name("undo").len(), of_name("goal").len()), (1, 1), "ours stand beside them");

    let mode = json!({"sessionId": session, "modeId": "code"});
    client.request("session/set_mode", mode).await;
    let effort = json!({"sessionId": session, "configId": "effort", "value": "high"});
    let options = client.request("session/set_config_option", effort).await;
    assert_eq!(options["configOptions"][0]["currentValue"], "high");
    let own = json!({"sessionId": session, "configId": "dragoman-mode", "value": "agent"});
    let options = client.request("session/set_config_option", own).await;
    assert_eq!(ids(&options["configOptions"]), ["effort", "dragoman-mode", "dragoman-trust"]);

    let mut editor = Editor::with(client, session);
    assert_eq!(editor.say("model").await, "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "model first, mode code, effort high");
    editor.say("/shout it works").await;
    assert_eq!(editor.text("agent_message_chunk"), "IT WORKS");
    editor.say("/compact").await;
    assert_eq!(editor.text("agent_message_chunk"), "Hello there", "the agent's own command");
    // And everything that Dragoman adds.
    editor.say("run echo made > made.txt").await;
    assert!(home.workspace().join("made.txt").exists());
    editor.say("/undo").await;
    assert!(!home.workspace().join("made.txt").exists());
    assert!(exported(&home, &config).await.contains("IT WORKS"), "the chat is kept");
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn a_proxy_goes_on_with_an_earlier_chat_and_names_an_agent_that_is_missing() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = offering(&home);
    let client = connect(&home, &config).await;
    let mut editor = Editor::with(client, Value::Null);
    let new = json!({"cwd": home.workspace(), "mcpServers": []});
    editor.session = editor.client.request("session/new", new).await["sessionId"].clone();
    editor.say("remember this").await;
    let session = editor.session.clone();
    assert!(editor.client.end().await.success());

    let mut client = connect(&home, &config).await;
    let load = json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    let loaded = client.request("session/load", load).await;
    assert_eq!(loaded["modes"]["currentModeId"], "ask");
    let mut editor = Editor::with(client, session);
    editor.say("recall").await;
    let said = editor.text("agent_message_chunk");
    assert!(said.ends_with("earlier: remember this"), "the session of the agent goes on: {said}");
    assert!(editor.client.end().await.success());

    let mut client = LineClient::spawn(&home, &config, &["acp", "--proxy", "nobody"]);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let id = client.call("session/new", json!({"cwd": home.workspace(), "mcpServers": []})).await;
    let refused = loop {
        let message = client.next().await.expect("the server is there");
        if message["id"] == json!(id) {
            break message;
        }
    };
    assert!(refused["error"]["message"].to_string().contains("There is no agent nobody"), "{refused}");
}

/// What a conversation shows, whatever the ids and the number of its pieces are.
fn shape(updates: &[Value]) -> Value {
    let of_kind = |kind: &'static str| updates.iter().filter(move |it| it["sessionUpdate"] == kind);
    let text = |kind| of_kind(kind).filter_map(|it| it["content"]["text"].as_str()).collect::<String>();
    let steps = |it: &Value| -> Vec<Value> {
        let entries = it["entries"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| json!([entry["content"], entry["status"]])).collect()
    };
    let plans: Vec<_> = of_kind("plan").map(steps).collect();
    let mut commands = serde_json::Map::new();
    for call in of_kind("tool_call").filter(|it| it["kind"] == "execute") {
        let id = &call["toolCallId"];
        let statuses = updates.iter().filter(|it| it["toolCallId"] == *id);
        let last = statuses.filter_map(|it| it["status"].as_str()).next_back();
        commands.insert(call["title"].to_string(), json!(last));
    }
    json!({"said": text("agent_message_chunk"), "thought": text("agent_thought_chunk"), "plans": plans, "commands": commands})
}

async fn converse(editor: &mut Editor) -> Vec<Value> {
    let mut shapes = Vec::new();
    for words in ["hello", "plan", "run echo one; echo two"] {
        assert_eq!(editor.say(words).await, "end_turn");
        shapes.push(shape(&editor.updates));
    }
    shapes
}

#[tokio::test]
async fn a_conversation_is_the_same_with_and_without_the_proxy() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = offering(&home);
    let new = json!({"cwd": home.workspace(), "mcpServers": []});
    let mut alone: tokio::process::Command = tokio::process::Command::new("python3");
    alone.arg(script()).env("AGENT_OFFERS", "1").current_dir(home.workspace());
    let mut client = LineClient::start(alone, "acp");
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let session = client.request("session/new", new.clone()).await["sessionId"].clone();
    let mut direct = Editor::with(client, session);
    let mut client = connect(&home, &config).await;
    let session = client.request("session/new", new).await["sessionId"].clone();
    let mut between = Editor::with(client, session);
    assert_eq!(converse(&mut between).await, converse(&mut direct).await);
    assert!(between.client.end().await.success());
}
