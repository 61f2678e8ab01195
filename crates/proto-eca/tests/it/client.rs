//! An ECA client: framed messages out and in, every message kept in the order it came.

use std::collections::VecDeque;
use std::time::Duration;

use domain::command::Catalog;
use domain::model::ModelInfo;
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{SessionId, TurnId};
use proto_eca::ServeOptions;
use serde_json::{Value, json};
use testkit::{FakeEngine, Seen};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// No test waits longer than this for one message.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    output: WriteHalf<DuplexStream>,
    input: BufReader<ReadHalf<DuplexStream>>,
    last_id: u64,
    held: VecDeque<Value>,
}

pub(crate) fn catalog() -> Catalog {
    let model = |id: &str, variants: &[&str]| ModelInfo {
        id: id.into(),
        variants: variants.iter().map(|name| (*name).to_owned()).collect(),
        ..ModelInfo::default()
    };
    Catalog {
        models: vec![model("a/plain", &[]), model("myProvider/deep", &["low", "high"])],
        behaviors: vec!["agent".into(), "plan".into()],
        default_model: Some("a/plain".into()),
        default_behavior: "agent".into(),
        welcome: "Welcome".into(),
        ..Catalog::default()
    }
}

impl Client {
    /// A connection without any message.
    pub(crate) fn connect(engine: &FakeEngine) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(near);
        let (far_input, far_output) = tokio::io::split(far);
        let (parent, _) = tokio::sync::mpsc::unbounded_channel();
        let transport = rpc::Transport::stream(far_input, far_output);
        tokio::spawn(proto_eca::serve(
            engine.engine(),
            transport,
            ServeOptions {
                parent,
                is_remote: false,
                global_config: Some("/home/u/.config/dragoman/config.json".into()),
            },
        ));
        Self { output, input: BufReader::new(input), last_id: 0, held: VecDeque::new() }
    }

    /// A connection that has been initialized and has received the first lists.
    pub(crate) async fn start() -> (Self, FakeEngine) {
        let engine = FakeEngine::start(catalog());
        let mut client = Self::connect(&engine);
        client.request("initialize", json!({"capabilities": {"codeAssistant": {"chat": true}}})).await;
        client.notify("initialized", Value::Null).await;
        client.until(|it| it["method"] == "config/updated").await;
        (client, engine)
    }

    /// The same with a chat in which a turn runs and the user's text is shown.
    pub(crate) async fn in_turn() -> (Self, FakeEngine, SessionId, TurnId) {
        let (mut client, mut engine) = Self::start().await;
        client.call("chat/prompt", json!({"chatId": "c", "message": "Hello"})).await;
        assert!(matches!(engine.next().await, Seen::Open { .. }));
        let (session, turn, _) = engine.prompt().await;
        engine.begin(&session, turn, 1, "Hello");
        client.until(|it| it["params"]["role"] == "user").await;
        (client, engine, session, turn)
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.send_bytes(&frame(&message)).await;
        self.last_id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send_bytes(&frame(&json!({"jsonrpc": "2.0", "method": method, "params": params}))).await;
    }

    /// The whole response; the messages before it are kept.
    pub(crate) async fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let mut before = self.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
        let response = before.pop().unwrap();
        self.held.extend(before);
        response
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let response = self.response(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// The messages up to and including the one that fits, in their order.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = match self.held.pop_front() {
                Some(message) => message,
                None => self.receive().await,
            };
            let is_last = fits(&message);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    /// The contents up to the end of the turn.
    pub(crate) async fn contents(&mut self) -> Vec<Value> {
        let messages = self.until(|it| it["params"]["content"]["state"] == "finished").await;
        messages.into_iter().filter(|it| it["method"] == "chat/contentReceived").map(content).collect()
    }

    async fn receive(&mut self) -> Value {
        tokio::time::timeout(TIMEOUT, self.read()).await.expect("a message in time")
    }

    async fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.input.read_line(&mut line).await.unwrap() > 0, "the connection is open");
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(digits) => length = digits.parse().unwrap(),
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.input.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

fn content(mut message: Value) -> Value {
    message["params"]["content"].take()
}

pub(crate) fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn tool_call(name: &str, state: ToolState) -> ToolCall {
    ToolCall {
        call_id: "c".into(),
        name: name.into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: None,
        state,
        summary: String::new(),
        details: None,
        manual_approval: false,
        live_output: String::new(),
        result: Vec::new(),
        error: false,
        millis: 0,
        locations: Vec::new(),
        provider: None,
    }
}
