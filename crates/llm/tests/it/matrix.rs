//! A chat that changes its model in the middle: what every format makes of what every other format left behind.

use domain::model::{Models, Prompt, PromptEntry};
use domain::{Part, model::ModelEvent};
use futures_util::StreamExt;
use llm::{Api, KeySource, ProviderConfig, Registry, RegistrySettings};
use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Request};

use crate::support::{entries, prompt, text_of, user};

/// What a format's server demands of a request, as far as it can be known without one.
fn complaints(api: Api, request: &Request) -> Vec<String> {
    let mut bad = Vec::new();
    let text = request.body.to_string();
    for foreign in ["c2lnbmF0dXJl", "ZW5jcnlwdGVk", "Secret thoughts"] {
        if text.contains(foreign) {
            bad.push(format!("it holds {foreign} of another model"));
        }
    }
    let (mut waiting, mut last_role) = (Vec::<String>::new(), String::new());
    for message in request.messages() {
        let (calls, results) = calls_and_results(api, message);
        if !results.is_empty() {
            let expected: Vec<_> = waiting.drain(..results.len().min(waiting.len())).collect();
            if expected != results {
                bad.push(format!("results {results:?} follow calls {expected:?}"));
            }
        } else if !waiting.is_empty() && calls.is_empty() {
            bad.push(format!("no results for {waiting:?} before {message}"));
        }
        waiting.extend(calls);
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        if api == Api::Bedrock && role == last_role {
            bad.push(format!("two messages of {role} in a row"));
        }
        last_role = role;
        if message.get("content").is_some_and(|content| content == &json!([])) {
            bad.push("an empty message".to_owned());
        }
    }
    if !waiting.is_empty() {
        bad.push(format!("no results for {waiting:?} at the end"));
    }
    bad
}

/// The ids (or names, where a format has no ids) of the calls and results of a message.
fn calls_and_results(api: Api, message: &Value) -> (Vec<String>, Vec<String>) {
    let id = |value: &Value| {
        let text = value.as_str().unwrap_or_default().to_owned();
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        assert!(plain && !text.is_empty() && text.len() <= 64, "{api:?}: {text:?} is not an id or name");
        text
    };
    let collect = |list: &Value, path: &str| -> Vec<String> {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(|part| part.pointer(path)).map(id).collect()
    };
    let content = &message["content"];
    match api {
        Api::OpenAiResponses => match message["type"].as_str() {
            Some("function_call") => (vec![id(&message["call_id"])], vec![]),
            Some("function_call_output") => (vec![], vec![id(&message["call_id"])]),
            _ => (vec![], vec![]),
        },
        Api::OpenAiChat => {
            let results = message.get("tool_call_id").map(id).into_iter().collect();
            (collect(&message["tool_calls"], "/id"), results)
        }
        Api::Anthropic => {
            let calls: Vec<_> =
                content.as_array().into_iter().flatten().filter(|b| b["type"] == "tool_use").collect();
            (calls.iter().map(|call| id(&call["id"])).collect(), collect(content, "/tool_use_id"))
        }
        Api::Gemini => (
            collect(&message["parts"], "/functionCall/name"),
            collect(&message["parts"], "/functionResponse/name"),
        ),
        Api::Ollama => {
            let results = message.get("tool_name").map(id).into_iter().collect();
            (collect(&message["tool_calls"], "/function/name"), results)
        }
        Api::Bedrock => (collect(content, "/toolUse/toolUseId"), collect(content, "/toolResult/toolUseId")),
    }
}

fn registry(first: Api, second: Api, url: &str) -> Registry {
    let provider = |name: &str, api| ProviderConfig {
        name: name.to_owned(),
        api: Some(api),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed("k")),
        ..ProviderConfig::default()
    };
    let providers = vec![provider("first", first), provider("second", second)];
    Registry::new(RegistrySettings { providers, ..RegistrySettings::default() }).unwrap()
}

async fn ask(registry: &Registry, model: &str, prompt: Prompt) -> Vec<ModelEvent> {
    registry.find(model).unwrap().stream(prompt).map(|event| event.unwrap()).collect().await
}

/// Both calls answered, one of them with an image, and one call that was never answered.
fn results(events: &[ModelEvent]) -> Vec<PromptEntry> {
    let image = Part::Image { mime: "image/png".into(), data: "aGk=".into() };
    let calls = entries(events).into_iter().filter_map(|entry| match entry {
        PromptEntry::Call { call_id, name, .. } => Some((call_id, name)),
        PromptEntry::User { .. }
        | PromptEntry::Reasoning { .. }
        | PromptEntry::Agent { .. }
        | PromptEntry::Result { .. } => None,
    });
    calls
        .take(2)
        .map(|(call_id, name)| PromptEntry::Result {
            call_id,
            name,
            parts: vec![Part::text("found"), image.clone()],
            error: false,
        })
        .collect()
}

#[tokio::test]
async fn every_format_takes_the_history_of_every_other() {
    for first in Api::ALL {
        for second in Api::ALL {
            let fake = FakeModel::start().await;
            let registry = registry(first, second, fake.url());
            fake.answer(
                Answer::new()
                    .reasoning("Secret thoughts")
                    .say("I will look.")
                    .call("functions.read:0", "eca__read_file", json!({"path": "a"}))
                    .call("toolu_1", "eca__read_file", json!({}))
                    .call("c3", "eca__list", json!({})),
            );
            let mut chat = prompt("Look");
            let events = ask(&registry, "first/one", chat.clone()).await;
            chat.entries.extend(entries(&events));
            chat.entries.extend(results(&events));
            chat.entries.push(user("And now?"));
            fake.answer(Answer::new().reasoning("More thoughts").say("Done."));
            let events = ask(&registry, "second/two", chat.clone()).await;
            assert_eq!(text_of(&events), "More thoughtsDone.", "{first:?} → {second:?}");
            assert_eq!(
                complaints(second, &fake.last_request()),
                Vec::<String>::new(),
                "{first:?} → {second:?}"
            );

            // And back: the first model's own blocks are still there for it.
            chat.entries.extend(entries(&events));
            chat.entries.push(user("Thanks"));
            fake.answer(Answer::text("Welcome."));
            ask(&registry, "first/one", chat).await;
            let body = fake.last_request().body.to_string();
            let kept = match first {
                Api::OpenAiResponses => "ZW5jcnlwdGVk",
                Api::OpenAiChat | Api::Ollama => "Secret thoughts",
                Api::Anthropic | Api::Bedrock | Api::Gemini => "c2lnbmF0dXJl",
            };
            assert!(body.contains(kept), "{first:?} → {second:?} → {first:?}: {body}");
            assert!(!body.contains("More thoughts"), "{first:?} → {second:?} → {first:?}: {body}");
        }
    }
}
