//! Toy files of each architecture and of the two formats most files come in, against llama.cpp on the same bytes (see
//! `recorded/record_toys.py`): the same tokens for a text, the same next token at each step, and nearly the same odds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::item::Part;
use domain::model::{Model, ModelEvent, Prompt, PromptEntry};
use domain::tool::{ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use futures_util::StreamExt;
use local_model::{Engine, Limits, LocalModel, Message, RequestedCall, Role, Session};
use serde_json::{Value, json};

use crate::synthetic::Toy;

const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];
/// Name, format of most matrices, format of the others, and an exponent that keeps the weights as small as real ones.
const FORMATS: [(&str, u32, Option<u32>, u16); 3] =
    [("f32", 0, None, 0), ("q8_0", 8, None, 4), ("q4_k_m", 12, Some(14), 2)];
/// Both engines round activations to eight bits, in different ways; a lead below this is a tie.
const TIE: f64 = 0.4;

fn toys() -> Vec<(String, Toy)> {
    let mut toys = Vec::new();
    for architecture in ARCHITECTURES {
        for (name, format, other_format, exponent) in FORMATS {
            let toy = Toy {
                embedding: 256,
                feed_forward: 256,
                heads: 4,
                key_heads: 2,
                format,
                other_format,
                architecture,
                exponent,
                ..Toy::default()
            };
            toys.push((format!("{architecture}-{name}"), toy));
        }
    }
    toys
}

#[test]
fn toys_answer_as_llama_cpp_does() {
    let recorded: Value = serde_json::from_str(include_str!("../../recorded/toys.json")).unwrap();
    let stop = AtomicBool::new(false);
    for (name, toy) in toys() {
        let engine = Arc::new(Engine::read(Arc::new(toy.file().bytes())).unwrap());
        let mut session = Session::new(engine.clone(), Limits::default());
        let cases = recorded["toys"][&name].as_array().unwrap_or_else(|| panic!("{name} is not recorded"));
        assert!(cases.len() >= 3);
        let (mut same, mut total, mut farthest) = (0, 0, 0f64);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let mut tokens = engine.encode(text, false);
            assert_eq!(json!(tokens), case["tokens"], "{name}: tokens of {text:?}");
            for (step, chosen) in case["steps"].as_array().unwrap().iter().enumerate() {
                let theirs = chosen["token"].as_u64().unwrap() as usize;
                let logits = session.logits(&tokens, &stop).unwrap().unwrap();
                let ours = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
                let behind = f64::from(logits[ours] - logits[theirs]);
                let place =
                    format!("{name} {text:?} step {step}: {ours}, llama.cpp {chosen}, {behind} behind");
                assert!(
                    behind < TIE && chosen["lead"].as_f64().is_none_or(|lead| behind < lead.max(TIE)),
                    "{place}"
                );
                // The server tells no odds of a token that is a part of a letter.
                let far = chosen["logprob"]
                    .as_f64()
                    .map_or(0.0, |theirs_odds| (odds(&logits, theirs) - theirs_odds).abs());
                assert!(far < TIE, "{place}: the odds are {far} apart");
                farthest = farthest.max(far);
                same += usize::from(ours == theirs);
                total += 1;
                tokens.push(theirs as u32);
            }
        }
        println!("{name}: {same} of {total} tokens are the same, odds at most {farthest:.4} apart");
        assert!(same * 100 >= total * 80, "{name}: only {same} of {total} tokens are the same");
    }
}

/// The logarithm of the probability of a token.
fn odds(logits: &[f32], token: usize) -> f64 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - best).exp()).sum();
    f64::from(logits[token] - best) - sum.ln()
}

fn read_file() -> ToolSpec {
    ToolSpec {
        name: "read_file".to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        description: "Reads a file's text.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        }),
        effect: ToolEffect::Reads,
    }
}

#[test]
fn a_chat_with_tools_is_rendered_as_its_template_says() {
    let template = include_str!("../../recorded/tools.jinja");
    let toy = Toy { architecture: "qwen3", template: Some(template), ..Toy::default() };
    let engine = Engine::read(Arc::new(toy.file().bytes())).unwrap();
    assert!(engine.offers_tools());
    let call = |arguments: Value| RequestedCall { name: "eca__read_file".to_owned(), arguments };
    let calls = vec![call(json!({"path": "a.txt", "limit": 3})), call(json!({"path": "b.txt"}))];
    let messages = [
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "Read a.txt, then b.txt."),
        Message { calls, ..Message::new(Role::Assistant, "First both.") },
        Message::new(Role::Tool, "line \"one\""),
        Message::new(Role::Tool, "zwei <ü>"),
        Message::new(Role::Assistant, "Done."),
        Message::new(Role::User, "Thanks."),
    ];
    let tokens = engine.encode_chat_with(&messages, &[read_file()]).unwrap();
    let recorded: Value = serde_json::from_str(include_str!("../../recorded/toys.json")).unwrap();
    let expected: Vec<u32> = serde_json::from_value(recorded["chat"].clone()).unwrap();
    assert_eq!(engine.decode(&tokens), engine.decode(&expected));
    assert_eq!(tokens, expected);
    assert!(!Engine::read(Arc::new(Toy::default().file().bytes())).unwrap().offers_tools());
}

/// Writes the files for `recorded/record_toys.py`.
#[test]
#[ignore = "writes the files that llama.cpp is asked about"]
fn write_toys() {
    let folder = std::path::PathBuf::from(std::env::var("DRAGOMAN_TOYS").expect("a folder in DRAGOMAN_TOYS"));
    for (name, toy) in toys() {
        std::fs::write(folder.join(format!("{name}.gguf")), toy.file().bytes()).unwrap();
    }
}

#[tokio::test]
async fn a_file_with_tools_is_listed_with_them_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toy.gguf");
    let template = include_str!("../../recorded/tools.jinja");
    let toy = Toy { architecture: "qwen2", template: Some(template), ..Toy::default() };
    std::fs::write(&path, toy.file().bytes()).unwrap();
    let model = LocalModel::new("toy", &path, Limits { window: 4096, threads: 1 });
    let info = model.info();
    assert!(info.tools && info.context_limit == Some(512), "{info:?}");
    let entries = vec![
        PromptEntry::User { parts: vec![Part::text("Read.")] },
        PromptEntry::Call {
            call_id: "1".to_owned(),
            name: "eca__read_file".to_owned(),
            input: json!({"path": "a"}),
            provider: None,
        },
        PromptEntry::Result {
            call_id: "1".to_owned(),
            name: "eca__read_file".to_owned(),
            parts: vec![Part::text("text")],
            error: false,
        },
    ];
    // The window of the toy has no room for the descriptions of nine tools.
    let short = Prompt { entries: entries.clone(), max_output: Some(4), ..Prompt::default() };
    let events: Vec<_> = model.stream(short).collect().await;
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Ended { .. }))), "{events:?}");
    let question = entries[..1].to_vec();
    let tools = vec![read_file(); 9].into();
    let long = Prompt { entries, tools, ..Prompt::default() };
    let events: Vec<_> = model.stream(long.clone()).collect().await;
    let failure = events.last().unwrap().as_ref().unwrap_err().to_string();
    assert!(failure.contains("tokens long"), "a result is not lost in silence: {failure}");
    let events: Vec<_> =
        model.stream(Prompt { entries: question, max_output: Some(4), ..long }).collect().await;
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Ended { .. }))), "{events:?}");
    let warns = |event: &Result<ModelEvent, _>| matches!(event, Ok(ModelEvent::Warning { text }) if text.contains("no room for tools"));
    assert!(events.iter().any(warns), "{events:?}");
}
