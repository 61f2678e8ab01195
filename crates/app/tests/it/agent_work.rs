//! What Dragoman adds to the work of an agent of another vendor: goals, tools of our MCP servers, windows, and what survives.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Home, answer, contents, is_finished, run_command, system_text};
use crate::lines::LineClient;
use crate::other_agents::{config, is_whole, run, script};
use crate::tmux::{Screen, Start};
use crate::web_window::WebWindow;

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_goal_runs_its_checks_when_an_agent_is_done() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let arguments = ["run", "--approve", "sandboxed", "--until", "cat done", "make it so"];
    let said = run(&home, &config, &arguments).await;
    for part in ["I think it is done.", "The command `cat done` was run", "No such file", "GOAL: DONE"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(home.workspace().join("done").exists());
    std::fs::remove_file(home.workspace().join("done")).expect("a file");
    let few = json!({"maxSteps": 1});
    let mut spent = config.clone();
    spent["goal"] = few;
    let (code, out, err) = run_command(&home, &spent, &["run", "--until", "false", "make it so"]).await;
    assert!(code != Some(0) && format!("{out}{err}").contains("not reached"), "{out}{err}");
}

#[tokio::test]
async fn an_agent_calls_tools_of_our_servers_under_our_rules() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/scripted.py");
    config["mcpServers"] = json!({"good": {"command": "python3", "args": [servers, "good"]}});
    let prompt = "tool good__echo {\"text\": \"hello\"}";
    let said = run(&home, &config, &["run", "--approve", "all", prompt]).await;
    assert!(said.contains("good__echo") && said.contains("done: ") && said.contains("hello"), "{said}");
    let exported = crate::other_agents::exported(&home, &config).await;
    assert!(exported.contains("\"server\":\"good\""), "the call is one of our own: {exported}");
    // Nobody approves it here.
    let (_, out, err) = run_command(&home, &config, &["run", prompt]).await;
    assert!(out.contains("failed: ") && !out.contains("done: "), "{out}{err}");
    config["toolCall"] = json!({"approval": {"deny": {"good__echo": {}}}});
    let (_, out, err) = run_command(&home, &config, &["run", "--approve", "all", prompt]).await;
    assert!(out.contains("failed: ") && !out.contains("done: "), "{out}{err}");
    config["mcpServers"] = json!({});
    let said = run(&home, &config, &["run", "--approve", "all", prompt]).await;
    assert_eq!(said.trim(), "no server", "an agent gets a server only where there are tools");
}

/// The processes of the scripted agent of this home, as the system numbers them.
fn agents_of(home: &Home) -> Vec<u32> {
    let state = home.path().join(".double").display().to_string();
    let has = |process: &Path, file: &str, text: &str| {
        let bytes = std::fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    };
    let processes = std::fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let own = processes.filter(|process| {
        has(process, "environ", &state)
            && has(process, "cmdline", "agent.py")
            && has(process, "comm", "python")
    });
    own.filter_map(|process| process.file_name()?.to_str()?.parse().ok()).collect()
}

fn kill(processes: &[u32]) {
    let names: Vec<String> = processes.iter().map(ToString::to_string).collect();
    let status = std::process::Command::new("kill").arg("-9").args(names).status().expect("kill");
    assert!(status.success());
}

#[tokio::test]
async fn kill_of_the_agent_and_of_both_loses_nothing_that_was_shown() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("c"), "remember the first").await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "sleep"})).await;
    client.until(|message| message["params"]["content"]["text"] == "asleep").await;
    let agents = agents_of(&home);
    assert!(!agents.is_empty(), "the agent runs");
    kill(&agents);
    let shown = contents(&client.until(is_finished).await);
    assert!(system_text(&shown).contains("ended in the middle of its work"), "{shown:?}");
    let (_, shown) = client.prompt(Some("c"), "recall").await;
    assert_eq!(answer(&shown), "earlier: remember the first | sleep");
    client.ask("chat/prompt", json!({"chatId": "c", "message": "sleep"})).await;
    client.until(|message| message["params"]["content"]["text"] == "asleep").await;
    let mut both = agents_of(&home);
    both.push(client.child.id().expect("a running child"));
    kill(&both);
    drop(client);
    let mut client = Client::start(&home, &config).await;
    let id = client.ask("chat/open", json!({"chatId": "c"})).await;
    let opened = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    let text = answer(&contents(&opened));
    assert_eq!(text.matches("asleep").count(), 2, "shown text survives: {text}");
    let (_, shown) = client.prompt(Some("c"), "recall").await;
    assert_eq!(answer(&shown), "earlier: remember the first | sleep | recall | sleep");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn settings_that_an_agent_leaves_between_two_prompts_are_moved_aside() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    // The scripted agent under the name of a known one.
    config["acpAgents"] = json!({"codex": {"command": "python3", "args": [script()]}});
    config["defaultModel"] = json!("acp:codex/default");
    let mut client = Client::start(&home, &config).await;
    let line = "while [ ! -e go ]; do sleep 0.05; done; mkdir -p ~/.codex/prompts && echo evil > ~/.codex/prompts/p.md && touch ~/.codex/made";
    let (_, shown) = client.prompt(Some("c"), &format!("later {line}")).await;
    assert_eq!(answer(&shown), "later");
    home.write("work/go", "");
    let end = Instant::now() + DEADLINE;
    while !home.path().join(".codex/made").exists() {
        assert!(Instant::now() < end, "the agent goes on between two prompts");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.prompt(Some("c"), "hello").await;
    assert!(!home.path().join(".codex/prompts").exists(), "its own program would obey it later");
    assert!(home.path().join(".codex/prompts.left-by-agent/p.md").exists(), "nothing is deleted");
    assert!(client.end().await.success());
    let told = crate::other_agents::exported(&home, &config).await;
    assert!(told.contains("prompts.left-by-agent"), "the chat says so: {told}");
}

/// An ECA client, an ACP client, a terminal and a page follow one chat of an agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_window_shows_the_work_of_an_agent() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let mut holder = Client::start(&home, &config).await;
    holder.prompt(Some("c"), "hello").await;
    let mut acp = LineClient::spawn(&home, &config, &["acp"]);
    acp.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    acp.request("session/load", json!({"sessionId": "c", "cwd": home.workspace(), "mcpServers": []})).await;
    let start = Start { command: "attach", arguments: &["c"], ..Start::default() };
    let screen = Screen::start(&home, &config, &start);
    screen.until("Hello there");
    let mut page = WebWindow::open(&home, &config, "c").await;
    // Said in the terminal, done by the agent of the holder.
    let words = "model first, mode ask, effort low";
    screen.say("model");
    let shown = contents(&holder.until(is_finished).await);
    assert_eq!(answer(&shown), words);
    let mut seen = String::new();
    while !seen.contains(words) {
        let message: Value = acp.next().await.expect("the server is there");
        seen.push_str(message["params"]["update"]["content"]["text"].as_str().unwrap_or_default());
    }
    screen.until(words);
    if let Some(page) = &mut page {
        page.until_ended(words).await;
    }
    assert!(holder.end().await.success());
}
