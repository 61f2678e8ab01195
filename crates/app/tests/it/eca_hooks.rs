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

/// A line that appends its input to a file named like the event, and then prints `output`.
fn noting(home: &Home, event: &str, output: &str) -> String {
    let file = home.path().join("heard").join(event);
    format!("input=$(cat); printf '%s\\n' \"$input\" >> {}; {output}", file.display())
}

/// What the hooks of an event were given, one object for each run.
fn heard(home: &Home, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path().join("heard").join(event)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

/// A follow-up once, because a follow-up of its own would never end.
fn follow_up_once(text: &str) -> String {
    format!(
        "case \"$input\" in *'\"follow_up_active\":true'*) ;; *) echo '{{\"followUp\": \"{text}\"}}';; esac"
    )
}

/// One hook for each event, each with the strongest thing that it can do.
fn hooks_of_all_events(home: &Home) -> Value {
    let context = |text: &str| format!("echo '{{\"additionalContext\": \"{text}\"}}'");
    let rewrite = "case \"$input\" in *'\"prompt\":\"go\"'*) echo '{\"replacedPrompt\": \"rewritten words\", \
                   \"additionalContext\": \"context of the request\"}';; esac";
    let outputs = [
        ("sessionStart", String::new()),
        ("sessionEnd", String::new()),
        ("chatStart", context("context of the chat")),
        ("chatEnd", String::new()),
        ("subagentStart", context("context of the subagent")),
        ("preRequest", rewrite.to_owned()),
        ("postRequest", follow_up_once("go on then")),
        ("subagentPostRequest", follow_up_once("look again")),
        ("preToolCall", "echo '{\"updatedInput\": {\"command\": \"echo changed\"}}'".to_owned()),
        ("postToolCall", context("context of the result")),
        ("preCompact", String::new()),
        ("postCompact", context("context of the summary")),
    ];
    let mut hooks = serde_json::Map::new();
    for (event, output) in outputs {
        hooks.insert(event.to_lowercase(), shell(event, &noting(home, event, &output)));
    }
    for event in ["preToolCall", "postToolCall"] {
        hooks[&event.to_lowercase()]["matcher"] = json!("eca__shell_command");
    }
    hooks.into()
}

/// Every event of ECA's page happens once here; its program hears it, and its effect is seen.
#[tokio::test]
async fn every_event_reaches_its_program_and_takes_its_effect() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    std::fs::create_dir_all(home.path().join("heard")).expect("a folder");
    let mut config = config(&fake, hooks_of_all_events(&home));
    config["chat"] = json!({"title": false});
    let mut client = Client::start(&home, &config).await;
    // Nothing waits for the hooks of the start.
    for _ in 0..3000 {
        if !heard(&home, "sessionStart").is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    fake.answer(Answer::tool_call("c1", "eca__spawn_agent", json!({"agent": "explorer", "task": "look"})));
    fake.answer(Answer::text("Seen.")).answer(Answer::text("Seen again."));
    fake.answer(Answer::tool_call("c2", "eca__shell_command", json!({"command": "echo original"})));
    fake.answer(Answer::text("Answered.")).answer(Answer::text("Went on."));
    let is_over = |it: &Value| it["params"]["chatId"] == "c" && is_finished(it);
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(is_over).await;
    fake.answer(Answer::text("THE SUMMARY"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "/compact keep names"})).await;
    client.until(is_over).await;
    fake.answer(Answer::text("After it.")).answer(Answer::text("Last."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "next"})).await;
    client.until(is_over).await;
    client.request("chat/delete", json!({"chatId": "c"})).await;
    client.request("shutdown", Value::Null).await;
    assert!(client.end().await.success());

    let requests: Vec<String> = fake.requests().iter().map(|request| request.body.to_string()).collect();
    for (at, words) in [
        (0, vec!["rewritten words", "context of the request", "context of the chat"]),
        (1, vec!["look", "context of the subagent"]),
        (2, vec!["look again"]),
        (4, vec!["changed", "context of the result"]),
        (5, vec!["go on then"]),
        (7, vec!["THE SUMMARY", "context of the summary"]),
    ] {
        for words in words {
            assert!(requests[at].contains(words), "{words} in request {at}: {}", requests[at]);
        }
    }
    assert!(!requests[4].contains("original\\n"), "the changed command ran: {}", requests[4]);
    check_inputs(&home);
}

