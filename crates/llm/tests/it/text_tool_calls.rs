//! Calls in the text of local models: which are made real, and which must stay text.

use std::sync::Arc;

use domain::ToolSpec;
use domain::model::{BlockKind, ModelEvent, Prompt, PromptEntry, StopReason};
use llm::Api;
use llm::format::{Dialect, Events, Target};
use rpc::sse::SseEvent;
use serde_json::{Value, json};

use crate::support::{entries, info, tool, with_target};

fn tools() -> Arc<[ToolSpec]> {
    let shaped = |server: &str, name: &str, properties: Value, required: Value| ToolSpec {
        input_schema: json!({"type": "object", "properties": properties, "required": required}),
        ..tool(server, name)
    };
    Arc::from(vec![
        shaped(
            "eca",
            "read_file",
            json!({"path": {"type": "string"}, "line": {"type": "integer"}}),
            json!(["path"]),
        ),
        shaped(
            "eca",
            "write_file",
            json!({"path": {"type": "string"}, "content": {"type": "string"}}),
            json!(["path", "content"]),
        ),
        shaped(
            "eca",
            "shell",
            json!({"command": {"type": "string"}, "background": {"type": "boolean"}}),
            json!(["command"]),
        ),
        shaped("eca", "list", json!({}), json!([])),
        shaped("git", "list", json!({}), json!([])),
        shaped("my server", "do.it", json!({"n": {"type": "array"}}), json!([])),
    ])
}

/// The events of an answer whose text comes in these pieces.
fn answer(pieces: &[&str]) -> Vec<ModelEvent> {
    let prompt = Prompt { tools: tools(), ..Prompt::default() };
    let dialect = Dialect { text_tool_calls: true, ..Dialect::PLAIN };
    let info = info();
    let mut decoder = with_target(Api::OpenAiChat, "fake/model", |target| {
        Api::OpenAiChat.decoder(&prompt, &Target { dialect, info: &info, ..target.clone() })
    });
    let mut out = Events::new();
    let mut send = |data: String| decoder.push(SseEvent { name: "", data: &data }, &mut out).unwrap();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        send(json!({"choices": [{"delta": {"content": piece}}]}).to_string());
    }
    send(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}).to_string());
    send("[DONE]".to_owned());
    out.into()
}

/// The answer as a person would tell it: text, thoughts, and one line for each call.
fn told(events: &[ModelEvent]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for entry in entries(events) {
        lines.push(match entry {
            PromptEntry::Agent { text, .. } => text,
            PromptEntry::Reasoning { text, .. } => format!("(thought) {text}"),
            PromptEntry::Call { name, input, .. } => format!("(call) {name} {input}"),
            PromptEntry::User { .. } | PromptEntry::Result { .. } => unreachable!(),
        });
    }
    let calls = events
        .iter()
        .any(|event| matches!(event, ModelEvent::BlockStarted { kind: BlockKind::ToolCall { .. }, .. }));
    let reason = if calls { StopReason::ToolCalls } else { StopReason::Done };
    assert_eq!(events.last(), Some(&ModelEvent::Ended { reason }));
    lines.join("\n")
}

/// However the text is cut, it becomes the same.
fn check(text: &str, expected: &str) {
    assert_eq!(told(&answer(&[text])), expected, "of {text:?}");
    // Every place at full scale, every third otherwise.
    let full = std::env::var("DRAGOMAN_TEST_SCALE").is_ok_and(|scale| scale != "1");
    for (cut, _) in text.char_indices().step_by(if full { 1 } else { 3 }) {
        assert_eq!(told(&answer(&[&text[..cut], &text[cut..]])), expected, "of {text:?} cut at {cut}");
    }
    let single: Vec<String> = text.chars().map(String::from).collect();
    let single: Vec<&str> = single.iter().map(String::as_str).collect();
    assert_eq!(told(&answer(&single)), expected, "of {text:?} char by char");
}

const READ: &str = r#"(call) eca__read_file {"path":"a"}"#;
const LIST: &str = "(call) eca__list {}";

