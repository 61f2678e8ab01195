//! What begins and ends with an ACP session or its client: servers, commands, the program itself.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::acp_client::Editor;
use crate::client::{Home, fake_provider, runs_in};
use crate::lines::LineClient;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");

fn python() -> String {
    let found =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    String::from_utf8(found.expect("Python 3").stdout).expect("a path").trim().to_owned()
}

/// Every process that a server told of in its log.
fn processes(log: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .flat_map(|line| {
            let children = line["children"].as_array().cloned().unwrap_or_default();
            children.into_iter().chain([line["pid"].clone()])
        })
        .filter_map(|pid| pid.as_u64().and_then(|pid| u32::try_from(pid).ok()))
        .collect()
}

async fn gone(home: &Home, processes: &[u32]) {
    assert!(!processes.is_empty(), "there were processes");
    let alive = |pid: &&u32| runs_in(&home.workspace(), **pid);
    for _ in 0..600 {
        if processes.iter().find(alive).is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?} are left behind", processes.iter().filter(alive).collect::<Vec<_>>());
}

async fn initialized(home: &Home, config: &Value) -> LineClient {
    let mut client = LineClient::spawn(home, config, &["acp"]);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    client
}

#[tokio::test]
async fn servers_of_the_client_live_with_the_session() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let log = home.workspace().join("stdio.log");
    let http_log = home.path().join("http.log");
    let mut http = tokio::process::Command::new("python3")
        .arg(SCRIPT)
        .args(["http", "locked", "--log"])
        .arg(&http_log)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a server");
    let mut lines = BufReader::new(http.stdout.take().expect("stdout")).lines();
    let port = lines.next_line().await.expect("a line").expect("its port");
    let mut client = initialized(&home, &fake_provider(fake.url(), "anthropic")).await;
    let servers = json!([
        {"name": "near", "command": python(), "args": [SCRIPT, "family", "--log", log],
         "env": [{"name": "GIVEN", "value": "by the client"}]},
        {"type": "http", "name": "far", "url": format!("http://127.0.0.1:{}/mcp", port.trim()),
         "headers": [{"name": "Authorization", "value": "Bearer right-token-123"}]},
    ]);
    let new = json!({"cwd": home.workspace(), "mcpServers": servers});
    let session = client.request("session/new", new.clone()).await["sessionId"].clone();
    let mut editor = Editor::with(client, session.clone());
    editor.choices = ["allow_once", "allow_once"].into();
    let both = |message: &Value| {
        let commands = message["params"]["update"]["availableCommands"].to_string();
        commands.contains("near") && commands.contains("far")
    };
    editor.until(both).await;
    fake.answer(Answer::tool_call("c1", "near__environment", json!({"text": "GIVEN"})));
    fake.answer(Answer::tool_call("c2", "far__echo", json!({"text": "over http"})))
        .answer(Answer::text("ok"));
    assert_eq!(editor.say("call them").await, "end_turn");
    let results: Vec<String> = fake.requests().iter().flat_map(|it| it.tool_results()).collect();
    assert!(results.iter().any(|it| it.contains("by the client")), "{results:?}");
    assert!(results.iter().any(|it| it.contains("over http")), "{results:?}");
    // They are this session's alone.
    let bare = json!({"cwd": home.workspace(), "mcpServers": []});
    let other = editor.client.request("session/new", bare).await["sessionId"].clone();
    let first = std::mem::replace(&mut editor.session, other);
    fake.answer(Answer::text("ok"));
    editor.say("hello").await;
    assert!(!fake.last_request().tools().iter().any(|it| it.starts_with("near__")), "only in its session");
    editor.client.request("session/close", json!({"sessionId": first})).await;
    gone(&home, &processes(&log)).await;
    let told = |word: &str| std::fs::read_to_string(&http_log).unwrap_or_default().contains(word);
    for _ in 0..100 {
        if told("DELETE") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(told("\"http\": \"DELETE\""), "the HTTP session is ended");
    // Loaded again with its servers, and left by closing the pipe.
    std::fs::remove_file(&log).expect("the log");
    let load = json!({"sessionId": first, "cwd": home.workspace(), "mcpServers": new["mcpServers"]});
    editor.client.request("session/load", load).await;
    for _ in 0..1200 {
        if processes(&log).len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let again = processes(&log);
    assert_eq!(again.len(), 3, "they started again: {}", std::fs::read_to_string(&log).unwrap_or_default());
    assert!(editor.client.end().await.success());
    gone(&home, &again).await;
}

#[tokio::test]
async fn a_client_that_dies_leaves_no_process_behind() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let log = home.workspace().join("stdio.log");
    let mut client = initialized(&home, &fake_provider(fake.url(), "anthropic")).await;
    let servers =
        json!([{"name": "near", "command": python(), "args": [SCRIPT, "family", "--log", log], "env": []}]);
    let new = json!({"cwd": home.workspace(), "mcpServers": servers});
    let session = client.request("session/new", new).await["sessionId"].clone();
    let mut editor = Editor::with(client, session);
    editor.choices.push_back("allow_once");
    editor.until(|message| message.to_string().contains("near")).await;
    let line = "sh -c 'echo $$ > pid.new; mv pid.new pid; sleep 1000' & wait";
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": line})));
    let id = editor.begin(json!([{"type": "text", "text": "run"}])).await;
    let running = home.workspace().join("pid");
    let started = async {
        while !running.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = editor.until_response(id) => panic!("the turn does not end by itself"),
        () = started => {}
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("the command runs"),
    }
    let mut all = processes(&log);
    assert_eq!(all.len(), 3);
    all.push(std::fs::read_to_string(&running).expect("a pid").trim().parse().expect("a number"));
    let mut program = editor.client.die();
    let ended = tokio::time::timeout(Duration::from_secs(10), program.wait()).await;
    ended.expect("it ends").expect("a status");
    gone(&home, &all).await;
}

#[tokio::test]
async fn nonsense_allows_nothing_and_ends_nothing() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "anthropic");
    let capabilities =
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "later": {"x": 1}, "_meta": {}});
    let (mut client, session) = LineClient::acp(&home, &config, capabilities).await;
    home.write("work/a.txt", "on the disk\n");
    for (number, nonsense) in
        [json!({"outcome": "yes"}), json!(7), json!({"outcome": {"outcome": "selected", "optionId": "sure"}})]
            .into_iter()
            .enumerate()
    {
        fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch made"})));
        fake.answer(Answer::tool_call("d", "eca__read_file", json!({"path": "a.txt"})))
            .answer(Answer::text("ok"));
        let blocks = json!([{"type": "text", "text": "go"}]);
        let params = json!({"sessionId": session, "prompt": blocks, "_meta": {"n": number}, "extra": null});
        let id = client.call("session/prompt", params).await;
        loop {
            let message = client.next().await.expect("the agent is there");
            if message.get("method").is_none() && message["id"] == json!(id) {
                assert_eq!(message["result"]["stopReason"], "end_turn");
                break;
            }
            if message.get("id").is_some() {
                client.answer(&message, nonsense.clone()).await;
            }
        }
        assert!(!home.workspace().join("made").exists(), "{nonsense} allows nothing");
        let results = fake.last_request().tool_results();
        assert!(results.last().is_some_and(|it| it.contains("on the disk")), "{results:?}");
    }
    for method in ["_vendor/extension", "session/steal", "no/such"] {
        assert_eq!(client.refused(method, json!({})).await.0, -32601, "{method}");
    }
    client.notify("_vendor/told", json!({"x": 1})).await;
    client.request("session/list", json!({"_meta": {}, "unknown": 1})).await;
    assert!(client.end().await.success());
}