fn check_inputs(home: &Home) {
    let tool = ["tool_name", "server", "tool_input", "tool_call_id"].as_slice();
    let subagent = ["parent_chat_id"].as_slice();
    for (event, runs, fields) in [
        ("sessionStart", 1, vec![]),
        ("sessionEnd", 1, vec![]),
        ("chatStart", 1, vec!["resumed"]),
        ("chatEnd", 1, vec![]),
        ("subagentStart", 1, subagent.to_vec()),
        ("preRequest", 3, vec!["prompt"]),
        ("postRequest", 6, vec!["response", "follow_up_active"]),
        ("subagentPostRequest", 2, [subagent, &["response", "follow_up_active"]].concat()),
        ("preToolCall", 1, [tool, &["approval"]].concat()),
        ("postToolCall", 1, [tool, &["tool_response", "error"]].concat()),
        ("preCompact", 1, vec!["triggered", "custom_instructions"]),
        ("postCompact", 1, vec!["triggered", "compact_summary"]),
    ] {
        let inputs = heard(home, event);
        assert_eq!(inputs.len(), runs, "{event}: {inputs:#?}");
        let of_chat = ["chat_id", "agent", "behavior", "full_model", "variant"];
        let is_of_chat = !event.starts_with("session");
        for input in &inputs {
            assert_eq!(input["hook_type"], event);
            assert_eq!(input["hook_name"], event.to_lowercase());
            assert!(input["eca_executable"].as_str().is_some_and(|it| it.ends_with("dragoman")), "{input}");
            for field in ["workspaces", "cwd"].iter().chain(&fields) {
                assert!(input.get(field).is_some(), "{event} lacks {field}: {input}");
            }
            for field in of_chat {
                assert_eq!(input.get(field).is_some(), is_of_chat, "{event}, {field}: {input}");
            }
        }
    }
    assert_eq!(heard(home, "preCompact")[0]["custom_instructions"], "keep names");
    assert_eq!(heard(home, "postCompact")[0]["compact_summary"], "THE SUMMARY");
    assert_eq!(heard(home, "preToolCall")[0]["tool_input"]["command"], "echo original");
    assert_eq!(heard(home, "postToolCall")[0]["tool_input"]["command"], "echo changed");
    assert_eq!(heard(home, "subagentPostRequest")[1]["response"], "Seen again.");
}

/// Whether a person is asked about a call, it runs by itself, or it is rejected.
async fn decision(hook: Value, rules: Value, is_trusted: bool) -> &'static str {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = config(&fake, json!({"the-hook": hook}));
    config["toolCall"] = json!({"approval": rules});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch made"})));
    fake.answer(Answer::text("Then not."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": is_trusted})).await;
    let is_decided = |it: &Value| {
        let content = &it["params"]["content"];
        let asks = content["type"] == "toolCallRun" && content["manualApproval"] == true;
        asks || ["toolCallRejected", "toolCalled"].iter().any(|kind| content["type"] == *kind)
    };
    let seen = contents(&client.until(is_decided).await);
    let decided = seen.last().expect("a content")["content"]["type"].as_str().expect("a type").to_owned();
    if decided == "toolCallRun" {
        client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    }
    client.until(is_finished).await;
    assert_eq!(home.workspace().join("made").exists(), decided == "toolCalled");
    match decided.as_str() {
        "toolCallRun" => "asked",
        "toolCalled" => "ran",
        _ => "rejected",
    }
}

/// Trust and an allow rule would let the call run; a hook that could not say anything is no consent to that.
#[tokio::test]
async fn a_hook_that_fails_to_run_is_no_consent() {
    let allowed = || json!({"allow": {"eca__shell_command": {}}});
    let action = |action: Value| json!({"type": "preToolCall", "actions": [action]});
    for (what, hook) in [
        ("no such file", action(json!({"type": "shell", "file": "no/such/file.sh"}))),
        ("no such program", action(json!({"type": "shell", "shell": "no-such-program-at-all"}))),
        ("ended by a signal", action(json!({"type": "shell", "shell": "kill -9 $$"}))),
        ("out of time", action(json!({"type": "shell", "shell": "sleep 600", "timeout": 50}))),
        ("a word that is not known", shell("preToolCall", "echo '{\"approval\": \"alow\"}'")),
        ("no action", json!({"type": "preToolCall", "actions": []})),
        ("an action that cannot be read", action(json!({"type": "shell"}))),
        ("an action of another type", action(json!({"type": "http", "url": "http://localhost"}))),
    ] {
        assert_eq!(decision(hook, allowed(), true).await, "asked", "{what}");
    }
    let failing = || shell("preToolCall", "echo '{\"approval\": \"allow\"}'; exit 1");
    assert_eq!(decision(failing(), json!({}), false).await, "asked", "an error allows nothing");
    assert_eq!(decision(failing(), allowed(), false).await, "ran", "and changes nothing");
}

#[tokio::test]
async fn an_allow_of_a_hook_never_beats_a_deny_or_ask_rule() {
    let allow = || shell("preToolCall", "echo '{\"approval\": \"allow\"}'");
    let rule = |kind: &str| json!({kind: {"eca__shell_command": {}}});
    assert_eq!(decision(allow(), json!({}), false).await, "ran", "it takes the place of the default");
    assert_eq!(decision(allow(), rule("ask"), false).await, "asked");
    assert_eq!(decision(allow(), rule("deny"), false).await, "rejected");
    assert_eq!(decision(allow(), rule("deny"), true).await, "rejected", "in a trusted chat, too");
}
