//! The first day with the program, from outside: MCP servers that are late, servers that refuse, approvals, the order of the
//! first messages.

use serde_json::{Value, json};
use testkit::fake_model::Usage;
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Client, Home, contents, fake_provider, frame, is_finished};
use crate::eca_mcp::is_server;
use crate::run::{Fixture, finish, lines};
use crate::screen;
use crate::tmux::{Screen, Start};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");

/// A server that ran before is offered at once in the next process; a call of it waits until it is there.
#[tokio::test]
async fn tools_of_a_server_that_ran_before_are_offered_at_once() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    // It answers when this file is there.
    let gate = home.workspace().join("good.go");
    let config = crate::eca_mcp::config(&home, fake.url(), &[("good", "slow")]);
    std::fs::write(&gate, "").expect("the gate");
    let mut client = Client::start(&home, &config).await;
    client.until(|it| is_server(it, "good", "running")).await;
    assert!(client.end().await.success());

    std::fs::remove_file(&gate).expect("the gate is closed");
    let mut client = Client::start(&home, &config).await;
    fake.answer(Answer::tool_call("c", "good__echo", json!({"text": "hello"}))).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go", "trust": true})).await;
    let before = client.until(|it| it["params"]["content"]["type"] == "toolCallRunning").await;
    assert!(!contents(&before).iter().any(|it| it["content"]["type"] == "toolCalled"), "the call waits");
    let offered = fake.requests()[0].body["tools"].to_string();
    assert!(offered.contains("good__echo"), "the first request has its tools: {offered}");
    std::fs::write(&gate, "").expect("the gate is open");
    let after = contents(&client.until(is_finished).await);
    let called = after.iter().find(|it| it["content"]["type"] == "toolCalled").expect("a result");
    assert_eq!(called["content"]["error"], false, "{called}");
    assert!(called["content"]["outputs"].to_string().contains("hello"), "{called}");
    assert!(client.end().await.success());
}

/// A new server that does not start delays a run for some seconds, and the run names it.
#[tokio::test]
async fn a_run_names_the_server_that_is_late() {
    let mut bench = Fixture::new().await;
    bench.config = crate::eca_mcp::config(&bench.home, bench.fake.url(), &[("sleepy", "mute")]);
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{}", ran.err);
    assert!(ran.err.contains("The MCP server sleepy did not start within"), "{}", ran.err);
}

#[tokio::test]
async fn a_prompt_of_a_server_works_in_a_run() {
    let mut bench = Fixture::new().await;
    bench.config["mcpServers"] = json!({"good": {"command": "python3", "args": [SCRIPT, "good"]}});
    bench.fake.answer(Answer::text("ok"));
    let ran = bench.run(&["/good:greet", "Ada"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let sent = bench.fake.last_request().body.to_string();
    assert!(sent.contains("Ada") && !sent.contains("/good:greet"), "{sent}");
}

/// A server of this machine that refuses is given up quickly, with the question that helps; another model goes on.
#[tokio::test]
async fn a_server_that_refuses_is_given_up_and_another_model_goes_on() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["down"] =
        json!({"api": "openai-chat", "url": "http://127.0.0.1:9/v1", "key": "x", "models": {"m": {}}});
    let ran = bench.run(&["-m", "down/m", "hello"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("Is it running?"), "{}", ran.err);
    assert!(ran.err.matches("Trying again").count() <= 1, "two tries: {}", ran.err);
    assert!(ran.err.contains("UTC"), "times have a zone: {}", ran.err);
    bench.fake.answer(Answer::text("from the other"));
    let ran = bench.run(&["-m", "down/m", "--failover", "fake/m1", "hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "from the other\n"), "{}", ran.err);
    for line in ran.err.lines() {
        assert!(!line.contains(" WARN ") && !line.contains(" ERROR "), "no log lines: {}", ran.err);
    }
}

/// `byDefault: "ask"` that is in a file asks about commands that only read, too.
#[tokio::test]
async fn an_explicit_ask_asks_about_everything() {
    let mut bench = Fixture::new().await;
    let list = json!({"command": "ls"});
    for (approval, code) in [(json!({}), 0), (json!({"byDefault": "ask"}), 3)] {
        bench.config["toolCall"] = json!({"approval": approval});
        bench.fake.answer(Answer::tool_call("c1", "eca__shell_command", list.clone()));
        bench.fake.answer(Answer::text("done"));
        let ran = bench.run(&["go"]).await;
        assert_eq!(ran.code, Some(code), "{approval}: {}", ran.err);
        let mut command: tokio::process::Command =
            bench.home.command(&["explain-permission", "shell_command", &list.to_string()]).into();
        command.env("DRAGOMAN_CONFIG", bench.config.to_string());
        let explained = finish(command).await.out;
        let word = if code == 0 { "allow" } else { "ask: Asked by toolCall.approval.byDefault." };
        assert!(explained.starts_with(word), "{approval}: {explained}");
    }
}

/// A model that repeats itself is stopped, and the reason is named.
#[tokio::test]
async fn a_loop_is_not_called_a_step_limit() {
    let bench = Fixture::new().await;
    bench.fake.respond_with(|_| Answer::tool_call("c", "eca__directory_tree", json!({"path": "."})));
    let ran = bench.run(&["--json", "go"]).await;
    let end = lines(&ran.out).pop().expect("an end");
    assert_eq!(end["outcome"], "repeating", "{end}");
    assert!(!end["message"].to_string().contains("step limit"), "{end}");
}

/// A call of a tool that does not exist is shown as failed.
#[tokio::test]
async fn an_unknown_tool_is_a_failed_call() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::tool_call("c", "eca__nonsense", json!({}))).answer(Answer::text("ok"));
    let ran = bench.run(&["--json", "go"]).await;
    let call = lines(&ran.out).into_iter().find(|event| event["type"] == "tool").expect("a call");
    assert_eq!((&call["state"], &call["error"]), (&json!("done"), &json!(true)), "{call}");
}

/// `initialize` and `initialized` in one write: the response comes first, and the models come once and whole.
#[tokio::test]
async fn two_messages_in_one_write_are_answered_in_order() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for _ in 0..5 {
        let mut client = Client::spawn(&home, &fake_provider(fake.url(), "openai-chat"));
        let uri = format!("file://{}/", home.workspace().display());
        let initialize = json!({"jsonrpc": "2.0", "id": 77, "method": "initialize", "params": {
            "processId": std::process::id(), "clientInfo": {"name": "test"}, "capabilities": {},
            "workspaceFolders": [{"uri": uri, "name": "work"}]}});
        let initialized = json!({"jsonrpc": "2.0", "method": "initialized", "params": {}});
        client.send_bytes(&[frame(&initialize), frame(&initialized)].concat()).await;
        let messages = client.until(|it| it["method"] == "config/updated").await;
        assert_eq!(messages[0]["id"], 77, "{messages:?}");
        let models = messages.last().expect("the settings")["params"]["chat"]["models"].to_string();
        assert!(models.contains("fake/m1"), "{models}");
        assert!(client.end().await.success());
    }
}

/// A chat with one message has one message, in the list and in the picker.
#[tokio::test]
async fn one_message_is_not_several() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::status(400).body("{}"));
    assert_eq!(bench.run(&["--retries", "0", "hello"]).await.code, Some(1));
    let listed = finish(bench.home.command(&["chats", "list"]).into()).await.out;
    assert!(listed.contains("1 message ") && !listed.contains("1 messages"), "{listed}");
}

