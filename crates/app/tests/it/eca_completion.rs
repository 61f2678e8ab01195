//! Inline completion in an ECA client.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Gate};

use crate::client::{Client, Home, fake_provider};

fn request(version: i64) -> Value {
    json!({
        "doc-text": "fn add(a: u32, b: u32) -> u32 {\n    \n}\n", "doc-version": version, "path": "/w/sum.rs",
        "position": {"line": 2, "character": 5},
    })
}

#[tokio::test]
async fn a_completion_has_its_own_model_and_prompt() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["quick"] = json!({});
    config["completion"] = json!({"model": "fake/quick"});
    config["prompts"] = json!({"completion": "Complete it my way."});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("```rust\na + b\n```"));
    let result = client.request("completion/inline", request(7)).await;
    let place = json!({"line": 2, "character": 5});
    let item = json!({"text": "a + b", "docVersion": 7, "range": {"start": place, "end": place}});
    assert_eq!(result, json!({"items": [item]}));
    let sent = fake.last_request().body;
    assert_eq!(sent["model"], "quick");
    let text = sent.to_string();
    assert!(text.contains("Complete it my way.") && text.contains("/w/sum.rs"), "{text}");
    assert!(text.contains("{\\n    <CURSOR>\\n}"), "{text}");
    // A model that has nothing to add, and one that fails.
    fake.answer(Answer::text("  \n"));
    assert_eq!(client.request("completion/inline", request(8)).await, json!({"items": []}));
    fake.answer(Answer::status(400));
    let failed = client.request("completion/inline", request(9)).await;
    assert!(failed["error"]["message"].is_string(), "{failed}");
}

#[tokio::test]
async fn the_next_key_ends_the_completion_before_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = Client::start(&home, &fake_provider(fake.url(), "openai-chat")).await;
    let gate = Gate::new();
    fake.answer(Answer::new().say("never seen").gate(&gate)).answer(Answer::text("a + b"));
    let first = client.ask("completion/inline", request(1)).await;
    while fake.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let second = client.ask("completion/inline", request(2)).await;
    assert_eq!(
        client.response_to(first).await["result"],
        json!({"items": []}),
        "at once, while the model still writes"
    );
    let result = client.response_to(second).await["result"].clone();
    assert_eq!(
        (&result["items"][0]["text"], &result["items"][0]["docVersion"]),
        (&json!("a + b"), &json!(2))
    );
    fake.wait_for_hangups(1).await;
    gate.open();
}

/// A completion of `line`, which is the second one of a function, with the cursor at its end.
fn typed(line: &str) -> Value {
    json!({
        "doc-text": format!("fn add(a: u32, b: u32) -> u32 {{\n{line}\n}}\n"), "doc-version": 1, "path": "/w/sum.rs",
        "position": {"line": 2, "character": line.len() + 1},
    })
}

#[tokio::test]
async fn a_model_of_code_fills_the_middle_and_typing_costs_nothing() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["llama.cpp"] =
        json!({"url": format!("{}/v1", fake.url()), "models": {"qwen2.5-coder": {}}});
    config["completion"] = json!({"model": "llama.cpp/qwen2.5-coder"});
    let mut client = Client::start(&home, &config).await;
    let infill = |text: &str| {
        let body = json!({"content": text, "stop": true});
        Answer::status(200).header("content-type", "application/json").body(body.to_string())
    };
    fake.answer(infill("a + b\n}\n\nfn sub() {\n"));
    let result = client.request("completion/inline", typed("    ")).await;
    assert_eq!(result["items"][0]["text"], "a + b", "it ends with the block");
    let sent = fake.last_request();
    assert_eq!(sent.path, "/infill");
    assert_eq!(sent.body["input_prefix"], "fn add(a: u32, b: u32) -> u32 {\n    ");
    assert_eq!(sent.body["input_suffix"], "\n}\n");
    // What was proposed is typed.
    for (line, rest) in [("    a", " + b"), ("    a +", " b")] {
        let result = client.request("completion/inline", typed(line)).await;
        assert_eq!(result["items"][0]["text"], rest);
    }
    assert_eq!(fake.requests().len(), 1, "typing it cost no request");
    fake.answer(infill("1"));
    let result = client.request("completion/inline", typed("    a * ")).await;
    assert_eq!((&result["items"][0]["text"], fake.requests().len()), (&json!("1"), 2));
    // A server that cannot do it is asked by a chat, and then at once.
    fake.answer(Answer::status(501)).answer(Answer::text("b")).answer(Answer::text("c"));
    assert_eq!(client.request("completion/inline", typed("    x")).await["items"][0]["text"], "b");
    assert_eq!(client.request("completion/inline", typed("    y")).await["items"][0]["text"], "c");
    let paths: Vec<String> = fake.requests().iter().skip(2).map(|request| request.path.clone()).collect();
    assert_eq!(paths, ["/infill", "/v1/chat/completions", "/v1/chat/completions"]);
}

