//! Agents of other vendors from outside: the real program with the scripted agent of `acp-client` as a model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, run_command, system_text};
use crate::lines::LineClient;

const MODEL: &str = "acp:double/default";

pub(crate) fn script() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
    crates.join("acp-client/tests/it/agent.py")
}

/// The settings with the scripted agent, which keeps its sessions in its own folder of the home.
pub(crate) fn config(home: &Home) -> Value {
    let state = home.path().join(".double");
    std::fs::create_dir_all(&state).expect("a folder");
    json!({
        "defaultModel": MODEL,
        "chat": {"title": false},
        "acpAgents": {"double": {
            "command": "python3",
            "args": [script()],
            "env": {"AGENT_STATE": state, "AGENT_LOG": state.join("starts")},
            "state": [state],
        }},
    })
}

pub(crate) async fn run(home: &Home, config: &Value, arguments: &[&str]) -> String {
    let (code, out, err) = run_command(home, config, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    out
}

/// Whether agents run in the whole sandbox here.
pub(crate) async fn is_whole(home: &Home) -> bool {
    let (_, out, _) = run_command(home, &json!({}), &["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let is_there = checks.iter().any(|check| check["name"] == "sandbox" && check["state"] == "ok");
    if !is_there {
        testkit::skip("this system has no complete sandbox");
    }
    is_there
}

pub(crate) async fn exported(home: &Home, config: &Value) -> String {
    let list: Value =
        serde_json::from_str(&run(home, config, &["chats", "list", "--json"]).await).expect("JSON");
    let id = list["chats"][0]["id"].as_str().expect("an id").to_owned();
    run(home, config, &["chats", "export", &id]).await
}

#[tokio::test]
async fn an_agent_answers_as_a_model_and_everything_it_does_is_kept() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    assert_eq!(run(&home, &config, &["run", "--model", MODEL, "hello"]).await.trim(), "Hello there");
    let planned = run(&home, &config, &["run", "--continue", "plan"]).await;
    assert_eq!(planned.trim(), "planned");
    let ran = run(&home, &config, &["run", "--continue", "run echo one; pwd"]).await;
    assert!(ran.starts_with("ran: one\n") && ran.contains("/work"), "{ran}");
    let facts = exported(&home, &config).await;
    for kept in
        ["I greet", "Hello there", "Test Double 1.0 works in the sandbox", "echo one; pwd", "\"look\""]
    {
        assert!(facts.contains(kept), "{kept} is not in the journal: {facts}");
    }
    assert!(
        facts.contains("\"session_cost\":0.25") || facts.contains("0.25"),
        "the cost as the agent reports it"
    );
    let searched = run(&home, &config, &["chats", "search", "there"]).await;
    assert!(searched.contains("hello"), "{searched}");
}

#[tokio::test]
async fn one_list_offers_agents_to_every_front_end() {
    let home = Home::new();
    let config = config(&home);
    let listed = run(&home, &config, &["models"]).await;
    assert!(listed.contains(MODEL), "{listed}");
    let mut client = Client::start(&home, &config).await;
    let offered = client
        .until(|message| {
            message["method"] == "config/updated"
                && message["params"]["chat"]["models"].to_string().contains(MODEL)
        })
        .await;
    assert!(!offered.is_empty());
    client.end().await;
    let (mut editor, _) = LineClient::acp(&home, &config, json!({})).await;
    // Agents are looked for in the background.
    let mut is_offered = false;
    for _ in 0..50 {
        let params = json!({"cwd": home.workspace(), "mcpServers": []});
        let session = editor.request("session/new", params).await;
        is_offered = session.to_string().contains(MODEL);
        if is_offered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(is_offered, "the picker of ACP");
}

#[tokio::test]
async fn undo_restores_every_byte_that_an_agent_changed() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let path = |name: &str| home.workspace().join(name);
    std::fs::create_dir_all(path("src")).expect("a folder");
    std::fs::write(path("a.txt"), "one\r\n\u{0}two").expect("a file");
    std::fs::write(path("src/b.txt"), "kept\n").expect("a file");
    let read = |name: &str| std::fs::read(path(name)).ok();
    let before = (read("a.txt"), read("src/b.txt"), read("made.txt"), read("written.txt"));
    // By its shell, by an edit that it asks for, and by our own file tool.
    run(&home, &config, &["run", "--approve", "sandboxed", "run rm -rf src; echo new > a.txt"]).await;
    let made = path("made.txt").display().to_string();
    assert_eq!(
        run(&home, &config, &["run", "--continue", "--approve", "sandboxed", &format!("edit {made} made")])
            .await
            .trim(),
        "edited"
    );
    let written = path("written.txt").display().to_string();
    assert_eq!(
        run(
            &home,
            &config,
            &["run", "--continue", "--approve", "sandboxed", &format!("write {written} exact")]
        )
        .await
        .trim(),
        "written"
    );
    assert_eq!(
        (read("src/b.txt"), read("made.txt"), read("written.txt")),
        (None, Some(b"made".to_vec()), Some(b"exact".to_vec()))
    );
    run(&home, &config, &["run", "--continue", "/undo 3"]).await;
    assert_eq!((read("a.txt"), read("src/b.txt"), read("made.txt"), read("written.txt")), before);
}

#[tokio::test]
async fn a_deny_rule_holds_for_what_an_agent_asks_and_for_what_it_does_not() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    config["toolCall"] = json!({"approval": {"deny": {
        "eca__shell_command": {"argsMatchers": {"command": ["rm .*"]}},
        "read_file": {"argsMatchers": {"path": [".*\\.env"]}},
    }}});
    home.write("work/.env", "SECRET=1");
    home.write("work/keep.txt", "kept");
    let refused = run(&home, &config, &["run", "--approve", "all", "ask-run rm -f keep.txt"]).await;
    assert_eq!(refused.trim(), "refused");
    assert!(home.workspace().join("keep.txt").exists());
    let env = home.workspace().join(".env").display().to_string();
    let read = run(&home, &config, &["run", "--approve", "all", &format!("read {env}")]).await;
    assert!(read.contains("not read") && !read.contains("SECRET=1"), "{read}");
    let unasked = run(&home, &config, &["run", "--approve", "all", "run cat .env"]).await;
    assert!(unasked.contains("ermission denied") && !unasked.contains("SECRET=1"), "{unasked}");
}

#[tokio::test]
async fn a_person_is_asked_in_the_open_window_and_the_answer_reaches_the_agent() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    config["sandbox"] = json!("ask");
    let mut client = Client::start(&home, &config).await;
    for (approves, said) in [(false, "refused"), (true, "ran: yes\n")] {
        client.ask("chat/prompt", json!({"chatId": "c", "message": "ask-run touch made; echo yes"})).await;
        let is_asked = |message: &Value| {
            let content = &message["params"]["content"];
            content["type"] == "toolCallRun" && content["manualApproval"] == true
        };
        let asked = client.until(is_asked).await;
        let call = &asked.last().expect("a question")["params"]["content"];
        assert!(call.to_string().contains("touch made; echo yes"), "{call}");
        let method = if approves { "chat/toolCallApprove" } else { "chat/toolCallReject" };
        client.notify(method, json!({"chatId": "c", "toolCallId": call["id"]})).await;
        let shown = contents(&client.until(is_finished).await);
        assert_eq!(answer(&shown), said);
    }
    assert!(client.end().await.success());
}

