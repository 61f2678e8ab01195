//! The draft protocol (2025): one client that speaks it, from hello to a proposed change.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider};

async fn start(home: &Home, config: &Value) -> Client {
    let mut client = Client::spawn(home, config);
    client
        .initialize(home, json!({"codeAssistant": {"chat": true, "doc": true, "edit": true, "fix": true}}))
        .await;
    client
}

fn is_complete(message: &Value) -> bool {
    message["params"]["isComplete"] == true
}

#[tokio::test]
async fn a_question_is_answered_in_the_drafts_form() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let file = home.write("work/a.txt", "one\ntwo\nthree\n");
    let mut client = start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::text("Use this:\n```rust\nfn f() {}\n```\n"));
    let params = json!({
        "message": "Hi", "model": "auto",
        "context": [
            {"type": "file", "path": file, "selection": {"startLine": 2, "endLine": 2}, "cursor": {"line": 2, "character": 1}},
            {"type": "code", "content": "let x = 1;", "language": "rust", "description": "mine"},
            {"type": "terminal", "content": "$ ls"},
        ],
    });
    let id = client.ask("chat/prompt", params).await;
    let messages = client.until(is_complete).await;
    let result = &messages.iter().find(|it| it["id"] == json!(id)).expect("a response")["result"];
    assert_eq!(result["status"], "success");
    assert!(result["chatId"].is_string());
    assert!(result["resultMessage"].as_str().is_some_and(|text| text.contains("fake/m1")), "{result}");
    let received: Vec<&Value> = messages.iter().filter(|it| it["method"] == "chat/contentReceived").collect();
    assert!(
        received
            .iter()
            .all(|it| it["params"]["content"]["type"] == "text" && it["params"].get("role").is_none())
    );
    let text: String = received.iter().filter_map(|it| it["params"]["content"]["text"].as_str()).collect();
    assert_eq!(text, "Use this:\n```rust\nfn f() {}\n```\n");
    let block =
        received.iter().find_map(|it| it["params"]["content"]["codeBlocks"].get(0)).expect("a code block");
    assert_eq!(*block, json!({"code": "fn f() {}\n", "language": "rust"}));
    assert!(messages.last().expect("the end")["params"]["metadata"]["tokensUsed"].is_u64());
    let sent = fake.last_request().body.to_string();
    assert!(
        sent.contains("two")
            && !sent.contains("three")
            && sent.contains("let x = 1;")
            && sent.contains("$ ls")
    );
    for announced in ["completion", "documentation", "edit", "mcp/add"] {
        assert_eq!(client.response(announced, json!({})).await["error"]["code"], -32601, "{announced}");
    }
}

#[tokio::test]
async fn a_change_that_needs_approval_is_proposed_and_an_allowed_one_is_applied() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "one\ntwo\nthree\n");
    let edit = || {
        let input = json!({"path": "a.txt", "content": "one\nTWO\nthree\n"});
        Answer::tool_call("c1", "eca__write_file", input)
    };
    let path = home.workspace().join("a.txt");
    let mut config = fake_provider(fake.url(), "openai-chat");
    for (allowed, text) in [(false, "one\ntwo\nthree\n"), (true, "one\nTWO\nthree\n")] {
        if allowed {
            config["toolCall"] = json!({"approval": {"allow": {"eca__write_file": {}}}});
        }
        let mut client = start(&home, &config).await;
        fake.answer(Answer::tool_call("c0", "eca__read_file", json!({"path": "a.txt"})));
        fake.answer(edit()).answer(Answer::text("done"));
        client.ask("chat/prompt", json!({"message": "edit", "context": []})).await;
        let messages = client.until(is_complete).await;
        let change = messages
            .iter()
            .map(|it| &it["params"]["content"])
            .find(|it| it["type"] == "fileChange")
            .unwrap_or_else(|| panic!("no change in {messages:#?}"));
        assert_eq!(change["manualApproval"], !allowed);
        assert!(change["description"].is_string());
        assert!(change["file"].as_str().is_some_and(|file| file.ends_with("a.txt")));
        assert_eq!(
            change["changes"],
            json!([{"kind": "change", "content": "TWO\n", "range": {"startLine": 2, "endLine": 2}}])
        );
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), text);
        let told = fake.last_request().body.to_string();
        assert_eq!(told.contains("proposal"), !allowed, "{told}");
    }
    // Other calls that need approval are refused with a text that says how to allow them.
    let mut client = start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::tool_call("c2", "eca__shell_command", json!({"command": "touch x"})))
        .answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"message": "run", "context": []})).await;
    let messages = client.until(is_complete).await;
    assert!(messages.iter().any(|it| {
        it["params"]["content"]["text"].as_str().is_some_and(|it| it.contains("toolCall.approval.allow"))
    }));
    assert!(!home.workspace().join("x").exists());
}

