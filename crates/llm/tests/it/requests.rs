//! Written requests: what each format sends, and that a later request only ever adds to an earlier one.

use domain::Part;
use domain::item::ProviderBlock;
use domain::model::{Prompt, PromptEntry};
use domain::tool::TextFormat;
use llm::Api;
use llm::format::{Dialect, Target};
use serde_json::{Value, json};

use crate::support::{prompt, user, with_target};

fn encode(api: Api, prompt: &Prompt) -> Value {
    with_target(api, "fake/model", |target| api.encode(prompt, target))
}

fn block(api: Api, model: &str, data: Value) -> Option<ProviderBlock> {
    Some(ProviderBlock { format: api.name().to_owned(), model: model.to_owned(), data })
}

/// Reasoning as the format itself would have given it.
fn reasoning(api: Api) -> PromptEntry {
    let data = match api {
        Api::Anthropic => json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}),
        Api::OpenAiResponses => json!({"type": "reasoning", "summary": [], "encrypted_content": "ZW5j"}),
        Api::OpenAiChat => json!({"field": "reasoning_content"}),
        Api::Ollama => json!({"field": "thinking"}),
        Api::Bedrock => json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}),
        Api::Gemini => Value::Null,
    };
    PromptEntry::Reasoning { text: "Hm.".into(), provider: block(api, "fake/model", data) }
}

fn call(id: &str) -> PromptEntry {
    PromptEntry::Call {
        call_id: id.into(),
        name: "eca__read_file".into(),
        input: json!({"path": id}),
        provider: None,
    }
}

fn result(id: &str) -> PromptEntry {
    let parts = vec![Part::text(format!("content of {id}")), image()];
    PromptEntry::Result { call_id: id.into(), name: "eca__read_file".into(), parts, error: id == "c2" }
}

fn image() -> Part {
    Part::Image { mime: "image/png".into(), data: "aGk=".into() }
}

/// A chat of several turns with everything in it, in the order it would have grown.
fn chat(api: Api) -> Vec<PromptEntry> {
    vec![
        PromptEntry::User { parts: vec![Part::text("Look at this."), image()] },
        reasoning(api),
        PromptEntry::Agent { text: "I will read two files.".into(), provider: None },
        call("c1"),
        call("c2"),
        result("c1"),
        result("c2"),
        PromptEntry::Agent { text: "Both are read.".into(), provider: None },
        user("Thanks."),
        user("One more thing."),
        reasoning(api),
        call("c3"),
        result("c3"),
        PromptEntry::Agent { text: "Done.".into(), provider: None },
        user("Bye."),
    ]
}

/// The requests that this chat was sent as: one each time the model was to speak.
fn prompts(entries: &[PromptEntry]) -> Vec<Prompt> {
    let said = |entry: &PromptEntry| matches!(entry, PromptEntry::User { .. } | PromptEntry::Result { .. });
    (1..=entries.len())
        .filter(|&end| said(&entries[end - 1]) && entries.get(end).is_none_or(|next| !said(next)))
        .map(|end| Prompt { entries: entries[..end].to_vec(), ..prompt("") })
        .collect()
}

/// Everything that a provider's cache compares, in order, without the cache marks.
fn prefix(api: Api, body: &Value) -> Vec<String> {
    let lists: &[&str] = match api {
        Api::Anthropic => &["tools", "system", "messages"],
        Api::OpenAiResponses => &["instructions", "tools", "input"],
        Api::OpenAiChat | Api::Ollama => &["tools", "messages"],
        Api::Gemini => &["systemInstruction", "tools", "contents"],
        Api::Bedrock => &["toolConfig", "system", "messages"],
    };
    let mut elements = Vec::new();
    for key in lists {
        match &body[*key] {
            Value::Array(list) => {
                elements.extend(list.iter().map(|value| unmarked(value.clone()).to_string()))
            }
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => elements.push(other.to_string()),
        }
    }
    elements
}

fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.shift_remove("cache_control");
            map.values_mut().for_each(|inner| *inner = unmarked(inner.take()));
        }
        Value::Array(list) => {
            list.retain(|inner| inner.get("cachePoint").is_none());
            list.iter_mut().for_each(|inner| *inner = unmarked(inner.take()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[test]
fn a_later_request_only_adds_to_an_earlier_one() {
    for api in Api::ALL {
        let bodies: Vec<_> =
            prompts(&chat(api)).iter().map(|prompt| prefix(api, &encode(api, prompt))).collect();
        assert!(bodies.len() >= 5);
        for pair in bodies.windows(2) {
            assert!(pair[1].len() > pair[0].len(), "{api:?}");
            assert_eq!(pair[0], pair[1][..pair[0].len()], "{api:?}");
        }
    }
}

#[test]
fn anthropic_marks_at_most_four_ends_and_always_the_last() {
    for prompt in prompts(&chat(Api::Anthropic)) {
        let body = encode(Api::Anthropic, &prompt);
        let marks = body.to_string().matches("cache_control").count();
        assert!((3..=4).contains(&marks), "{marks}");
        let last = body["messages"].as_array().and_then(|list| list.last()).unwrap();
        assert!(
            last["content"].as_array().and_then(|list| list.last()).unwrap().get("cache_control").is_some()
        );
        assert!(body["system"][1].get("cache_control").is_some());
    }
}

fn check(api: Api, prompt: &Prompt, pointer: &str, expected: Value) {
    let body = encode(api, prompt);
    assert_eq!(body.pointer(pointer), Some(&expected), "{api:?} {pointer} in {body:#}");
}

#[test]
fn reasoning_goes_back_as_it_came_and_only_to_its_own_model() {
    for api in Api::ALL {
        let entries = |model: &str| {
            let PromptEntry::Reasoning { text, provider: Some(own) } = reasoning(api) else { unreachable!() };
            let provider = block(api, model, own.data);
            vec![
                user("Hi"),
                PromptEntry::Reasoning { text, provider },
                PromptEntry::Agent { text: "Yes.".into(), provider: None },
                user("Ok"),
            ]
        };
        let own = encode(api, &Prompt { entries: entries("fake/model"), ..prompt("") }).to_string();
        let other = encode(api, &Prompt { entries: entries("fake/other"), ..prompt("") }).to_string();
        let mark = match api {
            Api::Anthropic => {
                r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Yes."}"#
            }
            Api::OpenAiResponses => {
                r#"{"type":"reasoning","summary":[],"encrypted_content":"ZW5j"},{"type":"message""#
            }
            Api::OpenAiChat => r#""reasoning_content":"Hm.""#,
            Api::Ollama => r#""thinking":"Hm.""#,
            Api::Bedrock => r#"{"reasoningText":{"text":"Hm.","signature":"c2ln"}}},{"text":"Yes."}"#,
            // Thoughts stay with us; signatures travel on text and calls.
            Api::Gemini => "Yes.",
        };
        assert!(own.contains(mark), "{api:?}: {own}");
        assert!(
            !other.contains("Hm.") && !other.contains("ZW5j") && other.contains("Yes."),
            "{api:?}: {other}"
        );
    }
}

#[test]
fn variants_limits_and_schemas_are_written_in_each_format() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let full = Prompt {
        max_output: Some(1000),
        temperature: Some(0.5),
        variant: Some("high".into()),
        output_schema: Some(closed.clone()),
        ..prompt("Hi")
    };
    let calm = Prompt { variant: None, ..full.clone() };
    check(Api::Anthropic, &full, "/thinking", json!({"type": "enabled", "budget_tokens": 24000}));
    check(Api::Anthropic, &full, "/max_tokens", json!(25000));
    check(Api::Anthropic, &full, "/output_config/format", json!({"type": "json_schema", "schema": closed}));
    check(Api::Anthropic, &calm, "/temperature", json!(0.5));
    assert!(encode(Api::Anthropic, &full).get("temperature").is_none());
    check(Api::OpenAiResponses, &full, "/reasoning", json!({"effort": "high", "summary": "auto"}));
    check(Api::OpenAiResponses, &full, "/max_output_tokens", json!(1000));
    check(Api::OpenAiResponses, &full, "/text/format/strict", json!(true));
    check(Api::OpenAiResponses, &full, "/include", json!(["reasoning.encrypted_content"]));
    check(Api::OpenAiResponses, &full, "/store", json!(false));
    check(Api::OpenAiResponses, &full, "/prompt_cache_key", json!("session-1"));
    check(Api::OpenAiChat, &full, "/reasoning_effort", json!("high"));
    check(Api::OpenAiChat, &full, "/max_tokens", json!(1000));
    check(Api::OpenAiChat, &full, "/response_format/json_schema/schema", closed);
    check(Api::OpenAiChat, &full, "/stream_options", json!({"include_usage": true}));
}

#[test]
fn tools_are_offered_under_names_that_every_api_takes() {
    for (api, pointer) in [
        (Api::Anthropic, "/tools/1/name"),
        (Api::OpenAiResponses, "/tools/1/name"),
        (Api::OpenAiChat, "/tools/1/function/name"),
    ] {
        let body = encode(api, &prompt("Hi"));
        let name = body.pointer(pointer).and_then(Value::as_str).unwrap();
        assert!(name.starts_with("my_server__do_it_") && name.len() <= 64, "{name}");
        assert!(body.to_string().contains("\"eca__read_file\""));
    }
}

#[test]
fn images_and_errors_of_results_reach_the_model() {
    let body = encode(Api::Anthropic, &Prompt { entries: chat(Api::Anthropic), ..prompt("") });
    assert_eq!(body.pointer("/messages/2/content/1/is_error"), Some(&json!(true)));
    assert_eq!(body.pointer("/messages/2/content/0/content/1/source/data"), Some(&json!("aGk=")));
    let body = encode(Api::OpenAiResponses, &Prompt { entries: chat(Api::OpenAiResponses), ..prompt("") });
    assert_eq!(
        body.pointer("/input/5/output/1/image_url"),
        Some(&json!("data:image/png;base64,aGk=")),
        "{body:#}"
    );
    let body = encode(Api::OpenAiChat, &Prompt { entries: chat(Api::OpenAiChat), ..prompt("") });
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles.join(" "),
        "system user assistant tool tool user user assistant user user assistant tool user assistant user"
    );
}

/// A tool whose call is plain text: with its grammar where the server takes one, a function elsewhere.
#[test]
fn a_text_tool_is_custom_on_the_responses_api_and_a_function_elsewhere() {
    let format = TextFormat { argument: "input", grammar: "start: \"x\"", description: "Writes x." };
    let (id, name) = ("c1".to_owned(), "eca__read_file".to_owned());
    let input = json!({"input": "x\ny"});
    let entries = vec![
        user("go"),
        PromptEntry::Call { call_id: id.clone(), name: name.clone(), input, provider: None },
        PromptEntry::Result {
            call_id: id,
            name: name.clone(),
            parts: vec![Part::text("done")],
            error: false,
        },
    ];
    let prompt = Prompt { entries, text_tools: vec![(name, format)], is_sequential: true, ..prompt("") };
    let custom = with_target(Api::OpenAiResponses, "fake/model", |target| {
        let dialect = Dialect { text_tools: true, ..target.dialect };
        Api::OpenAiResponses.encode(&prompt, &Target { dialect, ..target.clone() })
    });
    let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: \"x\""});
    let tool =
        json!({"type": "custom", "name": "eca__read_file", "description": "Writes x.", "format": grammar});
    assert_eq!(custom["tools"][0], tool);
    assert_eq!(custom["tools"][1]["type"], "function", "only this one");
    let call =
        json!({"type": "custom_tool_call", "call_id": "c1", "name": "eca__read_file", "input": "x\ny"});
    assert_eq!(custom["input"][1], call);
    assert_eq!(custom["input"][2]["type"], "custom_tool_call_output");
    assert_eq!(custom["parallel_tool_calls"], false);
    let plain = encode(Api::OpenAiResponses, &prompt);
    assert_eq!(
        (&plain["tools"][0]["type"], &plain["input"][1]["type"]),
        (&json!("function"), &json!("function_call"))
    );
    for api in Api::ALL {
        assert!(api == Api::OpenAiResponses || !encode(api, &prompt).to_string().contains("lark"), "{api:?}");
    }
    assert_eq!(encode(Api::OpenAiChat, &prompt)["parallel_tool_calls"], false);
    assert_eq!(encode(Api::Anthropic, &prompt)["tool_choice"]["disable_parallel_tool_use"], true);
}
