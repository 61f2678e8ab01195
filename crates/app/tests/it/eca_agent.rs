//! The agent in an ECA client: tool turns, approvals, plan, stops, contexts, commands, editor requests.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, outline, system_text};

async fn start(home: &Home, fake: &FakeModel) -> Client {
    Client::start(home, &fake_provider(fake.url(), "openai-chat")).await
}

/// Types of the contents about tool calls, in order, repeated prepares joined.
fn calls(contents: &[Value]) -> Vec<String> {
    let mut kinds: Vec<String> = contents
        .iter()
        .filter_map(|it| it["content"]["type"].as_str())
        .filter(|kind| kind.starts_with("toolCall"))
        .map(str::to_owned)
        .collect();
    kinds.dedup();
    kinds
}

fn content_of<'a>(contents: &'a [Value], kind: &str) -> &'a Value {
    let found = contents.iter().find(|it| it["content"]["type"] == kind);
    &found.unwrap_or_else(|| panic!("no {kind} in {:#?}", outline(contents)))["content"]
}

#[tokio::test]
async fn a_read_runs_by_itself_and_its_result_goes_to_the_model() {
    for api in ["openai-chat", "openai-responses", "anthropic"] {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        home.write("work/hello.txt", "the secret word is plover\n");
        fake.answer(Answer::new().say("Looking.").call(
            "call_1",
            "eca__read_file",
            json!({"path": "hello.txt"}),
        ));
        fake.answer(Answer::text("It is plover."));
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        let (_, contents) = client.prompt(None, "What is the word?").await;
        assert_eq!(
            calls(&contents),
            ["toolCallPrepare", "toolCallRun", "toolCallRunning", "toolCalled"],
            "{api}"
        );
        let lines = outline(&contents);
        let place = |what: &str| lines.iter().position(|line| line.starts_with(what)).unwrap_or(usize::MAX);
        assert!(place("assistant text: Looking.") < place("assistant toolCallPrepare"), "{lines:#?}");
        assert!(place("system usage") < place("assistant toolCallRun"), "{lines:#?}");
        let run = content_of(&contents, "toolCallRun");
        assert_eq!(run["manualApproval"], false);
        assert_eq!(
            (&run["server"], &run["origin"], &run["name"]),
            (&json!("eca"), &json!("native"), &json!("read_file"))
        );
        assert_eq!(run["arguments"], json!({"path": "hello.txt"}));
        assert_eq!(run["summary"], "Reading hello.txt");
        let prepared: String = contents
            .iter()
            .filter(|it| it["content"]["type"] == "toolCallPrepare")
            .filter_map(|it| it["content"]["argumentsText"].as_str())
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&prepared).expect("JSON"), json!({"path": "hello.txt"}));
        let called = content_of(&contents, "toolCalled");
        assert_eq!(called["error"], false);
        assert!(called["outputs"][0]["text"].as_str().is_some_and(|text| text.contains("plover")));
        assert!(called["totalTimeMs"].is_u64());
        assert_eq!(answer(&contents).matches("plover").count(), 1);
        assert!(fake.last_request().body.to_string().contains("the secret word"), "{api}");
    }
}

#[tokio::test]
async fn a_write_waits_for_approval_and_happens_after_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "new.txt", "content": "hello\n"})));
    fake.answer(Answer::text("Written."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "write"})).await;
    let before = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = content_of(&before, "toolCallRun").clone();
    assert_eq!(run["manualApproval"], true);
    assert_eq!(run["details"]["type"], "fileChange");
    assert_eq!(run["details"]["linesAdded"], 1);
    assert!(run["details"]["diff"].as_str().is_some_and(|diff| diff.contains("+hello")));
    assert!(!home.workspace().join("new.txt").exists(), "nothing before the approval");
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"]})).await;
    let after = contents(&client.until(is_finished).await);
    assert_eq!(calls(&after), ["toolCallRunning", "toolCalled"]);
    assert_eq!(std::fs::read_to_string(home.workspace().join("new.txt")).expect("the file"), "hello\n");
    assert_eq!(answer(&after), "Written.");
}

#[tokio::test]
async fn a_rejected_call_is_told_to_the_model_and_the_turn_goes_on() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "x", "content": "x"})));
    fake.answer(Answer::text("Then not."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "write"})).await;
    let before = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let id = content_of(&before, "toolCallRun")["id"].clone();
    // Unknown and foreign ids are ignored.
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": "item-999"})).await;
    client.notify("chat/toolCallApprove", json!({"chatId": "other", "toolCallId": id})).await;
    client.notify("chat/toolCallReject", json!({"chatId": "c", "toolCallId": id})).await;
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": id})).await;
    let after = contents(&client.until(is_finished).await);
    assert_eq!(calls(&after), ["toolCallRejected"]);
    assert_eq!(content_of(&after, "toolCallRejected")["reason"], "user-choice");
    assert_eq!(answer(&after), "Then not.");
    assert!(!home.workspace().join("x").exists());
    assert!(fake.last_request().body.to_string().contains("rejected"));
}

