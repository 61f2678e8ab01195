//! Subagents in an ECA client: their contents, and questions that a person answers in their chats.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::Editor;
use crate::client::{Client, Home, answer, contents, fake_provider, system_text};

#[tokio::test]
async fn a_subagent_is_shown_and_its_call_is_approved() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    config["agent"] = json!({"writer": {"mode": "subagent", "description": "writes files", "prompt": "You write.", "steps": 9}});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call(
        "c1",
        "eca__spawn_agent",
        json!({"agent": "writer", "task": "Write made.txt"}),
    ));
    fake.answer(Answer::tool_call("c2", "eca__write_file", json!({"path": "made.txt", "content": "x\n"})));
    fake.answer(Answer::text("Written."));
    fake.answer(Answer::text("The writer has done it."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let is_ask = |it: &Value| {
        let content = &it["params"]["content"];
        content["type"] == "toolCallRun" && content["manualApproval"] == true
    };
    let before = contents(&client.until(is_ask).await);
    let asked = before.last().expect("a call that waits");
    let child = asked["chatId"].as_str().expect("a chat").to_owned();
    assert!(child.starts_with("subagent-"), "{asked}");
    assert_eq!(asked["parentChatId"], "c");
    let spawned = before.iter().find(|it| it["chatId"] == "c" && it["content"]["type"] == "toolCallRun");
    let details = &spawned.expect("the call that started it")["content"]["details"];
    assert_eq!((&details["type"], &details["subagentChatId"]), (&json!("subagent"), &json!(child)));
    assert_eq!((&details["agentName"], &details["maxSteps"]), (&json!("writer"), &json!(9)));
    assert!(!home.workspace().join("made.txt").exists(), "a person decides first");
    let approve = json!({"chatId": child, "toolCallId": asked["content"]["id"]});
    client.notify("chat/toolCallApprove", approve).await;
    let is_over = |it: &Value| {
        let params = &it["params"];
        params["chatId"] == "c"
            && params["content"]["type"] == "progress"
            && params["content"]["state"] == "finished"
    };
    let after = contents(&client.until(is_over).await);
    assert!(home.workspace().join("made.txt").exists());
    let of_parent: Vec<Value> = after.iter().filter(|it| it["chatId"] == "c").cloned().collect();
    assert!(answer(&of_parent).contains("The writer has done it."), "{of_parent:#?}");
    assert!(fake.requests().iter().any(|it| it.body.to_string().contains("You write.")), "its own prompt");
    let listed = client.request("chat/list", Value::Null).await;
    assert_eq!(listed["chats"].as_array().map(Vec::len), Some(1), "{listed}");
    client.ask("chat/prompt", json!({"chatId": "c", "message": "/subagents"})).await;
    let text = system_text(&contents(&client.until(is_over).await));
    assert!(text.contains("explorer") && text.contains("writes files"), "{text}");
}

#[tokio::test]
async fn an_editor_without_chats_of_subagents_asks_in_the_chat_of_the_parent() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false});
    let mut editor = Editor::start(&home, &config, json!({})).await;
    fake.answer(Answer::tool_call("c1", "eca__spawn_agent", json!({"agent": "general", "task": "Write it"})));
    fake.answer(Answer::tool_call("c2", "eca__write_file", json!({"path": "made.txt", "content": "x\n"})));
    fake.answer(Answer::text("Written."));
    fake.answer(Answer::text("Done by another."));
    editor.choices.push_back("allow_once");
    assert_eq!(editor.say("go").await, "end_turn");
    assert!(home.workspace().join("made.txt").exists());
    let (_, asked) = editor.asked.iter().find(|(method, _)| method == "session/request_permission").unwrap();
    let call = &asked["toolCall"];
    assert!(call["title"].as_str().is_some_and(|title| title.starts_with("general: ")), "{asked}");
    assert!(call.to_string().contains("made.txt"), "{asked}");
    let id = &call["toolCallId"];
    let last = editor.updates.iter().rfind(|update| update["toolCallId"] == *id).expect("its end is shown");
    assert_eq!(last["status"], "completed", "{last}");
}

/// A repository with one commit in the workspace.
fn make_repository(folder: &Path) {
    std::fs::write(folder.join("a.txt"), "one\n").expect("a file");
    for line in
        ["init -q -b main", "add a.txt", "-c user.name=T -c user.email=t@example.org commit -q -m first"]
    {
        git(folder, &line.split(' ').collect::<Vec<_>>());
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The worktrees beside the repository itself.
fn worktrees(folder: &Path) -> Vec<PathBuf> {
    let listed = git(folder, &["worktree", "list", "--porcelain"]);
    let lines = listed.lines().filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from);
    lines.skip(1).collect()
}

#[tokio::test]
async fn a_subagent_works_in_a_worktree_that_is_kept_only_with_work_in_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    make_repository(&home.workspace());
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["chat"] = json!({"title": false, "defaultTrust": true});
    config["agent"] = json!({"mover": {"mode": "subagent", "description": "moves", "worktree": true}});
    let mut client = Client::start(&home, &config).await;
    let is_over = |it: &Value| {
        let params = &it["params"];
        params["chatId"] == "c" && params["content"]["state"] == "finished"
    };
    let spawn = |agent: &str, worktree: Value| {
        Answer::tool_call(
            "c1",
            "eca__spawn_agent",
            json!({"agent": agent, "task": "Do it", "worktree": worktree}),
        )
    };
    let write =
        |text: &str| Answer::tool_call("c2", "eca__write_file", json!({"path": "a.txt", "content": text}));
    // It leaves work that is not committed.
    fake.answer(spawn("mover", Value::Null));
    fake.answer(write("two\n"));
    fake.answer(Answer::text("Changed."));
    fake.answer(Answer::text("Seen."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(is_over).await;
    assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).unwrap(), "one\n");
    let kept = worktrees(&home.workspace());
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(kept[0].join("a.txt")).unwrap(), "two\n");
    let named = fake.requests().iter().any(|it| {
        let body = it.body.to_string();
        body.contains("is kept: 1 files have changes") && body.contains(kept[0].to_str().unwrap())
    });
    assert!(named, "the model and the user learn which worktree is kept");
    use std::os::unix::fs::PermissionsExt;
    let mode = kept[0].parent().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others cannot look into it");
    // One that only looked leaves nothing; a commit on a branch stays there; one on no branch keeps its worktree.
    // Each text is another one: equal commits of one second would be one commit.
    let commit = |branch: &str, text: &str| {
        let line = format!(
            "{branch} echo {text} > a.txt && git -c user.name=T -c user.email=t@example.org commit -q -a -m more"
        );
        Answer::tool_call("c3", "eca__shell_command", json!({"command": line}))
    };
    for (first, left) in
        [(None, 1), (Some(commit("git switch -q -c moved &&", "three")), 1), (Some(commit("", "four")), 2)]
    {
        fake.answer(spawn("general", json!(true)));
        if let Some(first) = first {
            fake.answer(first);
        }
        fake.answer(Answer::text("Nothing more."));
        fake.answer(Answer::text("Seen."));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "again"})).await;
        let seen = contents(&client.until(is_over).await);
        assert_eq!(worktrees(&home.workspace()).len(), left, "{seen:#?}");
    }
    assert!(git(&home.workspace(), &["log", "--format=%s", "moved"]).starts_with("more"));
}
