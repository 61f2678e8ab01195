//! What the agent asks of an editor over ACP, seen from outside: files, terminals, questions, permissions.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::{Editor, everything};
use crate::client::{Home, fake_provider};
use crate::lines::LineClient;

fn call(name: &str, arguments: Value) -> Answer {
    Answer::tool_call("c1", name, arguments)
}

fn edit(path: &str, old: &str, new: &str) -> Answer {
    call("eca__edit_file", json!({"path": path, "original_content": old, "new_content": new}))
}

async fn start(home: &Home, capabilities: Value) -> (Editor, FakeModel) {
    let fake = FakeModel::start().await;
    let config = fake_provider(fake.url(), "anthropic");
    (Editor::start(home, &config, capabilities).await, fake)
}

/// One edit that is approved; what the model was told about it.
async fn edited(editor: &mut Editor, fake: &FakeModel, answer: Answer) -> String {
    fake.answer(answer).answer(Answer::text("ok"));
    editor.choices.push_back("allow_once");
    editor.asked.clear();
    assert_eq!(editor.say("edit").await, "end_turn");
    fake.last_request().tool_results().last().cloned().expect("a result")
}

#[tokio::test]
async fn edits_go_through_the_editor_or_not_at_all() {
    let home = Home::new();
    let plain = home.write("work/plain.txt", "saved\n");
    let marked = home.path().join("work/marked.txt");
    std::fs::write(&marked, b"\xef\xbb\xbfone\r\ntwo\r\n").expect("a file");
    let (mut editor, fake) = start(&home, everything()).await;
    let read = |path: &std::path::Path| std::fs::read(path).expect("a file");
    // Unsaved text is what is edited; the whole text goes to the editor and is read back.
    editor.buffer(&plain, "unsaved\n");
    fake.answer(call("eca__read_file", json!({"path": "plain.txt"}))).answer(Answer::text("ok"));
    editor.say("read").await;
    edited(&mut editor, &fake, edit("plain.txt", "unsaved", "new")).await;
    assert_eq!(editor.last("status"), "completed");
    assert_eq!(read(&plain), b"new\n");
    let order: Vec<&str> = editor.asked.iter().map(|(method, _)| method.as_str()).collect();
    let write = order.iter().position(|it| *it == "fs/write_text_file").expect("a write");
    assert_eq!(order[write + 1..], ["fs/read_text_file"], "it is read back");
    let diff = editor.last("content")[0].clone();
    assert_eq!((&diff["type"], &diff["newText"]), (&json!("diff"), &json!("new\n")));
    // An editor that writes something else is a tool error.
    editor.formatter = |text| text.replace("again", "AGAIN");
    let told = edited(&mut editor, &fake, edit("plain.txt", "new", "again")).await;
    assert_eq!(editor.last("status"), "failed");
    assert!(told.contains("AGAIN"), "{told}");
    editor.formatter = str::to_owned;
    // Other files go by the disk, and keep their mark and line ends.
    editor.buffer(&marked, "one\ntwo\n");
    edited(&mut editor, &fake, edit("marked.txt", "two", "three")).await;
    assert_eq!(editor.count("fs/write_text_file"), 0);
    assert_eq!(read(&marked), b"\xef\xbb\xbfone\r\nthree\r\n");
    // They are refused where the editor has another text.
    editor.buffer(&marked, "one\nunsaved\n");
    let told = edited(&mut editor, &fake, edit("marked.txt", "three", "four")).await;
    assert!(told.contains("unsaved changes"), "{told}");
    assert_eq!(read(&marked), b"\xef\xbb\xbfone\r\nthree\r\n");
    // The same path policy: what is outside is asked about first, and not read when it is rejected.
    home.write("outside.txt", "private\n");
    fake.answer(call("eca__read_file", json!({"path": "../outside.txt"}))).answer(Answer::text("ok"));
    editor.choices.push_back("reject_once");
    editor.asked.clear();
    editor.say("read").await;
    assert_eq!((editor.count("session/request_permission"), editor.count("fs/read_text_file")), (1, 0));
    assert!(!fake.last_request().body.to_string().contains("private"));
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn commands_run_in_terminals_of_the_editor() {
    let home = Home::new();
    let fake = FakeModel::start().await;
    let mut config = fake_provider(fake.url(), "anthropic");
    // A terminal of the editor is outside of the sandbox, so it is used only without one.
    config["sandbox"] = json!("off");
    let mut editor = Editor::start(&home, &config, everything()).await;
    fake.answer(call("eca__shell_command", json!({"command": "touch made"}))).answer(Answer::text("ok"));
    editor.choices.push_back("allow_once");
    assert_eq!(editor.say("run").await, "end_turn");
    assert!(!home.workspace().join("made").exists(), "the editor runs it, not we");
    let told = fake.last_request().tool_results().pop().expect("a result");
    assert!(told.contains("from the terminal\n[exit code 3]"), "{told}");
    let (_, create) =
        editor.asked.iter().find(|(method, _)| method == "terminal/create").expect("a terminal");
    assert_eq!((&create["command"], &create["args"]), (&json!("bash"), &json!(["-c", "touch made"])));
    assert_eq!(create["cwd"], json!(home.workspace()));
    let shown =
        editor.updates.iter().any(|it| it["content"] == json!([{"type": "terminal", "terminalId": "t1"}]));
    assert!(shown, "the call shows the terminal: {:#?}", editor.updates);
    assert_eq!(editor.asked.last().map(|(method, _)| method.as_str()), Some("terminal/release"));
    // Stopped while it runs: the command is killed, the terminal released, the turn cancelled.
    fake.answer(call("eca__shell_command", json!({"command": "touch made"})));
    editor.choices.push_back("allow_once");
    editor.asked.clear();
    let id = editor.begin(json!([{"type": "text", "text": "again"}])).await;
    editor.until(|message| message["method"] == "terminal/wait_for_exit").await;
    let session = editor.session.clone();
    editor.client.notify("session/cancel", json!({"sessionId": session})).await;
    let response = editor.until_response(id).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
    if editor.count("terminal/release") == 0 {
        editor.until(|message| message["method"] == "terminal/release").await;
    }
    assert_eq!(editor.count("terminal/kill"), 1);
    assert!(editor.client.end().await.success());
}

/// A terminal of the editor is outside of the sandbox: with it, commands run in it.
#[tokio::test]
async fn the_default_sandbox_uses_no_terminal_of_the_editor() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut editor = Editor::start(&home, &fake_provider(fake.url(), "anthropic"), everything()).await;
    fake.answer(call("eca__shell_command", json!({"command": "touch made"}))).answer(Answer::text("ok"));
    editor.choices.push_back("allow_once");
    assert_eq!(editor.say("run").await, "end_turn");
    assert!(home.workspace().join("made").exists() && editor.count("terminal/create") == 0);
    assert!(editor.client.end().await.success());
}