/// A cap below a hundredth of a cent is not shown as nothing.
#[tokio::test]
async fn small_amounts_of_money_are_not_zero() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 1, "output": 1}});
    bench.home.write("work/a.txt", "content of a");
    let read = Answer::tool_call("c1", "eca__read_file", json!({"path": "a.txt"}));
    bench.fake.answer(read.usage(Usage { input: 100, output: 10, ..Usage::default() }));
    let ran = bench.run(&["--max-cost", "0.00001", "go"]).await;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("of $0.00001"), "{}", ran.err);
    assert!(!ran.err.contains("$0.0000."), "{}", ran.err);
}

/// Servers of one's own say how much their models can read; the list of models and the meter know it.
#[tokio::test]
async fn the_window_of_a_model_of_an_own_server_is_known() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let served = tokio::spawn(async move {
        let body = json!({"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 40960}]}).to_string();
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match socket.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    let bench = Fixture::new().await;
    let mut command: tokio::process::Command = bench.home.command(&["models", "--json"]).into();
    let config = json!({"providers": {"house": {"api": "openai-chat", "url": url, "key": "k"}}});
    command.env("DRAGOMAN_CONFIG", config.to_string());
    let listed: Value = serde_json::from_str(&finish(command).await.out).expect("JSON");
    let models = listed["models"].as_array().or(listed.as_array()).cloned().unwrap_or_default();
    let found = models.iter().find(|it| it["id"] == "house/qwen").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(found["contextLimit"], 40960, "{listed}");
    served.abort();
}

/// The list of models without models says how to get one; a list that is cut says how many follow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_a_chat_say_what_they_do_not_show() {
    let bench = screen::Fixture::new().await;
    screen::watch(move || {
        let shown = bench.screen();
        shown.until("Ask something");
        shown.text("/");
        let menu = shown.until(" more");
        assert!(menu.lines().any(|line| line.trim().starts_with('…') && line.contains(" more")), "{menu}");
        drop(shown);
        let empty =
            json!({"providers": {"fake": {"api": "openai-chat", "url": "http://127.0.0.1:9", "key": "k"}}});
        let shown = Screen::start(&bench.home, &empty, &Start::default());
        shown.until("Ask something");
        shown.text("/model");
        shown.until("Show the models");
        shown.keys(&["Enter"]);
        let picker = shown.until("type to narrow");
        let below = picker.split("type to narrow").nth(1).unwrap_or_default();
        assert!(below.contains("Ollama") && below.contains("models pull"), "{picker}");
    })
    .await
    .expect("the screen");
}

/// The era of a server is remembered between processes: one that says nothing about it is asked once.
#[tokio::test]
async fn a_server_is_asked_for_its_era_once() {
    let mut bench = Fixture::new().await;
    let log = bench.home.workspace().join("old.log");
    bench.config["mcpServers"] =
        json!({"old": {"command": "python3", "args": [SCRIPT, "silent", "--log", log]}});
    for run in 1..=2 {
        let call = Answer::tool_call("c1", "old__echo", json!({"text": "hello"}));
        bench.fake.answer(call).answer(Answer::text("done"));
        let ran = bench.run(&["--approve", "all", "go"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "done\n"), "{}", ran.err);
        assert_eq!(bench.fake.last_request().tool_results(), ["hello"]);
        let told = std::fs::read_to_string(&log).expect("the log");
        assert_eq!(told.matches("\"initialize\"").count(), run, "{told}");
        assert_eq!(told.matches("server/discover").count(), 1, "{told}");
    }
}
