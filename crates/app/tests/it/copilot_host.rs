//! A host of the Copilot CLI contract for tests: it starts the real binary and keeps every line of its stdout.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::client::Home;

/// No test waits longer than this for one line.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Host {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    logs: JoinHandle<String>,
    /// Answers that came while another was awaited.
    early: Vec<Value>,
}

impl Host {
    pub fn start(home: &Home, config: &Value) -> Self {
        Self::start_with(home, config, &[])
    }

    pub fn start_with(home: &Home, config: &Value, arguments: &[&str]) -> Self {
        let mut command: Command = home.command(&["copilot"]).into();
        command.args(arguments).env("DRAGOMAN_CONFIG", config.to_string());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.kill_on_drop(true).spawn().expect("the program starts");
        let mut stderr = child.stderr.take().expect("stderr");
        let logs = tokio::spawn(async move {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text).await;
            text
        });
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self { stdin: child.stdin.take(), child, lines, logs, early: Vec::new() }
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).await.expect("the program reads");
        stdin.flush().await.expect("the program reads");
    }

    pub async fn send(&mut self, id: u64, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    /// The next line, which is a message of JSON-RPC whatever it says.
    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        let line = line.expect("UTF-8").expect("the output goes on");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// The answer to a request, and the chunks before it.
    pub async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        if let Some(at) = self.early.iter().position(|message| message["id"] == id) {
            return (self.early.remove(at), Vec::new());
        }
        let mut chunks = Vec::new();
        loop {
            let message = self.next().await;
            if message["method"] == "stream/chunk" {
                chunks.push(message["params"].clone());
            } else if message["id"] == id {
                return (message, chunks);
            } else {
                self.early.push(message);
            }
        }
    }

    pub async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(id, method, params).await;
        self.answer(id).await.0
    }

    /// The code of the interface for a specification.
    pub async fn generated(&mut self, spec: &Value) -> String {
        let answer = self.call(900, "generate", json!({"spec": spec, "format": "react"})).await;
        answer["result"]["code"].as_str().unwrap_or_else(|| panic!("no code: {answer}")).to_owned()
    }

    pub async fn exit(&mut self) {
        self.send_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n").await;
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end: the exit code and what was logged.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        let status = status.expect("it ends").expect("a status");
        (status.code(), self.logs.await.expect("the logs"))
    }
}

/// One of the specifications of `apiui`, as its text.
pub fn specification(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../apiui/tests/specs");
    std::fs::read_to_string(folder.join(name)).expect("a specification")
}

/// Two tables, `Users` and `Orders`.
pub fn two_tables() -> Value {
    let list = |name: &str| {
        json!({"get": {"responses": {"200": {"description": "all", "content": {"application/json": {"schema": {
            "type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}}}}}}}})
    };
    let schema = json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"}, "status": {"type": "string"}}});
    json!({
        "openapi": "3.0.3", "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/users": list("User"), "/orders": list("Order")},
        "components": {"schemas": {"User": schema, "Order": schema}},
    })
}
