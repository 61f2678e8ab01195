//! `dragoman mcp-server`: both eras, what it refuses, and what leaves it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::{Home, fake_provider};

const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

struct McpClient {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// Messages that came while a response was awaited.
    notifications: Vec<Value>,
}

impl McpClient {
    fn start(home: &Home, fake: &FakeModel, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_with(home, &fake_provider(fake.url(), "openai-chat"), arguments, variables)
    }

    fn start_with(home: &Home, config: &Value, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command: Command = home.command(&[&["mcp-server"], arguments].concat()).into();
        let mut child = command
            .env("DRAGOMAN_CONFIG", config.to_string())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { child, stdin, lines, next_id: 0, notifications: Vec::new() }
    }

    async fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.expect("stdin");
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn response(&mut self, id: u64) -> Value {
        loop {
            let line = tokio::time::timeout(WAIT_TIMEOUT, self.lines.next_line()).await;
            let line = line.expect("a message in time").expect("stdout").expect("a message");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == json!(id) {
                return message;
            }
            self.notifications.push(message);
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.response(id).await
    }

    async fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let response = self.request("initialize", params).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        response["result"].clone()
    }

    /// The result of a tool.
    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.request("tools/call", params).await["result"].clone()
    }

    async fn end(mut self) {
        drop(self.stdin);
        let ended = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        assert!(ended.expect("it ends").expect("a status").success());
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[tokio::test]
async fn a_client_of_the_handshake_era_asks_continues_and_searches() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = McpClient::start(&home, &fake, &[], &[]);
    let early = client.request("tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32602, "{early}");
    let initialized = client.initialize().await;
    assert_eq!(initialized["protocolVersion"], "2025-06-18");
    let tools = client.request("tools/list", json!({})).await;
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["ask", "run_task", "search_chats"]);
    assert!(tools["result"].get("resultType").is_none());

    fake.answer(Answer::text("It is a pangolin, and the key is sk-secret-of-the-test."));
    let asked = client.call("ask", json!({"prompt": "/doctor what lives here?"})).await;
    assert_eq!(asked["isError"], false, "{asked}");
    assert!(text(&asked).contains("pangolin") && !text(&asked).contains("sk-secret-of-the-test"), "{asked}");
    let request = fake.last_request();
    assert!(request.last_user_text().contains("/doctor"), "a slash command is text here");
    assert!(!request.tools().iter().any(|name| name == "eca__write_file"), "`ask` changes nothing");
    let chat = asked["structuredContent"]["chat"].as_str().expect("a chat").to_owned();
    fake.answer(Answer::text("Yes."));
    let again = client.call("ask", json!({"prompt": "Really?", "chat": chat})).await;
    assert_eq!(text(&again), "Yes.");
    assert!(fake.last_request().body["messages"].to_string().contains("what lives here"));
    let foreign = client.call("ask", json!({"prompt": "Hi", "chat": "another"})).await;
    assert!(foreign["isError"] == true && text(&foreign).contains("began the chat"), "{foreign}");
    let found = client.call("search_chats", json!({"query": "pangolin"})).await;
    assert_eq!(found["structuredContent"]["chats"][0]["id"], json!(chat), "{found}");
    assert!(!found.to_string().contains("sk-secret-of-the-test"), "{found}");
    let unknown = client.request("tools/call", json!({"name": "shell"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    client.end().await;
}

#[tokio::test]
async fn a_client_of_the_stateless_era_needs_no_handshake() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = McpClient::start(&home, &fake, &[], &[]);
    let meta = |revision: &str| {
        json!({"io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": "p"})
    };
    let discovered = client.request("server/discover", json!({"_meta": meta("2026-07-28")})).await;
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28", "{discovered}");
    let future = client.request("tools/list", json!({"_meta": meta("2031-01-01")})).await;
    assert_eq!(
        (&future["error"]["code"], &future["error"]["data"]["supported"][0]),
        (&json!(-32022), &json!("2026-07-28"))
    );
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(client.request("tools/list", bare).await["error"]["code"], -32602);
    fake.answer(Answer::tool_call("c", "eca__directory_tree", json!({"path": "."})))
        .answer(Answer::text("Hello."));
    let params = json!({"name": "ask", "arguments": {"prompt": "hi"}, "_meta": meta("2026-07-28")});
    let called = client.request("tools/call", params).await;
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(text(&called["result"]), "Hello.");
    let progress =
        |it: &Value| it["method"] == "notifications/progress" && it["params"]["progressToken"] == "p";
    assert!(client.notifications.iter().any(progress), "{:?}", client.notifications);
    client.end().await;
}

#[tokio::test]
async fn our_own_client_uses_it_in_the_newest_era() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let program = env!("CARGO_BIN_EXE_dragoman");
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["mcpServers"] = json!({"inner": {"command": program, "args": ["mcp-server"]}});
    let mut command: Command = home.command(&["mcp", "list", "--json"]).into();
    let listed = command.env("DRAGOMAN_CONFIG", config.to_string()).output().await.expect("it runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let server = &listed["servers"][0];
    assert_eq!(
        (&server["status"], &server["revision"]),
        (&json!("running"), &json!("2026-07-28")),
        "{listed}"
    );
}

#[tokio::test]
async fn what_would_be_asked_is_refused_without_an_approval_at_start() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    for (arguments, is_written) in [(&[][..], false), (&["--approve", "edit"][..], true)] {
        let mut client = McpClient::start(&home, &fake, arguments, &[]);
        client.initialize().await;
        let path = home.workspace().join("new.txt");
        let input = json!({"path": path, "content": "made"});
        fake.answer(Answer::tool_call("c", "eca__write_file", input)).answer(Answer::text("Done."));
        let ran = client.call("run_task", json!({"prompt": "write it"})).await;
        assert_eq!(path.exists(), is_written, "{ran}");
        assert_eq!(text(&ran).contains("needed approval"), !is_written, "{ran}");
        client.end().await;
    }
}

#[tokio::test]
async fn calls_end_at_their_limits_and_when_they_are_cancelled() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut client = McpClient::start(&home, &fake, &["--timeout", "1", "--max-steps", "1"], &[]);
    client.initialize().await;
    fake.answer(Answer::new().chunks(["slow"]).silence());
    let late = client.call("ask", json!({"prompt": "slow"})).await;
    assert!(late["isError"] == true && text(&late).contains("The time is up"), "{late}");
    fake.answer(Answer::tool_call("c", "eca__directory_tree", json!({"path": "."})));
    let limited = client.call("ask", json!({"prompt": "loop"})).await;
    assert!(limited["isError"] == true && text(&limited).contains("step limit"), "{limited}");
    client.end().await;

    let mut client = McpClient::start(&home, &fake, &[], &[]);
    client.initialize().await;
    let count = fake.requests().len();
    fake.answer(Answer::new().chunks(["slow"]).silence());
    let id = client.ask("tools/call", json!({"name": "ask", "arguments": {"prompt": "slow"}})).await;
    fake.wait_for_requests(count + 1).await;
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    let cancelled = client.response(id).await;
    assert!(cancelled.get("error").is_some(), "{cancelled}");
    client.end().await;
}