#[tokio::test]
async fn a_remembered_command_is_not_asked_again_but_another_is() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    let shell = |line: &str| Answer::tool_call("c", "eca__shell_command", json!({"command": line}));
    fake.answer(shell("touch one"))
        .answer(shell("touch two"))
        .answer(shell("mkdir three"))
        .answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let first = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = content_of(&first, "toolCallRun").clone();
    assert_eq!(run["manualApproval"], true);
    assert_eq!(run["details"]["type"], "shellCommand");
    assert_eq!(run["details"]["commands"][0]["remembered"], false);
    client
        .notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": run["id"], "save": "session"}))
        .await;
    let mut asked = Vec::new();
    loop {
        let message = client.next().await;
        if is_finished(&message) {
            break;
        }
        let content = &message["params"]["content"];
        if content["type"] == "toolCallRun" {
            asked.push(content["manualApproval"].clone());
            if content["manualApproval"] == true {
                client
                    .notify("chat/toolCallReject", json!({"chatId": "c", "toolCallId": content["id"]}))
                    .await;
            }
        }
    }
    assert_eq!(asked, [json!(false), json!(true)], "touch is remembered, mkdir is not");
    assert!(home.workspace().join("two").exists() && !home.workspace().join("three").exists());
}

#[tokio::test]
async fn plan_changes_nothing_whatever_is_approved() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": "touch made"})));
    fake.answer(Answer::tool_call("c2", "eca__write_file", json!({"path": "made", "content": "x"})));
    fake.answer(Answer::text("A plan."));
    let (_, contents) =
        client.prompt_with(json!({"chatId": "c", "message": "go", "behavior": "plan", "trust": true})).await;
    assert!(!home.workspace().join("made").exists());
    assert_eq!(answer(&contents), "A plan.");
    let offered = fake.requests()[0].body["tools"].to_string();
    assert!(!offered.contains("eca__write_file") && offered.contains("eca__preview_file_change"));
}

#[tokio::test]
async fn a_deny_rule_is_absolute() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"byDefault": "allow", "deny": {"eca__write_file": {}}}});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "x", "content": "x"})));
    fake.answer(Answer::text("no"));
    let (_, contents) = client.prompt_with(json!({"chatId": "c", "message": "go", "trust": true})).await;
    assert_eq!(content_of(&contents, "toolCallRejected")["reason"], "user-config");
    assert!(!home.workspace().join("x").exists());
}

#[tokio::test]
async fn paths_outside_the_workspace_are_asked_even_when_read() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("outside.txt", "private");
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::tool_call("c1", "eca__read_file", json!({"path": "../outside.txt"})));
    fake.answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let before = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    let run = content_of(&before, "toolCallRun");
    assert_eq!(run["manualApproval"], true);
    client.notify("chat/toolCallReject", json!({"chatId": "c", "toolCallId": run["id"]})).await;
    client.until(is_finished).await;
    assert!(!fake.last_request().body.to_string().contains("private"));
}

#[tokio::test]
async fn a_stop_ends_a_waiting_and_a_running_call() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::tool_call("c1", "eca__write_file", json!({"path": "x", "content": "x"})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    let after = contents(&client.until(is_finished).await);
    assert_eq!(calls(&after), ["toolCallRejected"]);

    fake.answer(Answer::tool_call("c2", "eca__shell_command", json!({"command": "sleep 600"})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "sleep", "trust": true})).await;
    client.until(|it| it["params"]["content"]["type"] == "toolCallRunning").await;
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    let after = contents(&client.until(is_finished).await);
    assert_eq!(calls(&after), ["toolCalled"]);
    assert!(system_text(&after).contains("Stopped"));

    // Every call has one result in what the model is sent next.
    fake.answer(Answer::text("fine"));
    client.prompt(Some("c"), "and?").await;
    let messages = fake.last_request().body["messages"].as_array().cloned().expect("messages");
    let asked = messages.iter().filter_map(|it| it["tool_calls"].as_array()).flatten().count();
    let answered = messages.iter().filter(|it| it["role"] == "tool").count();
    assert_eq!((asked, answered), (2, 2));
}

