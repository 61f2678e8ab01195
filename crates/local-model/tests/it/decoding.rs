//! Answers within rules, guesses from the text, saved beginnings and filled middles, on small files made here and on the
//! default weights.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::item::Part;
use domain::middle::Middle;
use domain::model::{Model, ModelEvent, Prompt, PromptEntry, Tokens};
use domain::tool::{ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use futures_util::StreamExt;
use local_model::{
    AnswerOptions, AnswerReport, Engine, Limits, LocalModel, Message, Role, Sampling, Session,
    remove_saved_prefixes,
};
use serde_json::{Value, json};

use crate::synthetic::Toy;
use crate::weights;

fn toy(format: u32) -> Arc<Engine> {
    let toy = Toy { embedding: 256, feed_forward: 256, heads: 8, key_heads: 2, format, ..Toy::default() };
    Arc::new(Engine::read(Arc::new(toy.file().bytes())).unwrap())
}

fn answer(engine: &Arc<Engine>, prompt: &[u32], options: AnswerOptions) -> (String, AnswerReport) {
    let mut text = String::new();
    let mut session = Session::new(engine.clone(), Limits::default());
    let stop = AtomicBool::new(false);
    let report = session.answer_with(prompt, options, &stop, |piece| text.push_str(piece)).unwrap();
    (text, report)
}

/// The same answer with and without guesses; says how many tokens were guessed right.
fn check_guesses(engine: &Arc<Engine>, prompt: &[u32], sampling: Sampling) -> usize {
    let options = AnswerOptions::new(150, sampling);
    let (plain, slow) = answer(engine, prompt, options.clone().without_guesses());
    let (guessed, fast) = answer(engine, prompt, options);
    assert_eq!(guessed, plain);
    assert_eq!((fast.answer_tokens, fast.ended), (slow.answer_tokens, slow.ended));
    assert_eq!((slow.guessed_tokens, slow.confirmed_tokens), (0, 0));
    assert!(fast.confirmed_tokens <= fast.guessed_tokens && fast.confirmed_tokens <= fast.answer_tokens);
    fast.confirmed_tokens
}

#[test]
fn guesses_change_the_speed_and_not_the_answer() {
    let mut confirmed = 0;
    for format in [0, 2, 3, 8, 12, 14] {
        let engine = toy(format);
        let prompt = engine.encode(&"let a = the(b); let c = the(d); ".repeat(6), false);
        for temperature in [0.0, 0.9] {
            let sampling = Sampling { temperature, seed: u64::from(format), ..Sampling::default() };
            confirmed += check_guesses(&engine, &prompt, sampling);
        }
    }
    assert!(confirmed > 50, "only {confirmed} guesses were right");
    let engine = weights::engine();
    let text = "fn area(width: u32, height: u32) -> u32 {\n    width * height\n}\n";
    let question = format!("Repeat this code exactly, twice:\n```rust\n{text}```");
    let prompt = engine.encode_chat(&[Message::new(Role::User, &question)]).unwrap();
    assert!(check_guesses(&engine, &prompt, Sampling::default()) > 10);
}

fn user(text: &str) -> PromptEntry {
    PromptEntry::User { parts: vec![Part::text(text)] }
}

async fn read(model: &LocalModel, prompt: Prompt) -> (String, Tokens) {
    let (mut text, mut tokens, mut stream) = (String::new(), Tokens::default(), model.stream(prompt));
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::BlockDelta { text: piece, .. } => text.push_str(&piece),
            ModelEvent::Usage(usage) => tokens = usage,
            ModelEvent::Waiting { .. }
            | ModelEvent::Warning { .. }
            | ModelEvent::ImagesRefused
            | ModelEvent::BlockStarted { .. }
            | ModelEvent::BlockEnded { .. }
            | ModelEvent::Ended { .. } => {}
        }
    }
    (text, tokens)
}

#[tokio::test]
async fn an_answer_is_json_of_its_schema() {
    let model = LocalModel::new("smollm2-135m", weights::path(), Limits::default());
    let schema = json!({
        "type": "object",
        "properties": {
            "color": {"enum": ["red", "green", "blue"]}, "count": {"type": "integer"}, "warm": {"type": "boolean"},
            "parts": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3},
        },
        "required": ["color", "count", "warm", "parts"],
    });
    for question in ["Describe an apple.", "Tell me a long story about the sea, please!"] {
        let prompt = Prompt {
            entries: vec![user(question)],
            output_schema: Some(schema.clone()),
            ..Prompt::default()
        };
        let events: Vec<_> = model.stream(prompt.clone()).collect().await;
        let warns = |event: &Result<ModelEvent, _>| matches!(event, Ok(ModelEvent::Warning { .. }));
        assert!(!events.iter().any(warns), "words beside the JSON: {events:?}");
        let (text, tokens) = read(&model, prompt).await;
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(["red", "green", "blue"].contains(&value["color"].as_str().unwrap()), "{text}");
        assert!(value["count"].is_i64() && value["warm"].is_boolean(), "{text}");
        assert!((2..=3).contains(&value["parts"].as_array().unwrap().len()), "{text}");
        assert!(tokens.output < 200, "{tokens:?}");
    }
}

