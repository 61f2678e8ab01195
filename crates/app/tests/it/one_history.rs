//! One journal for every protocol: the same conversation leaves the same record, and a chat goes on anywhere.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished};
use crate::lines::LineClient;

/// What the user says, in order; the last is stopped.
const TURNS: [&str; 5] = ["greet", "write", "run", "edit", "count"];

/// What the model says to each of them.
fn script(fake: &FakeModel) {
    let call = |name: &str, arguments: Value| Answer::tool_call("c1", name, arguments);
    fake.answer(Answer::new().reasoning("A greeting.").say("Hello there."));
    fake.answer(call("eca__write_file", json!({"path": "a.txt", "content": "one\n"})));
    fake.answer(Answer::text("Written."));
    fake.answer(call("eca__shell_command", json!({"command": "touch made"})));
    fake.answer(Answer::text("Then not."));
    fake.answer(call(
        "eca__edit_file",
        json!({"path": "a.txt", "original_content": "one", "new_content": "two"}),
    ));
    fake.answer(Answer::text("Edited."));
    fake.answer(Answer::text("one two three").silence());
}

/// One protocol's way to hold the conversation; the chat's id.
async fn over_eca(home: &Home, config: &Value) -> String {
    let mut client = Client::start(home, config).await;
    for turn in TURNS {
        client.ask("chat/prompt", json!({"chatId": "eca-chat", "message": turn})).await;
        let mut seen = Vec::new();
        loop {
            let message = client.next().await;
            let content = message["params"]["content"].clone();
            let finished = is_finished(&message);
            seen.push(message);
            if finished {
                break;
            }
            if content["type"] == "toolCallRun" && content["manualApproval"] == true {
                let verb = if turn == "run" { "chat/toolCallReject" } else { "chat/toolCallApprove" };
                client.notify(verb, json!({"chatId": "eca-chat", "toolCallId": content["id"]})).await;
            }
            if turn == "count" && answer(&contents(&seen)) == "one two three" {
                client.notify("chat/promptStop", json!({"chatId": "eca-chat"})).await;
            }
        }
    }
    assert!(client.end().await.success());
    "eca-chat".to_owned()
}

async fn over_acp(home: &Home, config: &Value) -> String {
    let (mut client, session) = LineClient::acp(home, config, json!({})).await;
    for turn in TURNS {
        let blocks = json!([{"type": "text", "text": turn}]);
        let id = client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
        let mut text = String::new();
        loop {
            let message = client.next().await.expect("the server is there");
            if message["id"] == json!(id) && message.get("method").is_none() {
                break;
            }
            if message["method"] == "session/request_permission" {
                let option = if turn == "run" { "reject_once" } else { "allow_once" };
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
                client.answer(&message, outcome).await;
            }
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                text.push_str(update["content"]["text"].as_str().unwrap_or_default());
            }
            if turn == "count" && text == "one two three" {
                text.clear();
                client.notify("session/cancel", json!({"sessionId": session})).await;
            }
        }
    }
    assert!(client.end().await.success());
    session.as_str().expect("an id").to_owned()
}

async fn over_threads(home: &Home, config: &Value) -> String {
    let mut client = LineClient::spawn(home, config, &["threads", "--approve", "edit"]);
    let thread = client.request("createThread", Value::Null).await["threadId"].clone();
    for turn in TURNS {
        let chunks = json!([{"type": "text", "chunk": turn}]);
        let message = json!({"threadId": thread, "message": {"role": "user", "chunks": chunks}});
        let id = client.call("sendMessage", message).await;
        let mut text = String::new();
        loop {
            let message = client.next().await.expect("the server is there");
            match message["method"].as_str() {
                None if message["id"] == json!(id) => break,
                None => {}
                Some("streamMessageChunk") => {
                    text.push_str(message["params"]["chunk"]["chunk"].as_str().unwrap_or_default());
                    client.answer(&message, Value::Null).await;
                }
                Some(_) => client.refuse(&message, -32601).await,
            }
            if turn == "count" && text == "one two three" {
                // Stop is closing the pipe.
                break;
            }
        }
    }
    assert!(client.end().await.success());
    thread.as_str().expect("an id").to_owned()
}

