//! MCP servers in an ECA client: started beside chats, asked before they run, reported when they fail, ended with us.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider, is_finished};

/// The fake provider and scripted servers by name and mode.
fn config(url: &str, servers: &[(&str, &str)]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");
    let mut config = fake_provider(url, "openai-chat");
    config["mcpServers"] = servers
        .iter()
        .map(|(name, mode)| ((*name).to_owned(), json!({"command": "python3", "args": [script, mode]})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    config
}

fn is_server(message: &Value, name: &str, status: &str) -> bool {
    message["method"] == "tool/serverUpdated"
        && message["params"]["name"] == name
        && message["params"]["status"] == status
}

#[tokio::test]
async fn a_server_runs_its_tools_are_asked_and_it_can_be_stopped_and_started() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &config(fake.url(), &[("good", "good"), ("bad", "dies")])).await;
    let messages = client.until(|it| is_server(it, "good", "running")).await;
    let first = messages.iter().find(|it| it["method"] == "tool/serverUpdated").expect("a server");
    assert_eq!(first["params"]["name"], "ECA", "the built-in tools come first");
    let tools = messages.last().expect("the server")["params"]["tools"].to_string();
    assert!(tools.contains("echo"), "{tools}");
    if !messages.iter().any(|it| is_server(it, "bad", "failed")) {
        client.until(|it| is_server(it, "bad", "failed")).await;
    }

    fake.answer(Answer::tool_call("c1", "good__echo", json!({"text": "hello"}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "echo"})).await;
    let before = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = &before.last().expect("the call")["content"];
    assert_eq!(
        (&run["server"], &run["origin"], &run["name"]),
        (&json!("good"), &json!("mcp"), &json!("echo"))
    );
    assert_eq!(run["manualApproval"], true, "hints of a server are not believed");
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"]})).await;
    let after = contents(&client.until(is_finished).await);
    let called = after.iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], false, "{called}");
    assert!(called["content"]["outputs"].to_string().contains("hello"), "{called}");

    client.notify("mcp/stopServer", json!({"name": "good"})).await;
    client.until(|it| is_server(it, "good", "stopped")).await;
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "again").await;
    assert!(
        !fake.last_request().body["tools"].to_string().contains("good__echo"),
        "its tools are not offered"
    );
    client.notify("mcp/startServer", json!({"name": "good"})).await;
    client.until(|it| is_server(it, "good", "running")).await;
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_slow_server_delays_no_chat_and_nothing_is_left_behind() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mark = format!("slow-{}", std::process::id());
    let mut client =
        Client::start(&home, &config(fake.url(), &[(mark.as_str(), "slow"), ("mute", "mute")])).await;
    fake.answer(Answer::text("at once"));
    client.prompt(None, "hi").await;
    let pid = client.child.id().expect("a child");
    let children = children_of(pid);
    client.child.kill().await.expect("kill -9");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left: Vec<u32> = children.into_iter().filter(|pid| alive(*pid)).collect();
    assert!(left.is_empty(), "{left:?} outlived us");
}

fn children_of(parent: u32) -> Vec<u32> {
    let tasks = format!("/proc/{parent}/task");
    let threads = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}
