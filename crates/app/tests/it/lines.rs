//! A client of a protocol of lines: the real binary in a sealed home, one JSON object a line, each one checked: those of
//! ACP against the official schema, those of the thread protocol against the shape its document gives.

use std::collections::{HashMap, VecDeque};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::Home;
use crate::schema::schema;

/// No test waits longer than this for one message.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct LineClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    /// Messages carry `jsonrpc`.
    versioned: bool,
    last: u64,
    /// Methods of our requests.
    called: HashMap<u64, String>,
    early: VecDeque<Value>,
}

impl LineClient {
    pub fn spawn(home: &Home, config: &Value, arguments: &[&str]) -> Self {
        let mut command: Command = home.command(arguments).into();
        let mut child = command
            .env("DRAGOMAN_CONFIG", config.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let versioned = arguments[0] != "threads";
        Self { child, stdin, stdout, versioned, last: 0, called: HashMap::new(), early: VecDeque::new() }
    }

    /// An ACP connection with a session in it, and the session's id.
    pub async fn acp(home: &Home, config: &Value, capabilities: Value) -> (Self, Value) {
        let mut client = Self::spawn(home, config, &["acp"]);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        client.request("initialize", params).await;
        let new = json!({"cwd": home.workspace(), "mcpServers": []});
        let session = client.request("session/new", new).await["sessionId"].clone();
        (client, session)
    }

    pub async fn send(&mut self, mut message: Value) {
        if self.versioned {
            message["jsonrpc"] = json!("2.0");
        }
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    pub async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.called.insert(self.last, method.to_owned());
        self.send(json!({"id": self.last, "method": method, "params": params})).await;
        self.last
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params})).await;
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"id": request["id"], "result": result})).await;
    }

    pub async fn refuse(&mut self, request: &Value, code: i64) {
        self.send(json!({"id": request["id"], "error": {"code": code, "message": "no"}})).await;
    }

    /// The next message in the order of arrival; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        if let Some(early) = self.early.pop_front() {
            return Some(early);
        }
        self.receive().await
    }

    async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.stdout.next_line()).await;
        let line = line.expect("a message in time").expect("lines of text")?;
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if self.versioned {
            self.check_acp(&message);
        } else {
            check_thread_message(&message);
        }
        Some(message)
    }

    fn check_acp(&self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        if let Some(method) = message["method"].as_str() {
            return schema().check_call(method, &message["params"]);
        }
        if let Some(error) = message.get("error") {
            assert!(message.get("result").is_none(), "{message}");
            return schema().check_error(error);
        }
        let method = &self.called[&message["id"].as_u64().expect("an id of ours")];
        schema().check_result(method, &message["result"]);
    }

    /// The response to a request. Other messages are kept for `next`.
    pub async fn response(&mut self, id: u64) -> Value {
        let is_it = |message: &Value| message.get("method").is_none() && message["id"] == json!(id);
        if let Some(at) = self.early.iter().position(is_it) {
            return self.early.remove(at).expect("it is there");
        }
        loop {
            let message = self.receive().await.expect("the server is there");
            if is_it(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The result of a request; an error is a failed test.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// The code and sentence of the error that a request must get.
    pub async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        let code = response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {response}"));
        (code, response["error"]["message"].as_str().expect("a sentence").to_owned())
    }

    /// The client dies: both pipes break.
    pub fn die(self) -> Child {
        self.child
    }

    /// Closes the pipe and waits for the process.
    pub async fn end(mut self) -> std::process::ExitStatus {
        self.stdin = None;
        while self.receive().await.is_some() {}
        let waited = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        waited.expect("the server ends").expect("a status")
    }
}

/// The members of every message, as the document writes them.
fn check_thread_message(message: &Value) {
    let mut members: Vec<&str> = message.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    assert!(message["id"].is_u64(), "{message}");
    match members.as_slice() {
        ["id", "method", "params"] => assert!(message["method"].is_string(), "{message}"),
        ["id", "result"] => {}
        ["error", "id"] => {
            let error = &message["error"];
            assert!(error["code"].is_i64() && error["message"].is_string(), "{message}");
        }
        _ => panic!("not a message of the protocol: {message}"),
    }
}