#[tokio::test]
async fn a_killed_agent_and_a_killed_dragoman_lose_nothing() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let mut client = Client::start(&home, &config).await;
    let (_, shown) = client.prompt(Some("c"), "remember the first").await;
    assert_eq!(answer(&shown), "Hello there");
    let (_, shown) = client.prompt(Some("c"), "die").await;
    assert_eq!(answer(&shown), "last words", "what was shown before the end stays");
    let told = format!("{shown:?}");
    assert!(told.contains("ended in the middle of its work"), "{told}");
    let (_, shown) = client.prompt(Some("c"), "recall").await;
    assert_eq!(answer(&shown), "earlier: remember the first | die", "the session goes on");
    client.ask("chat/prompt", json!({"chatId": "c", "message": "sleep"})).await;
    client.until(|message| message["params"]["content"]["text"] == "asleep").await;
    client.child.kill().await.expect("kill -9");
    drop(client);
    let mut client = Client::start(&home, &config).await;
    let id = client.ask("chat/open", json!({"chatId": "c"})).await;
    let opened = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    assert!(answer(&contents(&opened)).contains("asleep"), "shown text survives");
    let (_, shown) = client.prompt(Some("c"), "recall").await;
    assert_eq!(answer(&shown), "earlier: remember the first | die | recall | sleep");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn the_history_is_handed_over_where_an_agent_does_not_know_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    let provider = fake_provider(fake.url(), "openai-chat");
    config["providers"] = provider["providers"].clone();
    fake.answer(Answer::text("The code word is plum."));
    run(&home, &config, &["run", "--model", "fake/m1", "what is the code word?"]).await;
    let (_, out, err) = run_command(&home, &config, &["run", "--continue", "--model", MODEL, "hello"]).await;
    assert!(out.contains("Hello there"), "{out}{err}");
    let recalled = run(&home, &config, &["run", "--continue", "--model", MODEL, "recall"]).await;
    assert!(recalled.contains("what is the code word?") && recalled.contains("plum"), "{recalled}");
    assert!(exported(&home, &config).await.contains("was given the earlier messages"), "the user is told");
    // And back: the model of a provider reads what the agent said.
    fake.answer(Answer::text("fine"));
    run(&home, &config, &["run", "--continue", "--model", "fake/m1", "go on"]).await;
    assert!(fake.last_request().body.to_string().contains("Hello there"));
}