/// A server that fails before the session is there is named in it, whether the settings or the editor brought it.
#[tokio::test]
async fn servers_that_fail_at_once_are_named() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "anthropic");
    config["mcpServers"] = json!({"of-settings": {"command": "no-such-program-of-settings"}});
    let mut client = LineClient::spawn(&home, &config, &["acp"]);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let servers = json!([
        {"name": "of-editor", "command": "/no/such/program", "args": [], "env": []},
        {"type": "http", "name": "nobody", "url": "http://127.0.0.1:1/mcp", "headers": []},
    ]);
    let new = json!({"cwd": home.workspace(), "mcpServers": servers});
    let session = client.request("session/new", new).await["sessionId"].clone();
    let mut editor = Editor::with(client, session);
    let mut missing = vec!["of-settings", "of-editor", "nobody"];
    while !missing.is_empty() {
        let update = editor.until(|message| message["method"] == "session/update").await;
        let text = update["params"]["update"]["content"]["text"].as_str().unwrap_or_default().to_owned();
        missing.retain(|name| !text.contains(&format!("The MCP server {name} failed.")));
    }
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn questions_of_the_model_and_of_servers_reach_a_person() {
    let home = Home::new();
    let fake = FakeModel::start().await;
    let mut config = fake_provider(fake.url(), "anthropic");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");
    config["mcpServers"] = json!({"scripted": {"command": "python3", "args": [script]}});
    let mut editor = Editor::start(&home, &config, everything()).await;
    fake.answer(call("eca__ask_user", json!({"question": "Which?", "options": ["red", "blue"]})));
    fake.answer(call("scripted__ask", json!({}))).answer(Answer::text("ok"));
    editor.forms.push_back(json!({"action": "accept", "content": {"choice": "blue"}}));
    editor.forms.push_back(json!({"action": "accept", "content": {"color": "green"}}));
    editor.choices.push_back("allow_once");
    // Servers start beside the chat; the commands tell when this one is there.
    editor.until(|message| message.to_string().contains("greet")).await;
    assert_eq!(editor.say("ask").await, "end_turn");
    let results: Vec<String> = fake.requests().iter().flat_map(|it| it.tool_results()).collect();
    assert_eq!(results[0], "blue");
    assert!(results[1].contains("green"), "{results:?}");
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn always_holds_for_the_session_and_once_does_not() {
    let home = Home::new();
    let (mut editor, fake) = start(&home, json!({})).await;
    let touch = |name: &str| call("eca__shell_command", json!({"command": format!("touch {name}")}));
    for (choice, asked, names) in [("allow_once", 2, ["a", "b"]), ("allow_always", 1, ["c", "d"])] {
        editor.asked.clear();
        editor.choices = std::iter::repeat_n(choice, asked).collect();
        for name in names {
            fake.answer(touch(name)).answer(Answer::text("ok"));
            assert_eq!(editor.say("go").await, "end_turn");
            assert!(home.workspace().join(name).exists(), "{choice}");
        }
        assert_eq!(editor.count("session/request_permission"), asked, "{choice}");
    }
    for (choice, asked) in [("reject_once", 2), ("reject_always", 1)] {
        editor.asked.clear();
        editor.choices = std::iter::repeat_n(choice, asked).collect();
        for name in ["e", "f"] {
            fake.answer(call("eca__shell_command", json!({"command": format!("mkdir {name}")})));
            fake.answer(Answer::text("ok"));
            assert_eq!(editor.say("go").await, "end_turn");
            assert!(!home.workspace().join(name).exists(), "{choice}");
            assert_eq!(editor.last("status"), "failed");
        }
        assert_eq!(editor.count("session/request_permission"), asked, "{choice}");
    }
    // Another session knows nothing of it.
    let new = json!({"cwd": home.workspace(), "mcpServers": []});
    editor.session = editor.client.request("session/new", new).await["sessionId"].clone();
    editor.asked.clear();
    editor.choices.push_back("reject_once");
    fake.answer(touch("g")).answer(Answer::text("ok"));
    editor.say("go").await;
    assert_eq!(editor.count("session/request_permission"), 1);
    assert!(editor.client.end().await.success());
}

#[tokio::test]
async fn content_of_every_kind_reaches_the_model() {
    let home = Home::new();
    home.write("work/linked file.txt", "one\nthe linked word is xyzzy\nthree\n");
    let (mut editor, fake) = start(&home, json!({})).await;
    fake.answer(Answer::text("ok"));
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let link = format!("file://{}/linked%20file.txt#L2", home.workspace().display());
    let blocks = json!([
        {"type": "text", "text": "Look: ", "_meta": {"x": 1}, "unknown": true},
        {"type": "image", "mimeType": "image/png", "data": pixel},
        {"type": "resource", "resource": {"uri": "file:///elsewhere/buffer.txt", "text": "the embedded word is plover"}},
        {"type": "resource_link", "name": "linked file.txt", "uri": link},
    ]);
    let response = editor.prompt(blocks).await;
    assert_eq!(response["result"]["stopReason"], "end_turn");
    let body = fake.last_request().body.to_string();
    for word in [pixel, "the embedded word is plover", "the linked word is xyzzy", "Look: "] {
        assert!(body.contains(word), "{word} in {body}");
    }
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": ""}]);
    let response = editor.prompt(audio).await;
    assert_eq!(response["error"]["code"], -32602);
    assert!(editor.client.end().await.success());
}