/// Weights that know nothing of calls write one, because nothing else is allowed.
#[test]
fn a_call_that_has_begun_is_a_call_of_a_known_tool() {
    let engine = weights::engine();
    let tool = |name: &str, schema: Value| ToolSpec { input_schema: schema, ..tool_named(name) };
    let choice = json!({"type": "object", "properties": {"kind": {"enum": ["x", "y"]}, "deep": {"type": "boolean"}}, "required": ["kind", "deep"]});
    let tools = [tool("pick", choice.clone()), tool("point", choice)];
    // Only a call fits this schema.
    let schema = json!({"const": "\u{1}unlikely"});
    let prompt = engine.encode_chat(&[Message::new(Role::User, "Pick one.")]).unwrap();
    let options = AnswerOptions::new(200, Sampling::default()).with_rules(&tools, Some(&schema), false);
    let (text, _) = answer(&engine, &prompt, options);
    if let Some(call) =
        text.strip_prefix("<tool_call>").and_then(|rest| rest.trim_end().strip_suffix("</tool_call>"))
    {
        let call: Value = serde_json::from_str(call).unwrap();
        assert!(["eca__pick", "eca__point"].contains(&call["name"].as_str().unwrap()), "{call}");
        assert!(call["arguments"]["deep"].is_boolean() && call["arguments"]["kind"].is_string(), "{call}");
    } else {
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), schema["const"], "{text}");
    }
}

fn tool_named(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        description: "Does something with a thing. ".repeat(8),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        effect: ToolEffect::Reads,
    }
}

fn write_toy(path: &Path, fills_middle: bool) {
    let template = include_str!("../../recorded/tools.jinja");
    let toy = Toy {
        architecture: "qwen2",
        template: Some(template),
        context: 4096,
        fills_middle,
        ..Toy::default()
    };
    std::fs::write(path, toy.file().bytes()).unwrap();
}

fn open(path: &Path) -> LocalModel {
    LocalModel::new("toy", path, Limits { window: 4096, threads: 1 })
}

fn saved_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Waits for the worker, which saves after the end of the answer: the next answer comes after that.
async fn settle(model: &LocalModel) {
    read(model, Prompt { entries: vec![user("x")], max_output: Some(1), ..Prompt::default() }).await;
}

#[tokio::test]
async fn a_new_chat_begins_with_what_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toy.gguf");
    write_toy(&path, false);
    let chat = |question: &str, has_own_instructions: bool| Prompt {
        system: vec!["Be brief and help.".into()],
        has_own_instructions,
        tools: vec![tool_named("look"), tool_named("write")].into(),
        entries: vec![user(question)],
        max_output: Some(6),
        ..Prompt::default()
    };
    let saved = folder.path().join("toy.prefixes");
    let model = open(&path);
    // Instructions of somebody else are not kept.
    let (_, first) = read(&model, chat("one", false)).await;
    settle(&model).await;
    assert!(first.cache_read == 0 && saved_files(&saved).is_empty());
    let (expected, again) = read(&model, chat("two", true)).await;
    settle(&model).await;
    assert!(again.input > 256, "{again:?}");
    let files = saved_files(&saved);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(platform::mode_of(&std::fs::metadata(&files[0]).unwrap()) & 0o077, 0);
    // Another process, another chat: the beginning is there, and the answer is the same.
    let (text, tokens) = read(&open(&path), chat("two", true)).await;
    assert!(
        tokens.cache_read >= 256 && tokens.cache_read + tokens.input == again.cache_read + again.input,
        "{tokens:?}"
    );
    assert_eq!(text, expected);
    // A damaged file is not used.
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    let (text, tokens) = read(&open(&path), chat("two", true)).await;
    assert_eq!((text, tokens.cache_read), (expected, 0));
    remove_saved_prefixes(&path).unwrap();
    assert!(!saved.exists());
    remove_saved_prefixes(&path).unwrap();
}

#[tokio::test]
async fn a_middle_is_filled_from_as_much_text_as_a_second_allows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toy.gguf");
    write_toy(&path, true);
    let model = open(&path);
    assert!(model.info().fills_middle);
    let middle = |typed: &str| Middle {
        path: None,
        before: format!("{}{typed}", "let a = b;\n".repeat(2000)),
        after: "let c = d;\n".repeat(500),
    };
    let fill = |typed: &str| Prompt { middle: Some(middle(typed)), max_output: Some(8), ..Prompt::default() };
    let (_, first) = read(&model, fill("let x = ")).await;
    assert!((96..=192).contains(&first.input) && first.output <= 8, "{first:?}");
    // The text before the cursor stays, so it is not read again.
    let (_, second) = read(&model, fill("let x = ")).await;
    let (_, third) = read(&model, fill("let x = y")).await;
    assert!(second.input <= 4096 && third.cache_read > 0, "{second:?} {third:?}");
    let plain = folder.path().join("plain.gguf");
    write_toy(&plain, false);
    assert!(!open(&plain).info().fills_middle);
}