#[tokio::test]
async fn a_call_that_ran_when_the_process_died_is_unknown_and_not_repeated() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = Client::start(&home, &config).await;
    let line = "echo ran >> count; sleep 600";
    fake.answer(Answer::tool_call("c1", "eca__shell_command", json!({"command": line})));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let count = home.workspace().join("count");
    client.until(|it| it["params"]["content"]["type"] == "toolCallRunning").await;
    // The shell makes the file before it writes to it.
    while std::fs::read_to_string(&count).unwrap_or_default().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    client.child.kill().await.expect("kill -9");

    let mut client = Client::start(&home, &config).await;
    let id = client.ask("chat/open", json!({"chatId": "c"})).await;
    let shown = contents(&client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await);
    let called = content_of(&shown, "toolCalled");
    assert_eq!(called["error"], true);
    assert!(called["outputs"].to_string().contains("unknown"), "{called}");
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "and now?").await;
    assert!(fake.last_request().body.to_string().contains("outcome is unknown"));
    assert_eq!(std::fs::read_to_string(count).expect("the file"), "ran\n", "not run again");
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_told_and_then_stopped() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "same\n");
    fake.respond_with(|_| Answer::tool_call("c", "eca__read_file", json!({"path": "a.txt"})));
    let mut client = start(&home, &fake).await;
    let (_, contents) = client.prompt(Some("c"), "loop").await;
    assert!(system_text(&contents).contains("over and over"), "{}", system_text(&contents));
    assert_eq!(fake.requests().len(), 4, "three results, one warning");
    assert!(fake.last_request().body.to_string().contains("three times"));
}

#[tokio::test]
async fn broken_arguments_and_unknown_tools_are_answered_to_the_model() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::new().call_pieces("c1", "eca__read_file", &["{\"path\": ", "oops"]));
    fake.answer(Answer::tool_call("c2", "eca__no_such_tool", json!({})));
    fake.answer(Answer::text("sorry"));
    let (_, contents) = client.prompt(Some("c"), "go").await;
    assert_eq!(answer(&contents), "sorry");
    let errors =
        contents.iter().filter(|it| it["content"]["type"] == "toolCalled" && it["content"]["error"] == true);
    assert_eq!(errors.count(), 2);
}