#[test]
fn calls_in_many_notations_are_made_real() {
    let samples = [
        // tags with JSON
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}}</tool_call>"#,
        "<tool_call>\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call><|im_end|>",
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}}"#,
        r#"<tool_call>{"name": "eca__read_file", "parameters": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "args": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "input": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"tool": "eca__read_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"tool_name": "eca__read_file", "params": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"arguments": {"path": "a"}, "name": "eca__read_file"}</tool_call>"#,
        r#"<tool_call>{"id": "c1", "type": "function", "function": {"name": "eca__read_file", "arguments": {"path": "a"}}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": "{\"path\": \"a\"}"}</tool_call>"#,
        r#"<tool_call>{"name": "functions.eca__read_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>[{"name": "eca__read_file", "arguments": {"path": "a"}}]</tool_call>"#,
        r#"<tool_calls>[{"name": "eca__read_file", "arguments": {"path": "a"}}]</tool_calls>"#,
        r#"<tool_calls><tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}}</tool_call></tool_calls>"#,
        r#"<toolcall>{"name": "eca__read_file", "arguments": {"path": "a"}}</toolcall>"#,
        r#"<function_call>{"name": "eca__read_file", "arguments": {"path": "a"}}</function_call>"#,
        r#"<functioncall> {"name": "eca__read_file", "arguments": '{"path": "a"}'} </functioncall>"#,
        r#"<tools>{"name": "eca__read_file", "arguments": {"path": "a"}}</tools>"#,
        r#"<|tool_call|>{"name": "eca__read_file", "arguments": {"path": "a"}}<|/tool_call|>"#,
        r#"<|tool_call|>[{"name": "eca__read_file", "arguments": {"path": "a"}}]"#,
        r#"<|tool_call_start|>[{"name": "eca__read_file", "arguments": {"path": "a"}}]<|tool_call_end|>"#,
        r#"<|python_tag|>{"name": "eca__read_file", "parameters": {"path": "a"}}<|eom_id|>"#,
        r#"<|python_tag|>{"type": "function", "name": "eca__read_file", "parameters": {"path": "a"}}"#,
        r#"[TOOL_CALLS][{"name": "eca__read_file", "arguments": {"path": "a"}}]"#,
        r#"[TOOL_CALLS] [{"name": "eca__read_file", "arguments": {"path": "a"}, "id": "x12345678"}]</s>"#,
        r#"[TOOL_CALLS]eca__read_file[ARGS]{"path": "a"}"#,
        "[TOOL_REQUEST]\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n[END_TOOL_REQUEST]",
        r#"[TOOL_CALL]{"name": "eca__read_file", "arguments": {"path": "a"}}[/TOOL_CALL]"#,
        // JSON as models write it
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a",}}</tool_call>"#,
        r#"<tool_call>{'name': 'eca__read_file', 'arguments': {'path': 'a'}}</tool_call>"#,
        r#"<tool_call>{name: "eca__read_file", arguments: {path: "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "\u0061"}}</tool_call>"#,
        // tags for the name or the parameters
        r#"<function=eca__read_file>{"path": "a"}</function>"#,
        r#"<function="eca__read_file">{"path": "a"}</function>"#,
        "<function=eca__read_file>\n<parameter=path>\na\n</parameter>\n</function>",
        "<tool_call>\n<function=eca__read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
        r#"<invoke name="eca__read_file"><parameter name="path">a</parameter></invoke>"#,
        "<function_calls>\n<invoke name=\"eca__read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>",
        "<minimax:tool_call>\n<invoke name=\"eca__read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>",
        r#"<function name="eca__read_file"><parameter name="path">a</parameter></function>"#,
        r#"<tool_call name="eca__read_file">{"path": "a"}</tool_call>"#,
        "<tool_call>eca__read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.eca__read_file:0<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>"#,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>eca__read_file\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        r#"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>eca__read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"#,
        // fences and bare objects
        "```json\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "```tool_call\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
        "```\n{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n```\n",
        "```json\n{\n  \"name\": \"eca__read_file\",\n  \"arguments\": {\n    \"path\": \"a\"\n  }\n}\n```",
        "```xml\n<tool_call>{\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n```",
        r#"{"name": "eca__read_file", "arguments": {"path": "a"}}"#,
        "\n  {\"name\": \"eca__read_file\", \"arguments\": {\"path\": \"a\"}}\n",
        r#"[{"name": "eca__read_file", "arguments": {"path": "a"}}]"#,
        r#"{"tool_calls": [{"function": {"name": "eca__read_file", "arguments": {"path": "a"}}}]}"#,
    ];
    assert!(samples.len() >= 50);
    for sample in samples {
        let expected = if sample.starts_with("\n  {") { format!("\n  \n{READ}") } else { READ.to_owned() };
        check(sample, &expected);
    }
    // What the model says before stays, several calls are several, a made-up result is not believed.
    let call = r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}}</tool_call>"#;
    check(&format!("I will read.\n{call}"), &format!("I will read.\n\n{READ}"));
    check(&format!("Two:\n{call}\n{call}"), &format!("Two:\n\n{READ}\n{READ}"));
    check(&format!("{call}\n<tool_response>\nfn main\n</tool_response>"), READ);
    check(r#"<tool_call>{"name": "eca__list"}</tool_call>"#, LIST);
    check(r#"<tool_call>{"name": "eca__list", "arguments": null}</tool_call>"#, LIST);
    check("<function=eca__list></function>", LIST);
    check(
        "<function=eca__shell>\n<parameter=command>\nls \"x\" && echo <b>\n</parameter>\n<parameter=background>\ntrue\n</parameter>\n</function>",
        r#"(call) eca__shell {"command":"ls \"x\" && echo <b>","background":true}"#,
    );
    check(
        "<tool_call>{\"name\": \"eca__write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"one\ntwo </tool_call> ```\n\"}}</tool_call>",
        r#"(call) eca__write_file {"path":"a","content":"one\ntwo </tool_call> ```\n"}"#,
    );
    check(
        r#"<tool_call>{"name": "do.it", "arguments": {"n": [1, 2,]}}</tool_call>"#,
        r#"(call) my server__do.it {"n":[1,2]}"#,
    );
}

#[test]
fn what_is_not_surely_a_call_stays_text() {
    let samples = [
        // names that no tool has, or that two have
        r#"<tool_call>{"name": "eca__delete_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_files", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "Eca__Read_File", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca_read_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "list", "arguments": {}}</tool_call>"#,
        r#"<tool_call>{"name": "", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": 7, "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"arguments": {"path": "a"}}</tool_call>"#,
        r#"<function=rm_rf>{"path": "a"}</function>"#,
        r#"<invoke name="eca__readfile"><parameter name="path">a</parameter></invoke>"#,
        "<tool_call>shell_exec\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        // one good call and one bad
        "<tool_call>{\"name\": \"eca__list\"}</tool_call>\n<tool_call>{\"name\": \"nope\"}</tool_call>",
        r#"<tool_calls>[{"name": "eca__list"}, {"name": "nope"}]</tool_calls>"#,
        "<tool_call>{\"name\": \"eca__list\"}</tool_call>\n<tool_call>{\"name\": \"eca__read_file\", \"argum",
        // inputs that are cut short, of the wrong kind, or do not fit
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a""#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}"#,
        r#"<tool_call>{"name": "eca__write_file", "arguments": {"path": "a", "content": "half of a fi"#,
        r#"<tool_call>{"name": "eca__write_file", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": ["a"]}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": "a"}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": 1}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": "{\"path\": "}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a", "mode": "w"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a"}, "path": "b"}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "name": "eca__shell", "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file", "arguments": {"path": "a", "path": "b"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__read_file" "arguments": {"path": "a"}}</tool_call>"#,
        r#"<tool_call>{"name": "eca__shell", "tool": "eca__list", "arguments": {"command": "a"}}</tool_call>"#,
        r#"<tool_call>{"function": {"name": "eca__list"}, "name": "eca__shell"}</tool_call>"#,
        "<function=eca__read_file>\n<parameter=path>\na\n",
        "<function=eca__read_file>\n<parameter=path>\na\n</parameter>\n<parameter=path>\nb\n</parameter>\n</function>",
        "<function=eca__read_file>\n<parameter=line>\nten\n</parameter>\n<parameter=path>\na\n</parameter>\n</function>",
        "<function=eca__shell>\n<parameter=background>\ntrue false\n</parameter>\n<parameter=command>\na\n</parameter>\n</function>",
        "<function=eca__read_file>path=a</function>",
        "<invoke name=eca__read_file><parameter name=\"path\">a</parameter></invoke>",
        "<tool_call>eca__read_file\n<arg_key>path</arg_key>\n</tool_call>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>eca__read_file\n```json\n{\"path\": \"a\"",
        r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.eca__read_file:0<|tool_call_argument_begin|>{"path""#,
        // tags that do not close what they opened
        r#"<tool_call>{"name": "eca__list"}</function_call>"#,
        r#"<function=eca__read_file>{"path": "a"}</invoke> and more"#,
        "<tool_call></tool_call>",
        "<tool_call>",
        "<tool_calls>[]</tool_calls>",
        // calls that are talked about
        r#"To read, write <tool_call>{"name": "eca__list", "arguments": {}}</tool_call>"#,
        "<tool_call>{\"name\": \"eca__list\"}</tool_call>\nThat is how a call looks.",
        "Like this:\n<tool_call>{\"name\": \"eca__list\"}</tool_call>\nDo you see?",
        "```json\n{\"name\": \"eca__list\", \"arguments\": {}}\n```\nThis is an example.",
        "Example:\n```python\n<tool_call>{\"name\": \"eca__list\"}</tool_call>\n```",
        "```rust\nlet a = 1;\n{\"name\": \"eca__list\"}\n```",
        "`<tool_call>{\"name\": \"eca__list\"}</tool_call>`",
        "- <tool_call>{\"name\": \"eca__list\"}</tool_call>",
        "The object {\"name\": \"eca__list\", \"arguments\": {}}",
        "Here:\n{\"name\": \"eca__list\", \"arguments\": {}}",
        // data that only looks like calls
        r#"{"name": "Ada", "arguments": {"age": 36}}"#,
        r#"{"name": "eca__list", "version": "1.0"}"#,
        r#"{"title": "x", "name": "eca__list"}"#,
        r#"{"type": "object", "properties": {}}"#,
        r#"[{"name": "Ada"}, {"name": "Bob"}]"#,
        "[1, 2, 3]",
        "[ ] a task\n[x] done",
        "{ not json",
        "<div>html</div>",
        "<tool>hammer</tool>",
        "<toolbox>",
        "<t",
        "``",
        "```",
        "```json\n{\"a\": 1}\n```",
        "```json\n[1]\n```",
        "a < b\n<c> d",
        "",
    ];
    assert!(samples.len() >= 70);
    for sample in samples {
        check(sample, sample);
    }
}

#[test]
fn thinking_in_tags_is_shown_as_thinking() {
    check("<think>Hm.</think>Yes.", "(thought) Hm.\nYes.");
    check("<think>\nHm.\nSo.\n</think>\n\nYes.", "(thought) Hm.\nSo.\nYes.");
    check("\n<thinking>a < b</thinking> ok", "(thought) a < b\nok");
    check("<think></think>Yes.", "Yes.");
    check("<think>never closed", "(thought) never closed");
    check("Say <think>x</think>", "Say <think>x</think>");
    check("<thin", "<thin");
    let call = r#"<tool_call>{"name": "eca__list"}</tool_call>"#;
    check(&format!("<think>I list {call}.</think>{call}"), &format!("(thought) I list {call}.\n{LIST}"));
}

#[test]
fn a_stream_that_breaks_makes_no_call() {
    let prompt = Prompt { tools: tools(), ..Prompt::default() };
    let dialect = Dialect { text_tool_calls: true, ..Dialect::PLAIN };
    let info = info();
    let mut decoder = with_target(Api::OpenAiChat, "fake/model", |target| {
        Api::OpenAiChat.decoder(&prompt, &Target { dialect, info: &info, ..target.clone() })
    });
    let mut out = Events::new();
    let text = r#"<tool_call>{"name": "eca__list"}</tool_call>"#;
    let chunk = json!({"choices": [{"delta": {"content": text}}]}).to_string();
    decoder.push(SseEvent { name: "", data: &chunk }, &mut out).unwrap();
    assert!(out.is_empty(), "a call that has opened is held: {out:?}");
    assert!(!decoder.finish(&mut out));
    let events: Vec<_> = out.into();
    assert_eq!(crate::support::text_of(&events), text);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, ModelEvent::BlockStarted { kind: BlockKind::ToolCall { .. }, .. }))
    );
}