#[tokio::test]
async fn the_sandbox_shows_an_agent_its_own_login_and_no_other_secret() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    // The scripted agent under the name of a known one.
    let program = home
        .write("work/bin/codex-acp", &format!("#!/bin/sh\nexec python3 '{}' \"$@\"\n", script().display()));
    let runnable: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, runnable).expect("a program");
    home.write(".codex/auth.json", "its own login");
    home.write(".codex/config.toml", "settings");
    home.write(".ssh/id_ed25519", "a private key");
    home.write(".claude/.credentials.json", "another login");
    let config = json!({"defaultModel": "acp:codex/default", "chat": {"title": false}});
    let path =
        format!("{}:{}", home.workspace().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let script = "cat ~/.codex/auth.json; cat ~/.ssh/id_ed25519; cat ~/.claude/.credentials.json; \
                  echo x > ~/.codex/history && echo wrote; echo evil >> ~/.codex/config.toml; \
                  mkdir -p ~/.codex/prompts && echo evil > ~/.codex/prompts/p.md; echo x > ~/outside; echo x > inside && echo in";
    let mut command: tokio::process::Command =
        home.command(&["run", "--approve", "sandboxed", &format!("run {script}")]).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).env("PATH", path).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output())
        .await
        .expect("it ends")
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("its own login") && said.contains("wrote") && said.contains("in\n"), "{said}");
    assert!(!said.contains("a private key") && !said.contains("another login"), "{said}");
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
    assert_eq!((read(".codex/config.toml").as_str(), read("outside").as_str()), ("settings", ""));
    assert!(!home.path().join(".codex/prompts").exists(), "what would run later is taken back");
    assert_eq!(read("work/inside"), "x\n");
}

#[tokio::test]
async fn an_agent_runs_without_the_sandbox_only_by_the_users_setting() {
    let home = Home::new();
    let mut config = config(&home);
    config["acpAgents"]["double"]["sandbox"] = json!(false);
    let target = home.path().join("outside.txt");
    let said =
        run(&home, &config, &["run", "--approve", "all", &format!("run echo x > {}", target.display())])
            .await;
    assert!(said.starts_with("ran:") && target.exists(), "{said}");
    assert!(exported(&home, &config).await.contains("works without a sandbox"));
}

#[tokio::test]
async fn a_terminal_of_an_agent_is_a_command_of_ours() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let said = run(&home, &config, &["run", "--approve", "sandboxed", "terminal printf hi; exit 3"]).await;
    assert!(said.starts_with("exit 3: hi"), "{said}");
    assert!(exported(&home, &config).await.contains("\"name\":\"shell_command\""));
}

