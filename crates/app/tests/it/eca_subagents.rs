//! Subagents in an ECA client: their contents, and questions that a person answers in their chats.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

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