#[tokio::test]
async fn a_next_edit_has_its_own_model_and_prompt_and_a_place() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["quick"] = json!({});
    config["nextEdit"] = json!({"model": "fake/quick"});
    config["prompts"] = json!({"nextEdit": "Predict it my way."});
    let mut client = Client::start(&home, &config).await;
    let params = json!({
        "docText": "fn add(a: u64, b: u32) -> u32 {\n    a + b\n}\n", "docVersion": 7, "path": "/w/sum.rs",
        "position": {"line": 1, "character": 14}, "recentEdits": ["-fn add(a: u32,\n+fn add(a: u64,"],
    });
    fake.answer(Answer::text("<old>\nb: u32) -> u32 {\n</old>\n<new>\nb: u64) -> u64 {\n</new>"));
    let result = client.request("completion/nextEdit", params.clone()).await;
    let range = json!({"start": {"line": 1, "character": 16}, "end": {"line": 1, "character": 32}});
    assert_eq!(result, json!({"items": [{"text": "b: u64) -> u64 {", "docVersion": 7, "range": range}]}));
    let sent = fake.last_request().body;
    assert_eq!(sent["model"], "quick");
    let text = sent.to_string();
    for words in ["Predict it my way.", "/w/sum.rs", "+fn add(a: u64,", "<CURSOR>"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Text that is not in the document is no edit of it.
    fake.answer(Answer::text("<old>\nfn sub() {\n</old>\n<new>\nfn add() {\n</new>"));
    assert_eq!(client.request("completion/nextEdit", params.clone()).await, json!({"items": []}));

    // The next request ends it, a completion as well as another edit.
    let gate = Gate::new();
    fake.answer(Answer::new().say("never seen").gate(&gate)).answer(Answer::text("a + b"));
    let first = client.ask("completion/nextEdit", params).await;
    fake.wait_for_requests(3).await;
    let second = client.ask("completion/inline", request(2)).await;
    assert_eq!(client.response_to(first).await["result"], json!({"items": []}));
    assert_eq!(client.response_to(second).await["result"]["items"][0]["text"], "a + b");
    fake.wait_for_hangups(1).await;
    gate.open();
}

#[tokio::test]
async fn a_rewrite_has_its_own_model_and_prompt() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["quick"] = json!({});
    config["rewrite"] = json!({"model": "fake/quick"});
    config["prompts"] = json!({"rewrite": "Rewrite it my way."});
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::text("fn b() {}"));
    let params = json!({"id": "r", "text": "fn a() {}", "prompt": "call it b"});
    let result = client.request("rewrite/prompt", params).await;
    assert_eq!(result["model"], "fake/quick");
    client.until(|it| it["params"]["content"]["type"] == "finished").await;
    let sent = fake.last_request().body;
    assert!(sent["model"] == "quick" && sent.to_string().contains("Rewrite it my way."), "{sent}");
}
