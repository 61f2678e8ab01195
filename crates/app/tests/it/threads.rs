//! `dragoman threads` from outside: both readings of the protocol over the real binary.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider, is_finished};
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
    // Its other file methods are used as well.
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let served = |method: &str, params: &Value| match method {
        "globSearch" => {
            assert_eq!(params["pattern"], "**/*.png");
            Some(json!({"matches": ["drawn/by/the/client.png", "/etc/secret.png"]}))
        }
        "stat" => Some(json!({"exists": true, "isDirectory": false})),
        "readBinaryFile" => Some(json!({"version": 7, "content": png})),
        _ => None,
    };
    fake.answer(Answer::tool_call("c", "eca__glob", json!({"pattern": "*.png"})));
    fake.answer(Answer::tool_call("d", "eca__read_file", json!({"path": "drawn/by/the/client.png"})));
    fake.answer(Answer::text("A pixel."));
    say(&mut client, &thread, "Look at the picture", served).await;
    let body = fake.last_request().body.to_string();
    assert!(body.contains("drawn/by/the/client.png") && body.contains(png), "{body}");
    assert!(!body.contains("/etc/secret.png"), "nothing outside of the workspace");
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
            "user: Look at the picture".to_owned(),
            format!("read {}", home.workspace().join("drawn/by/the/client.png").display()),
            "assistant: A pixel.".to_owned(),
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
    let mut client = LineClient::spawn(&home, &config, &["threads", "--quiet", "200"]);
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
    let (code, sentence) =
        client.refused("readTextFile", json!({"threadId": "mine", "path": "../outside.txt"})).await;
    assert!(code == -32602 && !sentence.contains("private"), "{code} {sentence}");
    let up = client.request("globSearch", json!({"threadId": "mine", "pattern": "../*.txt"})).await;
    assert_eq!(up, json!({"matches": []}));
    let entries = client.request("getThreadEntries", json!({"threadId": "mine"})).await.to_string();
    assert!(entries.contains("Good morning") && entries.contains("readFile"), "{entries}");
    assert!(client.end().await.success());
}

/// The next request of the agent's with this method; others are unknown to the client.
async fn asked(client: &mut LineClient, method: &str) -> Value {
    loop {
        let got = client.next().await.expect("the server is there");
        match got["method"].as_str() {
            Some(asked) if asked == method => return got,
            Some(_) => client.refuse(&got, -32601).await,
            None => {}
        }
    }
}

#[tokio::test]
async fn a_silent_client_is_asked_and_the_answer_decides() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut editor = LineClient::spawn(&home, &config, &["threads"]);
    let mut other = LineClient::spawn(&home, &config, &["threads", "--quiet", "200"]);
    let since = std::time::Instant::now();
    let question = asked(&mut editor, "getThreads").await;
    assert!(since.elapsed() > std::time::Duration::from_millis(1500), "it is given time to speak first");
    assert_eq!(question["params"], Value::Null);
    // It has no threads: it drives.
    editor.refuse(&question, -32601).await;
    assert_eq!(editor.request("getThreads", Value::Null).await, json!({"threads": []}));
    assert!(editor.end().await.success());
    // It has: we drive, open one of our own making, and answer what is streamed into it.
    let question = asked(&mut other, "getThreads").await;
    other.answer(&question, json!({"threads": []})).await;
    let create = asked(&mut other, "createThread").await;
    other.answer(&create, json!({"threadId": "made"})).await;
    let open = asked(&mut other, "openThread").await;
    assert_eq!(open["params"], json!({"threadId": "made"}));
    other.answer(&open, Value::Null).await;
    fake.answer(Answer::text("Hello."));
    let chunk = json!({"threadId": "made", "chunk": {"type": "text", "chunk": "Hi"}});
    other.request("streamMessageChunk", chunk).await;
    let entries = asked(&mut other, "getThreadEntries").await;
    let shown = json!([{"type": "message", "role": "user", "chunks": [{"type": "text", "chunk": "Hi"}]}]);
    other.answer(&entries, json!({"entries": shown})).await;
    let sent = asked(&mut other, "sendMessage").await;
    assert_eq!(sent["params"]["message"]["role"], "assistant");
    assert_eq!(sent["params"]["message"]["chunks"][0]["chunk"], "Hello.");
    other.answer(&sent, Value::Null).await;
    assert!(other.end().await.success());
}

