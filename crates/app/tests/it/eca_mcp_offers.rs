//! What servers offer and ask for beside tools: resources by templates, answers of the user's model; and what editors of the other
//! protocols are told about a server that fails.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::acp_client::{Editor, everything};
use crate::client::{Client, Home, contents, is_finished};
use crate::eca_mcp::{config, is_server};

#[tokio::test]
async fn a_template_leads_to_resources_as_contexts_and_by_a_tool() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &config(&home, fake.url(), &[("good", "good")])).await;
    client.until(|it| is_server(it, "good", "running")).await;
    let query = json!({"chatId": "c", "query": "note://4", "contexts": []});
    let found = client.request("chat/queryContext", query).await;
    let uris: Vec<&str> = found["contexts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["type"] == "mcpResource")
        .filter_map(|it| it["uri"].as_str())
        .collect();
    assert_eq!(uris, ["note://4", "note://40", "note://41"], "{found}");

    let context = json!({"type": "mcpResource", "server": "good", "uri": "note://41", "name": "", "description": "", "mimeType": ""});
    fake.answer(Answer::tool_call("r", "good__read_mcp_resource", json!({"uri": "note://50"})))
        .answer(Answer::text("ok"));
    let prompt = json!({"chatId": "c", "message": "go", "contexts": [context], "trust": true});
    client.ask("chat/prompt", prompt).await;
    let shown = contents(&client.until(is_finished).await);
    assert!(fake.last_request().body["messages"].to_string().contains("the text of note://41"));
    assert!(fake.last_request().tool_results()[0].contains("the text of note://50"));
    let run = shown.iter().map(|it| &it["content"]).find(|it| it["type"] == "toolCalled").expect("the call");
    assert_eq!(
        (&run["server"], &run["origin"]),
        (&json!("good"), &json!("mcp")),
        "it is a call of its server"
    );
    assert!(client.end().await.success());
}

/// A client that can be asked, with a scripted server that may use the model or not.
async fn start(home: &Home, fake: &FakeModel, sampling: bool, budget: Value) -> Client {
    let mut config = config(home, fake.url(), &[("s", "good")]);
    config["mcpServers"]["s"]["sampling"] = json!(sampling);
    config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 100_000, "output": 100_000}});
    config["budget"] = budget;
    let mut client = Client::spawn(home, &config);
    let can = json!({"codeAssistant": {"chat": true, "chatCapabilities": {"askQuestion": true}}});
    client.initialize(home, can).await;
    client.until(|it| is_server(it, "s", "running")).await;
    client
}

/// Calls the tool that wants the model, and answers its question.
async fn call_sample(client: &mut Client, answer: &str) -> Vec<Value> {
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let mut shown = client.until(|it| it["method"] == "chat/askQuestion" || is_finished(it)).await;
    let last = shown.last().expect("a message").clone();
    if last["method"] == "chat/askQuestion" {
        let text = last["params"]["question"].as_str().expect("a question");
        assert!(text.contains("What is the capital of France?"), "the request is shown whole: {text}");
        let result = json!({"answer": answer, "cancelled": false});
        client.send(&json!({"jsonrpc": "2.0", "id": last["id"], "result": result})).await;
        shown.extend(client.until(is_finished).await);
    }
    shown
}

