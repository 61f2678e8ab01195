//! What a person approves is shown with every character visible, and what "for this session" covers is said exactly, in
//! every front-end.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::Editor;
use crate::client::{Client, Home, contents, fake_provider, is_finished};
use crate::eca_mcp;
use crate::lines::LineClient;

/// A carriage return, a title of a terminal, a reversal, a character without width, and a control of the upper range.
const HIDING: &str = "\r\u{1b}]0;x\u{7}\u{202e}\u{200b}\u{9b}2J\u{feff}";
/// The same as it must be shown.
const SHOWN: &str = "\\r\\u{1b}]0;x\\u{7}\\u{202e}\\u{200b}\\u{9b}2J\\u{feff}";

fn hides(text: &str) -> bool {
    let is_hidden = |char: char| {
        (char.is_control() && char != '\n' && char != '\t')
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().any(is_hidden)
}

/// Every text of a message, names included.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| std::iter::once(name.clone()).chain(texts(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Calls whose text hides something: a command, a change, a path, the arguments of a server.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("eca__shell_command", json!({"command": format!("touch a {HIDING}; touch ran")})),
        ("eca__write_file", json!({"path": "new.txt", "content": format!("one\n{HIDING}two\n")})),
        ("eca__edit_file", json!({"path": "old.txt", "original_content": "x", "new_content": HIDING})),
        ("eca__write_file", json!({"path": format!("n{HIDING}.txt"), "content": "one\n"})),
        ("eca__move_file", json!({"source": "old.txt", "destination": format!("m{HIDING}.txt")})),
        ("good__echo", json!({"text": HIDING, format!("n{HIDING}"): [HIDING]})),
    ]
}

#[tokio::test]
async fn an_approval_over_eca_hides_nothing() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/old.txt", "x\n");
    let config = eca_mcp::config(&home, fake.url(), &[("good", "good")]);
    let mut client = Client::start(&home, &config).await;
    client.until(|it| eca_mcp::is_server(it, "good", "running")).await;
    for (tool, input) in calls() {
        fake.answer(Answer::tool_call("c", tool, input)).answer(Answer::text("ok"));
        client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
        let until_run = client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await;
        let mut shown = contents(&until_run);
        let run = shown.last().expect("a call")["content"].clone();
        assert_eq!(run["manualApproval"], true, "{tool}");
        client.notify("chat/toolCallReject", json!({"chatId": "c", "toolCallId": run["id"]})).await;
        shown.extend(contents(&client.until(is_finished).await));
        for text in shown.iter().flat_map(texts) {
            assert!(!hides(&text), "{tool}: {text:?}");
        }
        assert!(texts(&run).iter().any(|text| text.contains(SHOWN)), "{tool}: {run:#}");
    }
    assert!(!home.workspace().join("ran").exists());
    client.end().await;
}

#[tokio::test]
async fn an_approval_over_acp_hides_nothing_and_says_what_is_remembered() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/old.txt", "x\n");
    let config = eca_mcp::config(&home, fake.url(), &[("good", "good")]);
    let mut editor = Editor::start(&home, &config, json!({})).await;
    for (tool, input) in calls() {
        editor.asked.clear();
        editor.choices.push_back("reject_once");
        // The server may still be starting.
        for _ in 0..300 {
            fake.answer(Answer::tool_call("c", tool, input.clone())).answer(Answer::text("ok"));
            editor.say("go").await;
            if !editor.asked.is_empty() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let (_, question) = editor.asked.first().cloned().unwrap_or_else(|| panic!("{tool} was not asked"));
        for text in texts(&question).into_iter().chain(editor.updates.iter().flat_map(texts)) {
            assert!(!hides(&text), "{tool}: {text:?}");
        }
        assert!(texts(&question).iter().any(|text| text.contains(SHOWN)), "{tool}: {question:#}");
    }
    // The option that remembers says exactly what.
    let mut name_of = async |tool: &str, input: Value| {
        editor.asked.clear();
        editor.choices.push_back("reject_once");
        fake.answer(Answer::tool_call("c", tool, input)).answer(Answer::text("ok"));
        editor.say("go").await;
        let question = editor.asked.first().expect("a question").1.clone();
        let options = question["options"].as_array().cloned().unwrap_or_default();
        let option = options.into_iter().find(|it| it["kind"] == "allow_always");
        (option.map(|it| it["name"].as_str().unwrap_or_default().to_owned()), question.to_string())
    };
    for (tool, input, expected) in [
        ("eca__shell_command", json!({"command": "rm a.txt"}), "Allow rm a.txt for this session"),
        ("eca__shell_command", json!({"command": "npm test -- x"}), "Allow npm test … for this session"),
        (
            "eca__write_file",
            json!({"path": "b.txt", "content": "x"}),
            "Allow write_file in this workspace for this session",
        ),
        ("good__echo", json!({"text": "x"}), "Allow good__echo … for this session"),
        ("good__echo", json!({"text": "x", "path": "a"}), "Allow good__echo path=\"a\" … for this session"),
    ] {
        assert_eq!(name_of(tool, input).await.0.as_deref(), Some(expected), "{tool}");
    }
    let long = "x".repeat(150);
    let line = format!("cp {long}a b && cp {long}c d");
    let (name, question) = name_of("eca__shell_command", json!({"command": line})).await;
    assert_eq!(name.as_deref(), Some("Allow the 2 listed above for this session"));
    assert!(
        question.contains(&format!("cp {long}a b")) && question.contains(&format!("cp {long}c d")),
        "{question}"
    );
    let (name, question) = name_of("eca__shell_command", json!({"command": "x=rm; $x a"})).await;
    assert_eq!(name, None, "{question}");
    assert!(editor.client.end().await.success());
}