#[tokio::test]
async fn a_plan_changes_nothing_whatever_the_agent_tries() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let said = run(&home, &config, &["run", "--behavior", "plan", "run echo x > made.txt"]).await;
    assert!(!home.workspace().join("made.txt").exists(), "{said}");
    let path = home.workspace().join("made.txt").display().to_string();
    let asked =
        run(&home, &config, &["run", "--continue", "--behavior", "plan", &format!("edit {path} x")]).await;
    assert_eq!(asked.trim(), "refused");
}

#[tokio::test]
async fn a_failed_agent_is_explained_and_another_model_takes_over() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let mut config = config(&home);
    let provider = fake_provider(fake.url(), "openai-chat");
    config["providers"] = provider["providers"].clone();
    config["acpAgents"]["broken"] = json!({"command": "sh", "args": ["-c", "echo no license >&2; exit 4"]});
    let (code, _, err) =
        run_command(&home, &config, &["run", "--model", "acp:broken/default", "hello"]).await;
    assert!(code != Some(0) && err.contains("no license") && err.contains("code 4"), "{err}");
    let (code, _, err) =
        run_command(&home, &config, &["run", "--model", "acp:nobody/default", "hello"]).await;
    assert!(code != Some(0) && err.contains("There is no agent nobody"), "{err}");
    config["failover"] = json!(["fake/m1"]);
    fake.answer(Answer::text("from the provider"));
    let said = run(&home, &config, &["run", "--model", "acp:broken/default", "hello"]).await;
    assert!(said.contains("from the provider"), "{said}");
}

#[tokio::test]
async fn agents_are_listed_added_removed_and_mentioned() {
    let home = Home::new();
    let nothing = json!({});
    let listed: Value =
        serde_json::from_str(&run(&home, &nothing, &["acp-agents", "list", "--json"]).await).expect("JSON");
    let names: Vec<&str> = listed["agents"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|agent| agent["name"].as_str())
        .collect();
    assert!(
        ["claude", "codex", "gemini", "goose", "opencode", "qwen"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    let script = script().display().to_string();
    let added = run(&home, &nothing, &["acp-agents", "add", "mine", "--", "python3", &script]).await;
    assert!(added.contains("acp:mine/default"), "{added}");
    let (code, _, err) = run_command(&home, &nothing, &["acp-agents", "add", "mine", "--", "x"]).await;
    assert!(code != Some(0) && err.contains("already"), "{err}");
    let listed = run(&home, &nothing, &["acp-agents", "list"]).await;
    assert!(listed.contains("acp:mine/default"), "{listed}");
    let (_, report, _) = run_command(&home, &nothing, &["doctor"]).await;
    assert!(report.contains("can answer here: choose the model acp:"), "{report}");
    let methods: Value =
        serde_json::from_str(&run(&home, &nothing, &["acp-agents", "login", "mine", "--json"]).await)
            .expect("JSON");
    assert_eq!(methods["methods"][0]["id"], "token");
    let logged_in = run(&home, &nothing, &["acp-agents", "login", "mine"]).await;
    assert!(logged_in.contains("mine is logged in"), "{logged_in}");
    run(&home, &nothing, &["acp-agents", "remove", "mine"]).await;
    let (code, _, _) = run_command(&home, &nothing, &["acp-agents", "remove", "mine"]).await;
    assert_ne!(code, Some(0));
}

#[tokio::test]
async fn a_stop_ends_the_work_of_an_agent_at_once() {
    let home = Home::new();
    if !is_whole(&home).await {
        return;
    }
    let config = config(&home);
    let mut client = Client::start(&home, &config).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "sleep"})).await;
    client.until(|message| message["params"]["content"]["text"] == "asleep").await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    let shown = contents(&client.until(is_finished).await);
    assert!(!system_text(&shown).contains("did not stop"), "{shown:?}");
    let (_, shown) = client.prompt(Some("c"), "hello").await;
    assert_eq!(answer(&shown), "Hello there");
    let starts = std::fs::read_to_string(home.path().join(".double/starts")).unwrap_or_default();
    assert_eq!(starts.lines().count(), 1, "the same process goes on");
    assert!(client.end().await.success());
}