/// A client that names no capability of the draft and sends `context`: it is answered in the draft's form all the same,
/// and nothing waits for an approval it cannot give.
#[tokio::test]
async fn a_client_that_sends_context_is_one_of_the_draft() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let file = home.write("work/a.txt", "one\ntwo\nthree\n");
    let mut client = Client::spawn(&home, &fake_provider(fake.url(), "openai-chat"));
    client.initialize(&home, json!({"codeAssistant": {"chat": true}})).await;
    let write = |path: &str, content: &str| {
        Answer::tool_call("c", "eca__write_file", json!({"path": path, "content": content}))
    };
    fake.answer(write("new.txt", "hello\n"))
        .answer(write("a.txt", "one\nthree\n"))
        .answer(Answer::text("done"));
    let context = json!([
        {"type": "file", "path": file, "cursor": {"line": 3, "character": 2}},
        {"type": "web", "url": "http://127.0.0.1:9/"},
        {"type": "terminal"},
    ]);
    let id = client.ask("chat/prompt", json!({"message": "go", "model": "gpt-4", "context": context})).await;
    let messages = client.until(is_complete).await;
    let result = &messages.iter().find(|it| it["id"] == json!(id)).expect("a response")["result"];
    assert_eq!(result["status"], "success");
    assert!(
        result["resultMessage"].as_str().is_some_and(|it| it.contains("fake/m1")),
        "the default model: {result}"
    );
    let changes: Vec<&Value> =
        messages.iter().map(|it| &it["params"]["content"]).filter(|it| it["type"] == "fileChange").collect();
    assert_eq!(changes.len(), 2, "{messages:#?}");
    assert_eq!(changes[0]["changes"], json!([{"kind": "create", "content": "hello\n"}]));
    assert_eq!(changes[1]["changes"], json!([{"kind": "delete", "range": {"startLine": 2, "endLine": 2}}]));
    assert!(changes.iter().all(|it| it["manualApproval"] == true));
    assert!(!home.workspace().join("new.txt").exists(), "the client applies it");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "one\ntwo\nthree\n");
    let sent = fake.requests()[0].body.to_string();
    assert!(sent.contains("line=\\\"3\\\"") && sent.contains("not on the public internet"), "{sent}");
    for message in messages.iter().filter(|it| it["method"] == "chat/contentReceived") {
        assert!(message["params"]["isComplete"].is_boolean() && message["params"].get("role").is_none());
    }
}

#[tokio::test]
async fn a_prompt_that_cannot_be_sent_is_a_connection_error() {
    let home = Home::new();
    let mut client = start(&home, &json!({"defaultModel": "anthropic/claude-sonnet-4-5"})).await;
    let id = client.ask("chat/prompt", json!({"message": "Hi", "model": "auto", "context": []})).await;
    let messages = client.until(is_complete).await;
    let result = &messages.iter().find(|it| it["id"] == json!(id)).expect("a response")["result"];
    assert_eq!(result["status"], "connection-error", "{result}");
    let said: String = messages.iter().filter_map(|it| it["params"]["content"]["text"].as_str()).collect();
    assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
}