#[tokio::test]
async fn a_server_uses_the_model_where_the_user_allowed_it_and_says_yes() {
    let sample = || Answer::tool_call("c1", "s__sample", json!({}));
    let is_question = |it: &Value| it["method"] == "chat/askQuestion";

    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake, true, json!({})).await;
    fake.answer(sample()).answer(Answer::text("Paris")).answer(Answer::text("ok"));
    call_sample(&mut client, "Allow this once").await;
    let requests = fake.requests();
    assert_eq!(requests.len(), 3, "the turn, the server's request, the turn");
    assert!(requests[1].body["messages"].to_string().contains("Answer with one word."), "its instructions");
    assert!(
        requests[1].tools().is_empty() && !requests[1].body.to_string().contains("eca__"),
        "nothing of the chat"
    );
    assert!(fake.last_request().tool_results()[0].contains("Paris"));
    let (_, costs) = client.prompt(Some("c"), "/costs").await;
    assert!(json!(costs).to_string().contains("tools"), "the chat pays: {costs:?}");

    fake.forget_requests();
    fake.answer(sample()).answer(Answer::text("ok"));
    call_sample(&mut client, "Decline").await;
    assert_eq!(fake.requests().len(), 2, "the model is not asked for the server");
    assert!(
        fake.last_request().tool_results().last().expect("a result").contains("did not allow this request")
    );
    assert!(client.end().await.success());

    // Without the setting nobody is asked.
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake, false, json!({})).await;
    fake.answer(sample()).answer(Answer::text("ok"));
    let shown = call_sample(&mut client, "Allow this once").await;
    assert!(!shown.iter().any(is_question));
    assert!(fake.last_request().tool_results()[0].contains("did not allow this server to use their model"));
    assert!(client.end().await.success());

    // The budget of the chat holds.
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = start(&home, &fake, true, json!({"chat": 0.01})).await;
    fake.answer(sample()).answer(Answer::text("never asked"));
    let shown = json!(call_sample(&mut client, "Allow this once").await).to_string();
    assert_eq!(fake.requests().len(), 1, "{shown}");
    assert!(shown.contains("This chat has used"), "{shown}");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn editors_of_other_protocols_are_told_about_a_server_that_fails() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = config(&home, fake.url(), &[("bad", "dies")]);
    let told = "The MCP server bad failed.";
    let mut editor = Editor::start(&home, &config, everything()).await;
    let shown = editor.until(|it| it["method"] == "session/update" && it.to_string().contains(told)).await;
    assert!(shown.to_string().contains("dragoman mcp test bad"), "the command that helps: {shown}");
    drop(editor);

    // `threads` has no place for it but stderr.
    let mut command: tokio::process::Command = home.command(&["threads"]).into();
    let mut child = command
        .env("DRAGOMAN_CONFIG", config.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"createThread\"}\n").await.expect("stdin");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let found = async {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains(told) {
                return;
            }
        }
        panic!("stderr ended without the reason");
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.expect("the reason is on stderr");
}

/// A form of a server is asked field by field, an address that it wants opened is shown whole; nothing opens it.
#[tokio::test]
async fn a_server_asks_by_questions_and_no_address_is_opened() {
    use std::os::unix::fs::PermissionsExt;
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let browser = home.write("browser", "#!/bin/sh\ntouch \"$HOME/opened\"\n");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let config = config(&home, fake.url(), &[("good", "good")]);
    let mut command: tokio::process::Command = home.command(&["server"]).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).env("BROWSER", &browser);
    let mut client = Client::spawn_with(command);
    let can = json!({"codeAssistant": {"chat": true, "chatCapabilities": {"askQuestion": true}}});
    client.initialize(&home, can).await;
    client.until(|it| is_server(it, "good", "running")).await;
    for (input, shown, given, expected) in [
        (json!({}), "Which color?", "red", r#""content": {"color": "red"}"#),
        (json!({"text": "address"}), "https://example.com/sign?in=1", "Decline", r#""action": "decline""#),
    ] {
        fake.answer(Answer::tool_call("c1", "good__ask", input)).answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
        loop {
            let message = client.next().await;
            if message["method"] == "chat/askQuestion" {
                let question = message["params"]["question"].as_str().unwrap_or_default();
                assert!(
                    question.contains("The MCP server good asks") && question.contains(shown),
                    "{question}"
                );
                let result = json!({"answer": given, "cancelled": false});
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
            }
            if is_finished(&message) {
                break;
            }
        }
        let told = fake.last_request().tool_results().pop().unwrap_or_default();
        assert!(told.contains(expected), "{told}");
    }
    assert!(!home.path().join("opened").exists(), "no browser was started");
}