#[tokio::test]
async fn chats_of_other_folders_and_deep_nesting_are_closed() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let other = home.path().join("other");
    std::fs::create_dir_all(&other).expect("a folder");
    let other = other.display().to_string();
    let mut client = McpClient::start(&home, &fake, &["--cwd", &other], &[]);
    client.initialize().await;
    fake.answer(Answer::text("A wombat."));
    assert_eq!(text(&client.call("ask", json!({"prompt": "Which animal?"})).await), "A wombat.");
    client.end().await;
    for (arguments, count) in [(&[][..], 0), (&["--all-chats"][..], 1)] {
        let mut client = McpClient::start(&home, &fake, arguments, &[]);
        client.initialize().await;
        let found = client.call("search_chats", json!({"query": "wombat"})).await;
        assert_eq!(found["structuredContent"]["chats"].as_array().expect("chats").len(), count, "{found}");
        client.end().await;
    }
    let mut client = McpClient::start(&home, &fake, &[], &[("DRAGOMAN_NESTING", "2")]);
    client.initialize().await;
    let refused = client.call("ask", json!({"prompt": "Hi"})).await;
    assert!(refused["isError"] == true && text(&refused).contains("deeper calls are refused"), "{refused}");
    client.end().await;

    // The depth reaches the children of a task.
    let mut client = McpClient::start(&home, &fake, &["--approve", "all"], &[("DRAGOMAN_NESTING", "1")]);
    client.initialize().await;
    let command = json!({"command": "echo depth=$DRAGOMAN_NESTING"});
    fake.answer(Answer::tool_call("c", "eca__shell_command", command)).answer(Answer::text("ok"));
    client.call("run_task", json!({"prompt": "go"})).await;
    let results = fake.last_request().tool_results();
    assert!(results[0].contains("depth=2"), "{results:?}");
    client.end().await;
}

#[tokio::test]
async fn the_servers_of_the_folder_run_on_between_calls_and_money_ends_a_call() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = crate::eca_mcp::config(&home, fake.url(), &[("s", "good")]);
    let mut client = McpClient::start_with(&home, &config, &[], &[]);
    client.initialize().await;
    for number in 0..3 {
        fake.answer(Answer::text("Yes."));
        let asked = client.call("ask", json!({"prompt": format!("question {number}")})).await;
        assert_eq!(text(&asked), "Yes.", "{asked}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let log = std::fs::read_to_string(home.workspace().join("s")).expect("the log of the server");
    assert_eq!(log.matches("\"pid\"").count(), 1, "it was started once: {log}");
    client.end().await;

    let mut config = fake_provider(fake.url(), "openai-chat");
    config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 100_000, "output": 100_000}});
    let mut client = McpClient::start_with(&home, &config, &["--max-cost", "0.01"], &[]);
    client.initialize().await;
    let count = fake.requests().len();
    fake.answer(Answer::tool_call("c", "eca__directory_tree", json!({"path": "."})))
        .answer(Answer::text("never asked"));
    let spent = client.call("ask", json!({"prompt": "go"})).await;
    assert!(spent["isError"] == true && text(&spent).contains("has used"), "{spent}");
    assert_eq!(fake.requests().len(), count + 1);
    client.end().await;
}
