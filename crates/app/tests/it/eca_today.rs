//! Methods of today's plugins beyond the published protocol, and limits of a repository's settings.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, contents, fake_provider, is_finished};

#[tokio::test]
async fn selections_of_today_hold_for_one_chat_or_for_new_ones() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["m2"] = json!({});
    let mut client = Client::start(&home, &config).await;
    client.prompt(Some("old"), "say 1 words").await;
    client.notify("chat/selectedModelChanged", json!({"model": "fake/m2", "variant": null})).await;
    client.notify("chat/selectedAgentChanged", json!({"agent": "plan"})).await;
    client.prompt(Some("new"), "say 1 words").await;
    let sent = fake.last_request().body;
    assert_eq!(sent["model"], "m2");
    assert!(sent.to_string().contains("You are planning"));
    client.prompt(Some("old"), "say 1 words").await;
    let sent = fake.last_request().body;
    assert!(sent["model"] == "m1" && !sent.to_string().contains("You are planning"), "{sent}");
    client.request("chat/selectedModelChanged", json!({"chatId": "old", "model": "fake/m2"})).await;
    client.request("chat/selectedAgentChanged", json!({"chatId": "old", "agent": "plan"})).await;
    client.prompt(Some("old"), "say 1 words").await;
    let sent = fake.last_request().body;
    assert!(sent["model"] == "m2" && sent.to_string().contains("You are planning"), "{sent}");
}

#[tokio::test]
async fn a_chat_is_renamed_trusted_and_deleted() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "say 1 words"})).await;
    let messages =
        client.until(|it| it["method"] == "chat/statusChanged" && it["params"]["status"] == "idle").await;
    let running = messages.iter().position(|it| it["params"]["status"] == "running").expect("running first");
    let first = messages.iter().position(|it| it["method"] == "chat/contentReceived").expect("a content");
    assert!(running < first && messages.iter().any(is_finished), "{messages:#?}");

    client.request("chat/update", json!({"chatId": "c", "title": "Another name"})).await;
    client.until(|it| it["params"]["content"]["title"] == "Another name").await;
    let listed = client.request("chat/list", json!({"limit": 20})).await;
    assert_eq!(listed["chats"][0]["title"], "Another name");
    for member in ["id", "status", "model", "messageCount", "createdAt", "updatedAt"] {
        assert!(!listed["chats"][0][member].is_null(), "{member}: {listed}");
    }

    client.request("chat/update", json!({"chatId": "c", "trust": true})).await;
    fake.answer(Answer::tool_call("w", "eca__write_file", json!({"path": "made", "content": "x"})));
    fake.answer(Answer::text("ok"));
    client.prompt(Some("c"), "write").await;
    assert!(home.workspace().join("made").exists(), "a trusted chat is not asked");
    let id = client.ask("chat/open", json!({"chatId": "c"})).await;
    let opened = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    assert_eq!(opened.last().expect("a response")["result"]["selection"]["trust"], true);

    let id = client.ask("chat/delete", json!({"chatId": "c"})).await;
    let messages = client.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
    assert!(messages.iter().any(|it| it["method"] == "chat/deleted" && it["params"]["chatId"] == "c"));
    for unknown in ["chat/noSuchMethod", "plugins/whatever", "editor/getDiagnostics"] {
        assert_eq!(client.response(unknown, Value::Null).await["error"]["code"], -32601, "{unknown}");
    }
}

/// Rules of the user's that cannot be read: everything asks, trust or not, plan stays plan, and the file is named.
#[tokio::test]
async fn broken_rules_ask_even_in_a_trusted_chat() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write(
        ".config/dragoman/config.json",
        &json!({"toolCall": {"approval": {"denny": {"eca__write_file": {}}}}}).to_string(),
    );
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let told = client.until(|it| it["method"] == "$/showMessage").await;
    let message = told.last().expect("a message")["params"]["message"].to_string();
    assert!(message.contains("config.json") && message.contains("denny"), "{message}");
    let write = || Answer::tool_call("w", "eca__write_file", json!({"path": "made", "content": "x"}));
    fake.answer(write());
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let shown = contents(&client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await);
    assert_eq!(shown.last().expect("the call")["content"]["manualApproval"], true);
    client.notify("chat/promptStop", json!({"chatId": "c"})).await;
    client.until(is_finished).await;
    let line = Answer::tool_call("s", "eca__shell_command", json!({"command": "touch made"}));
    fake.answer(line).answer(Answer::text("ok"));
    client.prompt_with(json!({"chatId": "d", "message": "go", "trust": true, "behavior": "plan"})).await;
    assert!(!home.workspace().join("made").exists());
}