/// What the journal holds of a chat that a person would tell apart, one line each.
fn journal(home: &Home, chat: &str) -> Vec<String> {
    let database = find(home.path(), "chats.sqlite").expect("a database");
    let database = rusqlite::Connection::open(database).expect("it opens");
    let query =
        "SELECT body FROM facts JOIN sessions ON facts.session = sessions.key WHERE id = ?1 ORDER BY place";
    let mut statement = database.prepare(query).expect("the tables");
    let bodies = statement.query_map([chat], |row| row.get::<_, String>(0)).expect("facts");
    bodies
        .map(|body| serde_json::from_str::<Value>(&body.expect("a body")).expect("JSON"))
        .filter_map(|fact| match fact["fact"].as_str()? {
            "itemEnded" => line(&fact["item"]["kind"]),
            "turnEnded" => Some(format!("ended {}", fact["outcome"]["outcome"])),
            _ => None,
        })
        .collect()
}

fn line(kind: &Value) -> Option<String> {
    let text = kind["text"].as_str().unwrap_or_default();
    Some(match kind["type"].as_str()? {
        "userMessage" => format!("user {text}"),
        "agentMessage" => format!("agent {text} {}", kind["interrupted"]),
        "reasoning" => format!("thought {text}"),
        "toolCall" => format!("call {} {} {}", kind["name"], kind["input"], kind["state"]["state"]),
        other => format!("{other} {text}"),
    })
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) }
    })
}

#[tokio::test]
async fn the_same_conversation_leaves_the_same_journal_in_every_protocol() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "anthropic");
    let mut chats = Vec::new();
    for protocol in ["eca", "acp", "threads"] {
        let _ = std::fs::remove_file(home.workspace().join("a.txt"));
        script(&fake);
        chats.push(match protocol {
            "eca" => over_eca(&home, &config).await,
            "acp" => over_acp(&home, &config).await,
            _ => over_threads(&home, &config).await,
        });
        assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).expect("a file"), "two\n");
        assert!(!home.workspace().join("made").exists(), "{protocol}: what was refused did not run");
    }
    let expected = journal(&home, &chats[0]);
    assert_eq!(expected.iter().filter(|line| line.starts_with("user")).count(), TURNS.len(), "{expected:#?}");
    assert_eq!(expected.last().map(String::as_str), Some("ended \"stopped\""), "{expected:#?}");
    for chat in &chats[1..] {
        assert_eq!(journal(&home, chat), expected, "{chat}");
    }
    everywhere(&home, &config, &chats, &fake).await;
}

/// Every protocol lists every chat, shows it and goes on with it.
async fn everywhere(home: &Home, config: &Value, chats: &[String], fake: &FakeModel) {
    let mut eca = Client::start(home, config).await;
    let listed = eca.request("chat/list", json!({})).await;
    let ids = |list: &Value, name: &str| -> Vec<String> {
        let mut ids: Vec<String> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it[name].as_str().expect("an id").to_owned())
            .collect();
        ids.sort();
        ids
    };
    let mut all = chats.to_vec();
    all.sort();
    assert_eq!(ids(&listed["chats"], "id"), all);
    eca.end().await;
    let mut acp = LineClient::spawn(home, config, &["acp"]);
    acp.request("initialize", json!({"protocolVersion": 1})).await;
    let listed = acp.request("session/list", json!({"cwd": home.workspace()})).await;
    assert_eq!(ids(&listed["sessions"], "sessionId"), all);
    // A chat of the thread protocol, continued here.
    let load = json!({"sessionId": chats[2], "cwd": home.workspace(), "mcpServers": []});
    let id = acp.call("session/load", load).await;
    let mut typed = Vec::new();
    loop {
        let message = acp.next().await.expect("the server is there");
        if message["id"] == json!(id) {
            break;
        }
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "user_message_chunk" {
            typed.push(update["content"]["text"].as_str().expect("text").to_owned());
        }
    }
    assert_eq!(typed, TURNS);
    fake.answer(Answer::text("Four."));
    let blocks = json!([{"type": "text", "text": "and then?"}]);
    acp.request("session/prompt", json!({"sessionId": chats[2], "prompt": blocks})).await;
    assert!(fake.last_request().body.to_string().contains("one two three"), "the history was sent along");
    acp.end().await;
    let mut threads = LineClient::spawn(home, config, &["threads"]);
    let listed = threads.request("getThreads", Value::Null).await;
    assert_eq!(ids(&listed["threads"], "id"), all);
    let entries = threads.request("getThreadEntries", json!({"threadId": chats[2]})).await;
    let last = entries["entries"].as_array().and_then(|list| list.last()).cloned().expect("entries");
    assert_eq!(last["chunks"][0]["chunk"], "Four.");
    threads.end().await;
}