#[tokio::test]
async fn the_role_and_the_workspace_can_be_fixed() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("elsewhere/b.txt", "there\n");
    let config = fake_provider(fake.url(), "openai-chat");
    let elsewhere = home.path().join("elsewhere");
    let folder = elsewhere.to_str().expect("UTF-8");
    let mut agent = LineClient::spawn(&home, &config, &["threads", "--role", "agent", "--workspace", folder]);
    // The agent drives from the start, without waiting.
    asked(&mut agent, "getThreads").await;
    assert_eq!(agent.refused("createThread", Value::Null).await.0, -32601);
    let read = agent.request("readTextFile", json!({"threadId": "t", "path": "b.txt"})).await;
    assert_eq!(read["content"], "there\n");
    assert!(agent.end().await.success());
    let mut editor = LineClient::spawn(&home, &config, &["threads", "--role", "editor"]);
    assert_eq!(editor.refused("stat", json!({"threadId": "t", "path": "a"})).await.0, -32601);
    assert_eq!(editor.refused("openThread", json!({"threadId": "none"})).await.0, -32602);
    assert_eq!(editor.refused("noSuchMethod", Value::Null).await.0, -32601);
    assert!(editor.end().await.success());
    let status = home.command(&["threads", "--workspace", "/no/such/folder"]).output().expect("it runs");
    assert_eq!(status.status.code(), Some(2));
}

#[tokio::test]
async fn closing_the_pipe_stops_the_turn() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = LineClient::spawn(&home, &config, &["threads"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    fake.answer(Answer::text("one two three").silence());
    client.call("sendMessage", message(&thread, "count")).await;
    asked(&mut client, "streamMessageChunk").await;
    assert!(client.end().await.success());
    fake.wait_for_hangups(1).await;
    let mut again = LineClient::spawn(&home, &config, &["threads"]);
    let entries = again.request("getThreadEntries", json!({"threadId": thread})).await.to_string();
    assert!(entries.contains("count") && entries.contains("one"), "{entries}");
    assert!(again.end().await.success());
}

/// A chat that an editor of ECA holds: the client of threads sees it live and prompts in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_of_another_program_is_attached() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut holder = Client::start(&home, &config).await;
    fake.answer(Answer::text("first words"));
    holder.prompt(Some("c"), "one").await;

    let mut client = LineClient::spawn(&home, &config, &["threads"]);
    let thread = json!("c");
    assert_eq!(client.request("openThread", json!({"threadId": thread})).await, Value::Null);
    fake.answer(Answer::text("second words"));
    let (response, answer) = say(&mut client, &thread, "two", |_, _| None).await;
    assert_eq!((&response["result"], answer.as_str()), (&Value::Null, "second words"));
    let seen = holder.until(is_finished).await;
    let told: String = seen.iter().filter_map(|it| it["params"]["content"]["text"].as_str()).collect();
    assert!(told.contains("two\n") && told.contains("second words"), "{told}");

    fake.answer(Answer::text("third words"));
    holder.prompt(Some("c"), "three").await;
    let entries = client.request("getThreadEntries", json!({"threadId": thread})).await.to_string();
    for text in ["one", "first words", "two", "second words", "three", "third words"] {
        assert!(entries.contains(text), "{text}: {entries}");
    }
    assert!(holder.end().await.success());
}

#[tokio::test]
async fn a_thread_has_entries_from_its_creation_on() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let mut client = LineClient::spawn(&home, &config, &["threads"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    let entries = client.request("getThreadEntries", json!({"threadId": thread})).await;
    assert_eq!(entries, json!({"entries": []}));
    let id = client.call("getThreadEntries", json!({"threadId": "nowhere"})).await;
    let refused = loop {
        let message = client.next().await.expect("the server is there");
        if message["id"] == json!(id) {
            break message;
        }
    };
    assert!(refused["error"]["message"].to_string().contains("There is no thread"), "{refused}");
    assert!(client.end().await.success());
}

/// The protocol has no place for it but the answer.
#[tokio::test]
async fn a_server_that_fails_at_once_is_named() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["mcpServers"] = json!({"gone": {"command": "no-such-program"}});
    let mut client = LineClient::spawn(&home, &config, &["threads", "--role", "editor"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    fake.answer(Answer::text("One.")).answer(Answer::text("Two."));
    let (_, first) = say(&mut client, &thread, "go", |_, _| None).await;
    let (_, second) = say(&mut client, &thread, "on", |_, _| None).await;
    let both = format!("{first} {second}");
    assert_eq!(both.matches("The MCP server gone failed.").count(), 1, "{both}");
    assert!(both.contains("One.") && both.ends_with("Two."), "{both}");
    assert!(client.end().await.success());
}
