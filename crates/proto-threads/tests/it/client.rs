//! A client of the protocol: one JSON object a line, integer ids, no `jsonrpc`.

use std::collections::VecDeque;
use std::time::Duration;

use domain::command::Catalog;
use domain::host::Grants;
use proto_threads::{Driver, Options};
use serde_json::{Value, json};
use testkit::FakeEngine;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough that no test waits for it unless it means to.
pub const NEVER: Duration = Duration::from_secs(3600);

pub struct Client {
    output: Option<WriteHalf<DuplexStream>>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    last: u64,
    held: VecDeque<Value>,
    pub serving: JoinHandle<std::io::Result<()>>,
}

impl Client {
    pub fn start(driver: Option<Driver>, quiet: Duration) -> (Self, FakeEngine) {
        let engine = FakeEngine::start(Catalog::default());
        let options = Options { driver, workspace: "/w".into(), grants: Grants::Read, quiet };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let transport = rpc::Transport::stream(input, output);
        let serving = tokio::spawn(proto_threads::serve(engine.engine(), transport, options));
        let (input, output) = tokio::io::split(ours);
        let client = Self {
            output: Some(output),
            input: BufReader::new(input).lines(),
            last: 0,
            held: VecDeque::new(),
            serving,
        };
        (client, engine)
    }

    pub async fn hang_up(&mut self) {
        let output = self.output.take();
        output.unwrap().shutdown().await.unwrap();
    }

    pub async fn send(&mut self, message: &Value) {
        let output = self.output.as_mut().unwrap();
        output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send(&json!({"id": self.last, "method": method, "params": params})).await;
        self.last
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"id": request["id"], "result": result})).await;
    }

    pub async fn refuse(&mut self, request: &Value, code: i64) {
        self.send(&json!({"id": request["id"], "error": {"code": code, "message": "no"}})).await;
    }

    /// The next message; `None` at the end.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.input.next_line()).await;
        let message: Value = serde_json::from_str(&line.expect("a message in time").unwrap()?).unwrap();
        check(&message);
        Some(message)
    }

    async fn next_where(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.held.iter().position(&wanted) {
            return self.held.remove(at).unwrap();
        }
        loop {
            let message = self.receive().await.expect("the connection is open");
            if wanted(&message) {
                return message;
            }
            self.held.push_back(message);
        }
    }

    pub async fn response(&mut self, id: u64) -> Value {
        self.next_where(|message| message.get("method").is_none() && message["id"] == id).await
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    pub async fn refused(&mut self, method: &str, params: Value) -> i64 {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {response}"))
    }

    /// The next request of the agent's.
    pub async fn asked(&mut self, method: &str) -> Value {
        self.next_where(|message| message["method"] == method).await
    }

    /// The text of the chunks that came so far, and forgets them.
    pub fn chunks(&mut self) -> String {
        let is_chunk = |it: &Value| it["method"] == "streamMessageChunk";
        let text = self
            .held
            .iter()
            .filter(|it| is_chunk(it))
            .map(|it| it["params"]["chunk"]["chunk"].as_str().unwrap())
            .collect();
        self.held.retain(|it| !is_chunk(it));
        text
    }
}

/// The shape of every message, as the document writes it.
fn check(message: &Value) {
    let members: Vec<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(message["id"].is_u64(), "{message}");
    match members.as_slice() {
        ["id", "method", "params"] => assert!(message["method"].is_string()),
        ["id", "result"] => {}
        ["id", "error"] => {
            assert!(message["error"]["code"].is_i64() && message["error"]["message"].is_string());
        }
        _ => panic!("not a message of the protocol: {message}"),
    }
}
