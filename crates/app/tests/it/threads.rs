//! `dragoman threads` from outside: both readings of the protocol over the real binary.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};
use crate::lines::LineClient;

fn message(thread: &Value, text: &str) -> Value {
    json!({"threadId": thread, "message": {"role": "user", "chunks": [{"type": "text", "chunk": text}]}})
}

/// Sends a message and takes the chunks; file methods are answered by `files`, `None` means that they are unknown.
async fn say(
    client: &mut LineClient,
    thread: &Value,
    text: &str,
    files: impl Fn(&str, &Value) -> Option<Value>,
) -> (Value, String) {
    let id = client.call("sendMessage", message(thread, text)).await;
    let mut answer = String::new();
    loop {
        let got = client.next().await.expect("the server is there");
        match got["method"].as_str() {
            None if got["id"] == json!(id) => return (got, answer),
            None => {}
            Some("streamMessageChunk") => {
                answer.push_str(got["params"]["chunk"]["chunk"].as_str().expect("text"));
                client.answer(&got, Value::Null).await;
            }
            Some(method) => match files(method, &got["params"]) {
                Some(result) => client.answer(&got, result).await,
                None => client.refuse(&got, -32601).await,
            },
        }
    }
}

#[tokio::test]
async fn the_editor_drives_a_whole_conversation() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/hello.txt", "the word on the disk is xyzzy\n");
    let config = fake_provider(fake.url(), "openai-chat");
    let read = || Answer::new().say("Looking.").call("c", "eca__read_file", json!({"path": "hello.txt"}));
    fake.answer(read()).answer(Answer::text("It is plover."));
    let mut client = LineClient::spawn(&home, &config, &["threads"]);
    assert_eq!(client.request("getThreads", Value::Null).await, json!({"threads": []}));
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    assert_eq!(client.request("openThread", json!({"threadId": thread})).await, Value::Null);
    let unsaved = |method: &str, _: &Value| {
        (method == "readTextFile").then(|| json!({"version": 1, "content": "the unsaved word is plover\n"}))
    };
    let (response, answer) = say(&mut client, &thread, "What is the word?", unsaved).await;
    assert_eq!(response["result"], Value::Null);
    assert_eq!(answer, "Looking.\n\nIt is plover.");
    assert!(fake.last_request().body.to_string().contains("the unsaved word"));
    // A client without files: the disk is read.
    fake.answer(read()).answer(Answer::text("It is xyzzy."));
    let mut bare = LineClient::spawn(&home, &config, &["threads", "--role", "editor"]);
    let other = bare.request("createThread", Value::Null).await["threadId"].clone();
    say(&mut bare, &other, "What is the word?", |_, _| None).await;
    assert!(fake.last_request().body.to_string().contains("xyzzy"));
    assert!(bare.end().await.success());
    // Nobody can be asked: what policy would ask is refused, and the model told.
    fake.answer(Answer::tool_call("c", "eca__write_file", json!({"path": "made", "content": "x"})));
    fake.answer(Answer::text("Then not."));
    let (_, answer) = say(&mut client, &thread, "Write", |_, _| None).await;
    assert_eq!(answer, "Then not.");
    assert!(!home.workspace().join("made").exists());
    assert!(fake.last_request().body.to_string().contains("refused"));
    let entries = client.request("getThreadEntries", json!({"threadId": thread})).await;
    let entries = entries["entries"].as_array().expect("a list").clone();
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| match entry["type"].as_str() {
            Some("readFile") => format!("read {}", entry["path"].as_str().unwrap_or_default()),
            _ => format!("{}: {}", entry["role"], entry["chunks"][0]["chunk"]).replace('"', ""),
        })
        .collect();
    let file = home.workspace().join("hello.txt");
    assert_eq!(
        shown,
        [
            "user: What is the word?".to_owned(),
            "assistant: Looking.".to_owned(),
            format!("read {}", file.display()),
            "assistant: It is plover.".to_owned(),
            "user: Write".to_owned(),
            "assistant: Then not.".to_owned(),
        ]
    );
    assert!(client.end().await.success());
}

#[tokio::test]
async fn what_is_approved_beforehand_runs() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    fake.answer(Answer::tool_call("c", "eca__write_file", json!({"path": "made", "content": "x"})));
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "touch ran"})));
    fake.answer(Answer::text("Done."));
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = LineClient::spawn(&home, &config, &["threads", "--approve", "edit"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    let (_, answer) = say(&mut client, &thread, "Go", |_, _| None).await;
    assert_eq!(answer, "Done.");
    assert!(home.workspace().join("made").exists());
    assert!(!home.workspace().join("ran").exists(), "only edits were approved");
    assert!(client.end().await.success());
}

#[tokio::test]
async fn the_agent_drives_a_whole_conversation() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "one\ntwo\n");
    home.write("outside.txt", "private");
    fake.answer(Answer::text("Hello."));
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = LineClient::spawn(&home, &config, &["threads", "--quiet", "50"]);
    let chunk = |text: &str| json!({"threadId": "mine", "chunk": {"type": "text", "chunk": text}});
    client.request("streamMessageChunk", chunk("Good ")).await;
    client.request("streamMessageChunk", chunk("morning")).await;
    let sent = loop {
        let got = client.next().await.expect("the server is there");
        match got["method"].as_str() {
            Some("sendMessage") => break got,
            Some(_) => client.refuse(&got, -32601).await,
            None => {}
        }
    };
    let chunks = json!([{"type": "text", "chunk": "Hello."}]);
    assert_eq!(
        sent["params"],
        json!({"threadId": "mine", "message": {"role": "assistant", "chunks": chunks}})
    );
    client.answer(&sent, Value::Null).await;
    assert!(fake.last_request().last_user_text().contains("Good morning"));
    // Files of the workspace, and of nothing else.
    let path = home.workspace().join("a.txt");
    let file = json!({"threadId": "mine", "path": path, "lineOffset": 1});
    let read = client.request("readTextFile", file.clone()).await;
    assert_eq!(read["content"], "two\n");
    home.write("work/a.txt", "one\ntoo\n");
    let again = client.request("readTextFile", file).await;
    assert_eq!(again["content"], "too\n");
    assert_ne!(read["version"], again["version"], "the version changes with the content");
    assert!(again["version"].as_u64().is_some_and(|version| version < 1 << 53));
    let binary = client.request("readBinaryFile", json!({"threadId": "mine", "path": "a.txt"})).await;
    assert_eq!(binary["content"], "b25lCnRvbwo=");
    let stat = client.request("stat", json!({"threadId": "mine", "path": home.workspace()})).await;
    assert_eq!(stat, json!({"exists": true, "isDirectory": true}));
    let found = client.request("globSearch", json!({"threadId": "mine", "pattern": "*.txt"})).await;
    assert!(found["matches"][0].as_str().is_some_and(|path| path.ends_with("a.txt")), "{found}");
    let id = client.call("readTextFile", json!({"threadId": "mine", "path": "../outside.txt"})).await;
    let refused = client.response(id).await;
    assert!(refused["error"]["code"].is_i64() && !refused.to_string().contains("private"), "{refused}");
    assert!(client.end().await.success());
}
