//! Rewriting a selection in an ECA client.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider};

#[tokio::test]
async fn a_selection_is_rewritten_and_fences_are_dropped() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    fake.answer(Answer::text("```rust\nfn b() {}\n```"));
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 9}});
    let params =
        json!({"id": "r1", "text": "fn a() {}", "prompt": "call it b", "path": "/w/x.rs", "range": range});
    let id = client.ask("rewrite/prompt", params).await;
    let is_over = |it: &Value| it["params"]["content"]["type"] == "finished";
    let messages = client.until(is_over).await;
    let response = messages.iter().position(|it| it["id"] == json!(id)).expect("a response");
    assert_eq!(messages[response]["result"], json!({"status": "prompting", "model": "fake/m1"}));
    let contents: Vec<&Value> = messages
        .iter()
        .filter(|it| it["method"] == "rewrite/contentReceived")
        .map(|it| &it["params"])
        .collect();
    assert!(contents.iter().all(|it| it["rewriteId"] == "r1"), "{contents:?}");
    assert_eq!(contents[0]["content"]["type"], "started");
    let first = messages.iter().position(|it| it["method"] == "rewrite/contentReceived").expect("contents");
    assert!(response < first, "a client drops contents of a rewrite that it does not know");
    let replaced = contents.iter().find(|it| it["content"]["type"] == "replace").expect("without fences");
    assert_eq!(replaced["content"]["text"], "fn b() {}");
    let sent = fake.last_request().body.to_string();
    assert!(sent.contains("fn a() {}") && sent.contains("call it b") && sent.contains("/w/x.rs"), "{sent}");
}