#[tokio::test]
async fn contexts_reach_the_model() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let file = home.write("work/src/lib.rs", "line one\nline two\nline three\n");
    let mut client = start(&home, &fake).await;
    fake.answer(Answer::text("ok"));
    let position = json!({"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 1}});
    client
        .prompt_with(json!({
            "chatId": "c", "message": "look",
            "contexts": [
                {"type": "file", "path": file, "linesRange": {"start": 2, "end": 2}},
                {"type": "cursor", "path": file, "position": position},
                {"type": "directory", "path": home.workspace()},
                {"type": "text", "text": "a text context"},
                {"type": "repoMap"},
                {"type": "nobody knows this"},
            ],
        }))
        .await;
    let sent = fake.last_request().body.to_string();
    for part in ["line two", "a text context", "lib.rs"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

#[tokio::test]
async fn files_and_commands_can_be_found() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for name in ["alpha.rs", "beta.rs", "deep/er/gamma.rs"] {
        home.write(&format!("work/{name}"), "x");
    }
    let mut client = start(&home, &fake).await;
    let files = client.request("chat/queryFiles", json!({"chatId": "c", "query": "gamma"})).await;
    let path = files["files"][0]["path"].as_str().expect("a path").to_owned();
    assert!(path.ends_with("deep/er/gamma.rs") && path.starts_with('/'), "{files}");
    let found = client.request("chat/queryContext", json!({"query": "alpha", "contexts": []})).await;
    assert!(found["contexts"].to_string().contains("alpha.rs"), "{found}");
    let commands = client.request("chat/queryCommands", json!({"chatId": "c", "query": ""})).await;
    let names: Vec<&str> = commands["commands"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    for name in [
        "init",
        "compact",
        "costs",
        "config",
        "doctor",
        "model",
        "resume",
        "login",
        "prompt-show",
        "repo-map-show",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let some = client.request("chat/queryCommands", json!({"query": "cost"})).await;
    assert_eq!(some["commands"][0]["name"], "costs");
    assert_eq!(some["commands"][0]["type"], "native");
}

#[tokio::test]
async fn every_command_answers_and_ends() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(".config/dragoman/commands/greet.md", "Say hello to $ARG1 and $ARGS.");
    home.write("work/a.rs", "x");
    let mut client = start(&home, &fake).await;
    for (command, expected) in [
        ("/costs", "Tokens"),
        ("/config", "defaultModel"),
        ("/doctor", "fake"),
        ("/model", "fake/m1"),
        ("/model fake/m2", "fake/m2"),
        ("/resume", "no other chats"),
        ("/login openai", "openai"),
        ("/prompt-show", "Dragoman"),
        ("/repo-map-show", "a.rs"),
    ] {
        let (_, contents) = client.prompt(Some("c"), command).await;
        let said = system_text(&contents);
        assert!(said.contains(expected), "{command}: {said}");
    }
    assert!(fake.requests().is_empty(), "none of them asks a model");
    client.prompt(Some("c"), "/greet \"Ada L\"").await;
    let sent = fake.last_request();
    assert!(sent.last_user_text().starts_with("Say hello to Ada L"), "{}", sent.last_user_text());
    assert_eq!(sent.body["model"], "m2");
    fake.answer(Answer::text("A summary of it all."));
    let (_, contents) = client.prompt(Some("c"), "/compact").await;
    assert!(system_text(&contents).contains("Compacted chat"), "{}", system_text(&contents));
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "next").await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("A summary of it all.") && sent.contains("next"), "{sent}");
}

#[tokio::test]
async fn diagnostics_are_asked_of_the_editor() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let diagnostic = json!({
        "uri": format!("file://{}/a.rs", home.workspace().display()), "severity": "error", "source": "rustc",
        "range": {"start": {"line": 3, "character": 1}, "end": {"line": 3, "character": 5}},
        "code": "E0308", "message": "mismatched types",
    });
    for (reply, expected) in [
        (json!({"result": {"diagnostics": [diagnostic]}}), "mismatched types"),
        // Editors count from 0.
        (json!({"result": {"diagnostics": [diagnostic]}}), "a.rs:4:2"),
        (json!({"result": {"status": "error", "message": "no server runs"}}), "no server runs"),
        (json!({"result": "ECA :: Unknown server request editor/getDiagnostics"}), "editor"),
        (json!({"error": {"code": -32601, "message": "what?"}}), "what?"),
    ] {
        let mut client = Client::spawn(&home, &config);
        client
            .initialize(&home, json!({"codeAssistant": {"chat": true, "editor": {"diagnostics": true}}}))
            .await;
        fake.answer(Answer::tool_call("c1", "eca__editor_diagnostics", json!({})));
        fake.answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"message": "check"})).await;
        let messages = client.until(|it| it["method"] == "editor/getDiagnostics").await;
        let id = messages.last().expect("a request")["id"].clone();
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        response.as_object_mut().expect("an object").extend(reply.as_object().cloned().expect("an object"));
        client.send(&response).await;
        client.until(is_finished).await;
        let sent = fake.last_request().body.to_string();
        assert!(sent.contains(expected), "{expected}: {sent}");
    }
}

#[tokio::test]
async fn the_first_request_is_small() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/README.md", "A small project.\n");
    for api in ["openai-chat", "openai-responses", "anthropic"] {
        let mut client = Client::start(&home, &fake_provider(fake.url(), api)).await;
        fake.answer(Answer::text("Hi"));
        client.prompt(None, "Hi").await;
        let bytes = fake.last_request().body.to_string().len();
        assert!(bytes <= 10_000, "{api}: {bytes} bytes");
    }
}

/// By the variables of ECA a program can tell that an assistant started it, and for which chat.
#[tokio::test]
async fn a_command_knows_that_an_assistant_started_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    let command = json!({"command": "echo \"marks: $ECA_AGENT $ECA_CHAT_ID\""});
    fake.answer(Answer::tool_call("c1", "eca__shell_command", command)).answer(Answer::text("Done."));
    client.prompt_with(json!({"chatId": "c", "message": "go", "trust": true})).await;
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("marks: 1 c"), "{sent}");
}

#[tokio::test]
async fn a_steer_is_said_to_the_running_turn() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake).await;
    let gate = testkit::Gate::new();
    fake.answer(Answer::new().say("One.").gate(&gate)).answer(Answer::text("Two."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    client.until(|it| it["params"]["role"] == "assistant").await;
    client.request("chat/promptSteer", json!({"chatId": "c", "message": "never mind"})).await;
    client.request("chat/promptSteerRemove", json!({"chatId": "c"})).await;
    client.request("chat/promptSteer", json!({"chatId": "c", "message": "shorter please"})).await;
    gate.open();
    let after = contents(&client.until(is_finished).await);
    assert!(after.iter().any(|it| it["role"] == "user" && it["content"]["text"] == "shorter please\n"));
    assert!(answer(&after).ends_with("Two."));
    assert_eq!(fake.last_request().last_user_text(), "shorter please");
    assert!(!fake.last_request().body.to_string().contains("never mind"));
}
