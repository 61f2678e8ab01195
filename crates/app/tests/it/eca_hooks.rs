//! Hooks in an ECA client: real programs, their contents, and what they change.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider, is_finished, system_text};

fn config(fake: &FakeModel, hooks: Value) -> Value {
    let mut config = fake_provider(fake.url(), "openai-chat");
    // The hooks of these tests write beside the workspace, where a sandbox lets nothing through.
    config["sandbox"] = json!("off");
    config["hooks"] = hooks;
    config["toolCall"] = json!({"approval": {"allow": {"eca__shell_command": {}}}});
    config
}

fn shell(event: &str, line: &str) -> Value {
    json!({"type": event, "actions": [{"type": "shell", "shell": line}]})
}

#[tokio::test]
async fn hooks_run_as_programs_and_are_shown() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let script = home
        .write("hooks/deny.sh", "cat > \"$(dirname \"$0\")/seen.json\"\necho 'not this one' >&2\nexit 2\n");
    let hooks = json!({
        "context": shell("preRequest", "cat > /dev/null; echo '{\"additionalContext\": \"the port is 81\"}'"),
        "the-guard": {"type": "preToolCall", "matcher": {"eca__shell_command": {"argsMatchers": {"command": ["touch.*"]}}},
            "actions": [{"type": "shell", "file": script}]},
        "silent": {"type": "postRequest", "visible": false,
            "actions": [{"type": "shell", "shell": format!("cat > {}", home.path().join("end.json").display())}]},
    });
    let mut client = Client::start(&home, &config(&fake, hooks)).await;
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch made"})));
    fake.answer(Answer::text("Then not."));
    let (_, contents) = client.prompt(Some("c"), "go").await;
    assert!(!home.workspace().join("made").exists(), "the hook forbade it against an allow rule");
    let of = |kind: &str| -> Vec<Value> {
        contents.iter().map(|it| it["content"].clone()).filter(|it| it["type"] == kind).collect()
    };
    let (started, finished) = (of("hookActionStarted"), of("hookActionFinished"));
    let names = |list: &[Value]| {
        list.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&started), ["context", "the-guard"]);
    assert_eq!(names(&finished), ["context", "the-guard"]);
    assert_eq!((&finished[1]["status"], &finished[1]["error"]), (&json!(2), &json!("not this one")));
    assert_eq!(finished[1]["id"], started[1]["id"]);
    assert_eq!(finished[1]["toolCallId"], of("toolCallRejected")[0]["id"]);
    assert_eq!(finished[1]["actionType"], "shell");
    assert_eq!(of("toolCallRejected")[0]["reason"], "hookRejected");
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("the port is 81") && sent.contains("not this one"), "{sent}");
    let read = |path: &str| -> Value {
        let text = std::fs::read_to_string(home.path().join(path)).expect("the hook ran");
        serde_json::from_str(&text).expect("JSON")
    };
    let seen = read("hooks/seen.json");
    assert_eq!((&seen["hook_name"], &seen["hook_type"]), (&json!("theGuard"), &json!("preToolCall")));
    assert_eq!((&seen["tool_name"], &seen["server"]), (&json!("shell_command"), &json!("eca")));
    assert_eq!((&seen["tool_input"]["command"], &seen["approval"]), (&json!("touch made"), &json!("allow")));
    assert_eq!(seen["chat_id"], "c");
    let folder = seen["cwd"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
    assert!(folder.ends_with("/work"), "{folder}");
    assert_eq!(read("end.json")["response"], "Then not.");
    let (_, listed) = client.prompt(Some("c"), "/hooks").await;
    let text = system_text(&listed);
    assert!(text.contains("preToolCall") && text.contains("guard"), "{text}");
}

#[tokio::test]
async fn a_hook_that_hangs_ends_at_its_time_and_its_call_is_asked() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let hooks = json!({"slow": {"type": "preToolCall", "timeout": 50,
        "actions": [{"type": "shell", "shell": "sleep 600"}]}});
    let mut client = Client::start(&home, &config(&fake, hooks)).await;
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch made"})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let call = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    assert_eq!(call.last().expect("the call")["content"]["manualApproval"], true);
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    client.until(is_finished).await;
    assert!(!home.workspace().join("made").exists());
}

/// The start and the end of the program, and of a chat, have hooks too.
#[tokio::test]
async fn the_start_and_the_end_have_hooks() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let note = |name: &str| format!("cat > /dev/null; echo x >> {}", home.path().join(name).display());
    let hooks = json!({
        "start": shell("sessionStart", &note("started")),
        "end": shell("sessionEnd", &note("ended")),
        "gone": shell("chatEnd", &note("deleted")),
    });
    let mut client = Client::start(&home, &config(&fake, hooks)).await;
    let appears = async |name: &str| {
        for _ in 0..600 {
            if home.path().join(name).exists() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("no file {name}");
    };
    appears("started").await;
    fake.answer(Answer::text("hello"));
    client.prompt(Some("c"), "hi").await;
    client.request("chat/delete", json!({"chatId": "c"})).await;
    appears("deleted").await;
    client.request("shutdown", Value::Null).await;
    appears("ended").await;
    let text = std::fs::read_to_string(home.path().join("ended")).expect("the hook ran");
    assert_eq!(text, "x\n", "once");
}
