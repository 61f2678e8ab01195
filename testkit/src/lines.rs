//! A client of a protocol of lines: one JSON object a line, each one checked as it comes.
//!
//! It knows calls and answers, not what they mean. Invariant: a message is handed out once, and what was not waited for
//! is kept in the order it came.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

/// No test waits longer than this for one message.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Fails on a message that the protocol does not have. An answer comes with the method it answers.
pub type Check = fn(&Value, Option<&str>);

pub struct Lines {
    output: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    input: tokio::io::Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    /// Messages carry `jsonrpc`.
    versioned: bool,
    check: Check,
    last: u64,
    /// Methods of our requests.
    called: HashMap<u64, String>,
    /// Came while something else was waited for.
    pub held: VecDeque<Value>,
}

impl Lines {
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        versioned: bool,
        check: Check,
    ) -> Self {
        let input: Box<dyn AsyncRead + Send + Unpin> = Box::new(input);
        Self {
            output: Some(Box::new(output)),
            input: BufReader::new(input).lines(),
            versioned,
            check,
            last: 0,
            called: HashMap::new(),
            held: VecDeque::new(),
        }
    }

    /// Over a pipe in memory, whose other end is to be served.
    pub fn piped(
        buffer: usize,
        versioned: bool,
        check: Check,
    ) -> (Self, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(buffer);
        let (input, output) = tokio::io::split(ours);
        let (their_input, their_output) = tokio::io::split(theirs);
        (Self::new(input, output, versioned, check), their_input, their_output)
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let output = self.output.as_mut().expect("not hung up");
        output.write_all(bytes).await.expect("the server reads");
        output.flush().await.expect("the server reads");
    }

    pub async fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    /// As it is.
    pub async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    async fn post(&mut self, mut message: Value) {
        if self.versioned {
            message["jsonrpc"] = json!("2.0");
        }
        self.send(&message).await;
    }

    pub async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.called.insert(self.last, method.to_owned());
        self.post(json!({"id": self.last, "method": method, "params": params})).await;
        self.last
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.post(json!({"method": method, "params": params})).await;
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.post(json!({"id": request["id"], "result": result})).await;
    }

    pub async fn refuse(&mut self, request: &Value, code: i64) {
        self.post(json!({"id": request["id"], "error": {"code": code, "message": "no"}})).await;
    }

    pub async fn hang_up(&mut self) {
        let output = self.output.take();
        output.expect("not hung up").shutdown().await.expect("the pipe closes");
    }

    /// The next message from the other side; `None` at the end of the connection.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(TIMEOUT, self.input.next_line()).await;
        let line = line.expect("a message in time").expect("lines of text")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let called = message["id"].as_u64().and_then(|id| self.called.get(&id));
        (self.check)(&message, called.map(String::as_str));
        Some(message)
    }

    /// The next message that was not handed out; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Value> {
        match self.held.pop_front() {
            Some(held) => Some(held),
            None => self.receive().await,
        }
    }

    /// The first message that is wanted; those before it are still to be read.
    pub async fn next_where(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(held) = self.held.iter().position(&wanted).and_then(|at| self.held.remove(at)) {
            return held;
        }
        loop {
            let message = self.receive().await.expect("the connection is open");
            if wanted(&message) {
                return message;
            }
            self.held.push_back(message);
        }
    }

    /// The answer to one of our requests.
    pub async fn response(&mut self, id: u64) -> Value {
        self.next_where(|message| message.get("method").is_none() && message["id"] == id).await
    }

    /// Calls and gives the result; fails on an error.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Calls and gives the code and sentence of the error.
    pub async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.call(method, params).await;
        let response = self.response(id).await;
        let error = response.get("error").unwrap_or_else(|| panic!("{method}: {response}"));
        let code = error["code"].as_i64().expect("a code");
        (code, error["message"].as_str().expect("a sentence").to_owned())
    }

    /// The next request of the other side by this method.
    pub async fn asked(&mut self, method: &str) -> Value {
        self.next_where(|message| message["method"] == method).await
    }
}