/// A client of the draft protocol applies a proposal by itself, so one that hides something is shown as a diff instead.
#[tokio::test]
async fn a_proposal_of_the_draft_hides_nothing() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/old.txt", "x\n");
    let large = "long line of text\n".repeat(20_000);
    home.write("work/large.txt", &large);
    let draft = json!({"codeAssistant": {"chat": true, "doc": true, "edit": true, "fix": true}});
    let mut client = Client::spawn(&home, &fake_provider(fake.url(), "openai-chat"));
    client.initialize(&home, draft).await;
    let is_complete = |message: &Value| message["params"]["isComplete"] == true;
    let mut proposed = async |tool: &str, input: Value| {
        fake.answer(Answer::tool_call("c", tool, input)).answer(Answer::text("done"));
        client.ask("chat/prompt", json!({"message": "go", "context": []})).await;
        client.until(is_complete).await
    };
    for (tool, input) in calls().into_iter().filter(|(tool, _)| tool.starts_with("eca__")) {
        let messages = proposed(tool, input).await;
        let received = messages.iter().filter(|it| it["method"] == "chat/contentReceived");
        let all: Vec<String> = received.flat_map(texts).collect();
        assert!(all.iter().all(|text| !hides(text)), "{tool}: {all:?}");
        assert!(
            !messages.iter().any(|it| it["params"]["content"]["type"] == "fileChange"),
            "{tool}: {all:?}"
        );
        let is_change = matches!(tool, "eca__write_file" | "eca__edit_file");
        // A diff shows a carriage return at the end of a line.
        let shown = &SHOWN[2..];
        assert_eq!(all.iter().any(|text| text.contains(shown)), is_change, "{tool}: {all:?}");
    }
    // A file whose text is too large to be proposed is not proposed as an empty one.
    let input = json!({"path": "large.txt", "content": large.replacen("long", "short", 1)});
    proposed("eca__read_file", json!({"path": "large.txt"})).await;
    let messages = proposed("eca__write_file", input).await;
    let changes: Vec<&Value> =
        messages.iter().filter(|it| it["params"]["content"]["type"] == "fileChange").collect();
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("large.txt")).expect("the file"), large);
    client.end().await;
}

/// `threads` has no approvals: such a call is refused, and nothing of it is shown.
#[tokio::test]
async fn threads_run_nothing_that_hides_something() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for (tool, input) in calls().into_iter().filter(|(tool, _)| *tool == "eca__shell_command") {
        fake.answer(Answer::tool_call("c", tool, input));
    }
    fake.answer(Answer::text("Done."));
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = LineClient::spawn(&home, &config, &["threads", "--approve", "edit"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    let message =
        json!({"threadId": thread, "message": {"role": "user", "chunks": [{"type": "text", "chunk": "go"}]}});
    let id = client.call("sendMessage", message).await;
    loop {
        let got = client.next().await.expect("the server is there");
        assert!(texts(&got).iter().all(|text| !hides(text)), "{got}");
        match got["method"].as_str() {
            None if got["id"] == json!(id) => break,
            Some("streamMessageChunk") => client.answer(&got, Value::Null).await,
            Some(_) => client.refuse(&got, -32601).await,
            None => {}
        }
    }
    assert!(!home.workspace().join("ran").exists());
    assert!(client.end().await.success());
}
