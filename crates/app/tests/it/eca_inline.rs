//! `chat/inlinePrompt`: chats that an editor shows inside a file.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished};

/// Sends an inline prompt; everything up to the end of its turn, the response among it.
async fn inline(client: &mut Client, params: Value) -> (Value, Vec<Value>) {
    let id = client.ask("chat/inlinePrompt", params).await;
    let is_response = move |it: &Value| it["id"] == json!(id) && it.get("method").is_none();
    let mut messages = client.until(is_finished).await;
    if !messages.iter().any(is_response) {
        messages.extend(client.until(is_response).await);
    }
    let response = messages.iter().find(|it| is_response(it)).expect("a response")["result"].clone();
    (response, messages)
}

fn opened(messages: &[Value]) -> Vec<Value> {
    let opened = messages.iter().filter(|it| it["method"] == "chat/opened");
    opened.map(|it| it["params"].clone()).collect()
}

#[tokio::test]
async fn an_inline_prompt_makes_a_chat_and_continues_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["m2"] = json!({});
    config["chatInline"] = json!({"model": "fake/m2", "agent": "plan"});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("Knock knock!"));
    let (response, messages) =
        inline(&mut client, json!({"chatId": "in-1", "message": "Tell me a joke!"})).await;
    assert_eq!(response, json!({"chatId": "in-1", "model": "fake/m2", "status": "prompting"}));
    assert_eq!(opened(&messages), [json!({"chatId": "in-1", "title": "inline: Tell me a joke!"})]);
    let sent = fake.last_request().body;
    assert!(sent["model"] == "m2" && sent.to_string().contains("You are planning"), "{sent}");

    fake.answer(Answer::text("Nobel."));
    let (_, messages) = inline(&mut client, json!({"chatId": "in-1", "message": "Who is there?"})).await;
    assert_eq!(opened(&messages), Vec::<Value>::new());
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("Tell me a joke!") && sent.contains("Knock knock!"), "{sent}");

    client.prompt(Some("plain"), "say 1 words").await;
    let chats = client.request("chat/list", json!({})).await["chats"].clone();
    let kind = |id: &str| {
        let chat = chats.as_array().and_then(|all| all.iter().find(|chat| chat["id"] == id));
        chat.expect("a chat")["kind"].clone()
    };
    assert_eq!((kind("in-1"), kind("plain")), (json!("inline"), Value::Null));
    // What the configuration says about inline chats holds for no other.
    inline(&mut client, json!({"chatId": "plain", "message": "say 1 words"})).await;
    let sent = fake.last_request().body;
    assert!(sent["model"] == "m1" && !sent.to_string().contains("You are planning"), "{sent}");
    for wrong in [
        json!({"chatId": "bad", "message": "  "}),
        json!({"chatId": "subagent-1", "message": "hi"}),
        json!({"message": "hi"}),
        json!({"chatId": "lost", "sourceChatId": "nowhere", "message": "hi"}),
    ] {
        let (response, _) = inline(&mut client, wrong.clone()).await;
        assert_eq!(response["status"], "error", "{wrong}");
    }
    assert!(client.end().await.success());

    // The next process finds it by the same id, and its history is not sent again.
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("Nobel who?"));
    let (_, messages) = inline(&mut client, json!({"chatId": "in-1", "message": "And?"})).await;
    assert!(!messages.iter().any(|it| it.to_string().contains("Knock knock!")), "{messages:#?}");
    assert!(fake.last_request().body.to_string().contains("Knock knock!"));
}

#[tokio::test]
async fn an_inline_prompt_continues_another_chat_without_showing_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "anthropic")).await;
    fake.answer(Answer::text("The plan is X."));
    client.prompt(Some("source"), "Make a plan").await;
    fake.answer(Answer::text("Because of Y."));
    let asked = json!({"chatId": "fork-1", "sourceChatId": "source", "message": "Why?"});
    let (response, messages) = inline(&mut client, asked).await;
    assert_eq!(response["chatId"], "fork-1");
    assert_eq!(opened(&messages), [json!({"chatId": "fork-1", "title": "inline: Why?"})]);
    assert!(!messages.iter().any(|it| it.to_string().contains("The plan is X.")), "{messages:#?}");
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("Make a plan") && sent.contains("The plan is X."), "{sent}");
    // The source stays as it was.
    fake.answer(Answer::text("Fine."));
    client.prompt(Some("source"), "Go on").await;
    assert!(!fake.last_request().body.to_string().contains("Because of Y."));
}
