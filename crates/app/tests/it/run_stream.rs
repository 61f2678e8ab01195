//! `dragoman run` as a conversation of JSON lines, settings and copies of chats by flags, `config get` and `set`.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Answer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::run::{Fixture, lines};

/// Prompts, a question with its answer, a line that is wrong; every event matches the published schema.
#[tokio::test]
async fn a_conversation_asks_and_is_answered() {
    let bench = Fixture::new().await;
    let call = |command: &str| Answer::tool_call("c1", "eca__shell_command", json!({"command": command}));
    bench.fake.answer(call("touch one.txt")).answer(Answer::text("Made."));
    bench.fake.answer(Answer::text("Second."));
    let mut child =
        bench.command(&["--input", "stream-json"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("stdin");
    let mut output = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-events.schema.json");
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut until = async |kind: &str| loop {
        let line = tokio::time::timeout(Duration::from_secs(60), output.next_line());
        let line = line.await.expect("an event in time").expect("stdout").expect("a line");
        let event: Value = serde_json::from_str(&line).expect("JSON");
        assert!(validator.is_valid(&event), "{event}");
        if event["type"] == kind {
            return event;
        }
    };
    let line = |value: Value| format!("{value}\n").into_bytes();
    until("start").await;
    input.write_all(b"not JSON\n").await.expect("written");
    until("notice").await;
    input.write_all(&line(json!({"type": "prompt", "text": "make one"}))).await.expect("written");
    let ask = until("ask").await;
    assert_eq!((&ask["kind"], &ask["tool"]), (&json!("approval"), &json!("eca__shell_command")), "{ask}");
    assert_eq!(ask["input"]["command"], "touch one.txt");
    assert!(!bench.home.workspace().join("one.txt").exists());
    let answer = json!({"type": "answer", "ask": ask["ask"], "allow": true});
    input.write_all(&line(answer)).await.expect("written");
    assert_eq!(until("turn").await["text"], "Made.");
    assert!(bench.home.workspace().join("one.txt").exists());
    let user = json!({"type": "user", "message": {"content": [{"type": "text", "text": "and now?"}]}});
    input.write_all(&line(user)).await.expect("written");
    drop(input);
    assert_eq!(until("turn").await["text"], "Second.");
    let end = until("end").await;
    assert_eq!((&end["outcome"], &end["exit"]), (&json!("done"), &json!(0)), "{end}");
    assert!(child.wait().await.expect("an end").success());
    assert_eq!(bench.fake.last_request().last_user_text(), "and now?");
}

#[tokio::test]
async fn settings_effort_and_copies_by_flags() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m1"] =
        json!({"variants": {"quick": {"reasoning_effort": "low"}, "deep": {"reasoning_effort": "high"}}});
    bench.fake.answer(Answer::text("One."));
    let ran = bench.run(&["--effort", "deep", "-c", "nosuchkey=x", "hello"]).await;
    assert_eq!(ran.code, Some(2), "an unknown setting is a mistake: {}", ran.err);
    assert!(ran.err.contains("-c is wrong"), "{}", ran.err);
    let ran = bench.run(&["--effort", "deep", "-c", "maxSteps=7", "--agent", "plan", "hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "One.\n"), "{}", ran.err);
    let body = bench.fake.last_request().body;
    assert_eq!(body["reasoning_effort"], "high", "{body}");
    assert!(body.to_string().contains("You are planning"), "{body}");
    // A copy goes on; the chat itself has one prompt still.
    bench.fake.answer(Answer::text("Two."));
    let ran = bench.run(&["--continue", "--fork", "--json", "again"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let copy = lines(&ran.out)[0]["session"].as_str().expect("a chat").to_owned();
    assert!(bench.fake.last_request().body.to_string().contains("hello"), "the copy has the history");
    let listed = bench.home.command(&["chats", "list", "--json"]).output().expect("it runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let chats = listed["chats"].as_array().or(listed.as_array()).expect("chats").clone();
    assert_eq!(chats.len(), 2, "{chats:?}");
    assert!(chats.iter().any(|chat| chat["id"] == copy.as_str()), "{chats:?}");
    let ran = bench.run(&["--fork", "hello"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[tokio::test]
async fn one_setting_is_read_and_written() {
    let bench = Fixture::new().await;
    let run = |arguments: &[&str]| {
        let ran = bench.home.command(arguments).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    let file = bench.home.write(".config/dragoman/config.json", "{\n  // mine\n  \"maxSteps\": 9\n}\n");
    assert_eq!(run(&["config", "get", "maxSteps"]), (Some(0), "9\n".to_owned(), String::new()));
    let (code, out, err) = run(&["config", "set", "chat.theme", "light"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let written = std::fs::read_to_string(&file).expect("the file");
    assert!(written.contains("// mine") && written.contains("\"theme\": \"light\""), "{written}");
    assert_eq!(run(&["config", "get", "chat.theme"]).1, "\"light\"\n");
    for wrong in [["nosuch.key", "1"], ["maxSteps", "many"]] {
        let (code, out, err) = run(&["config", "set", wrong[0], wrong[1]]);
        assert_eq!(code, Some(1), "{wrong:?}: {out}{err}");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), written, "nothing is written");
    }
    assert_eq!(run(&["config", "get", "nosuch.key"]).0, Some(1));
    let (_, help, _) = run(&["--help"]);
    assert!(help.contains("Talk:") && help.contains("  chat ") && help.contains("Safety:"), "{help}");
    // An editor that changes the file; afterwards the settings are checked.
    let mut edit = bench.home.command(&["config", "edit"]);
    edit.env(
        "EDITOR",
        "sh -c 'printf \"{\\\"chat\\\": {\\\"keys\\\": {\\\"ctrl-nothing\\\": \\\"up\\\"}}}\" > \"$0\"'",
    );
    let ran = edit.output().expect("it runs");
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{shown}");
    assert!(shown.contains("ctrl-nothing"), "{shown}");
}
