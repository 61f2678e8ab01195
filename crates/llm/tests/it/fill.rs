//! Filling the middle of a text at each server that can: the request it gets, and the text read from its answer.

use std::sync::Arc;
use std::time::Duration;

use domain::middle::Middle;
use domain::model::{Model, Models, Prompt};
use futures_util::StreamExt;
use llm::{KeySource, ProviderConfig, Registry, RegistrySettings, RetryPolicy};
use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::support::{text_of, user};

fn registry(url: &str) -> Registry {
    let provider = |name: &str, url: &str| ProviderConfig {
        name: name.into(),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed("key-0123456789")),
        ..ProviderConfig::default()
    };
    let versioned = format!("{url}/v1");
    let providers = ["llama.cpp", "vllm", "lmstudio", "mistral"].map(|name| provider(name, &versioned));
    let others = ["ollama", "deepseek"].map(|name| provider(name, url));
    let providers = providers.into_iter().chain(others).collect();
    let retry_policy = RetryPolicy { first_wait: Duration::from_millis(5), ..RetryPolicy::default() };
    Registry::new(RegistrySettings { providers, retry_policy, ..RegistrySettings::default() }).unwrap()
}

fn prompt() -> Prompt {
    let middle = Middle { path: None, before: "let x = ".into(), after: ";\n".into() };
    Prompt { entries: vec![user("beside")], max_output: Some(50), middle: Some(middle), ..Prompt::default() }
}

async fn fill(model: &Arc<dyn Model>) -> Result<String, String> {
    let events: Vec<_> = model.stream(prompt()).collect().await;
    let events: Result<Vec<_>, _> = events.into_iter().collect();
    events.map(|events| text_of(&events)).map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn each_server_gets_its_own_request() {
    let fake = FakeModel::start().await;
    let registry = registry(fake.url());
    let whole =
        |body: Value| Answer::status(200).header("content-type", "application/json").body(body.to_string());
    let infill =
        || whole(json!({"content": "a + b", "stop": true, "stop_type": "eos", "tokens_evaluated": 4}));
    let generate = || whole(json!({"response": "a + b", "done": true, "done_reason": "stop"}));
    let text = || whole(json!({"choices": [{"text": "a + b", "index": 0, "finish_reason": "stop"}]}));
    let chat = || Answer::text("a + b");
    let qwen = "<|fim_prefix|>let x = <|fim_suffix|>;\n<|fim_middle|>";
    let suffix = || json!({"prompt": "let x = ", "suffix": ";\n"});
    let cases: [(&str, &str, Answer, Value); 6] = [
        (
            "llama.cpp/qwen2.5-coder",
            "/infill",
            infill(),
            json!({"input_prefix": "let x = ", "input_suffix": ";\n", "n_predict": 50}),
        ),
        ("ollama/qwen2.5-coder:1.5b", "/api/generate", generate(), suffix()),
        ("mistral/codestral-latest", "/v1/fim/completions", chat(), suffix()),
        ("deepseek/deepseek-chat", "/beta/completions", text(), suffix()),
        ("vllm/Qwen/Qwen2.5-Coder-7B", "/v1/completions", text(), json!({"prompt": qwen, "max_tokens": 50})),
        (
            "lmstudio/starcoder2-3b",
            "/v1/completions",
            text(),
            json!({"prompt": "<fim_prefix>let x = <fim_suffix>;\n<fim_middle>"}),
        ),
    ];
    for (name, path, answer, members) in cases {
        let model = registry.find(name).unwrap();
        assert!(model.info().fills_middle, "{name}");
        fake.answer(answer);
        assert_eq!(fill(&model).await.as_deref(), Ok("a + b"), "{name}");
        let request = fake.last_request();
        assert_eq!(request.path, path, "{name}");
        for (member, value) in members.as_object().unwrap() {
            assert_eq!(&request.body[member], value, "{name} {member}");
        }
    }
    assert!(!registry.find("mistral/mistral-large-latest").unwrap().info().fills_middle);
    assert!(!registry.find("llama.cpp/llama-3.2").unwrap().info().fills_middle);
}

#[tokio::test]
async fn a_stream_of_pieces_is_read() {
    let fake = FakeModel::start().await;
    let registry = registry(fake.url());
    let piece = |text: &str, stop: bool| format!("data: {}\n\n", json!({"content": text, "stop": stop}));
    let pieces = [piece("a ", false), piece("+ b", false), piece("", true)].concat();
    let answer = Answer::status(200).header("content-type", "text/event-stream").body(pieces);
    fake.answer(answer);
    let model = registry.find("llama.cpp/qwen2.5-coder").unwrap();
    assert_eq!(fill(&model).await.as_deref(), Ok("a + b"));
}

#[tokio::test]
async fn a_server_that_cannot_is_asked_once() {
    let fake = FakeModel::start().await;
    let registry = registry(fake.url());
    let model = registry.find("llama.cpp/qwen2.5-coder").unwrap();
    fake.answer(Answer::status(501));
    assert!(fill(&model).await.is_err());
    assert_eq!(fake.requests().len(), 1, "it is not tried again");
    assert!(!model.info().fills_middle);
    assert!(!registry.find("llama.cpp/qwen2.5-coder").unwrap().info().fills_middle, "and remembered");
    assert!(registry.find("llama.cpp/starcoder2").unwrap().info().fills_middle, "for this model alone");
}
