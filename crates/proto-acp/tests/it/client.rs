//! A client of the test's own: lines out, lines in, each checked against the official schema.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use domain::SessionId;
use domain::command::Catalog;
use domain::model::ModelInfo;
use serde_json::{Value, json};
use testkit::{FakeEngine, Seen};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::schema::schema;

const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    output: Option<WriteHalf<DuplexStream>>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// Methods of our unanswered requests.
    called: HashMap<u64, String>,
    last: u64,
    /// Came while something else was waited for.
    held: VecDeque<Value>,
    pub serving: JoinHandle<std::io::Result<()>>,
}

pub fn catalog() -> Catalog {
    let model = |id: &str, variants: &[&str]| ModelInfo {
        id: id.into(),
        variants: variants.iter().map(|name| (*name).to_owned()).collect(),
        ..ModelInfo::default()
    };
    Catalog {
        models: vec![model("a/plain", &[]), model("b/deep", &["low", "high"])],
        behaviors: vec!["agent".into(), "plan".into()],
        default_model: Some("a/plain".into()),
        default_behavior: "agent".into(),
        ..Catalog::default()
    }
}

impl Client {
    /// A connection that nobody has spoken on.
    pub fn connect(engine: &FakeEngine, buffer: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(buffer);
        let (input, output) = tokio::io::split(theirs);
        let serving = tokio::spawn(proto_acp::serve(engine.engine(), rpc::Transport::stream(input, output)));
        let (input, output) = tokio::io::split(ours);
        Self {
            output: Some(output),
            input: BufReader::new(input).lines(),
            called: HashMap::new(),
            last: 0,
            held: VecDeque::new(),
            serving,
        }
    }

    /// An initialized connection.
    pub async fn start(capabilities: Value) -> (Self, FakeEngine) {
        let engine = FakeEngine::start(catalog());
        let mut client = Self::connect(&engine, 1 << 20);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        client.request("initialize", params).await;
        (client, engine)
    }

    /// The same with a session in it.
    pub async fn session(capabilities: Value) -> (Self, FakeEngine, SessionId) {
        let (mut client, mut engine) = Self::start(capabilities).await;
        let opened = client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
        let session = SessionId::new(opened["sessionId"].as_str().unwrap());
        assert!(matches!(engine.next().await, Seen::Open { .. }));
        assert_eq!(client.update().await["sessionUpdate"], "available_commands_update");
        (client, engine, session)
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    pub async fn send_line(&mut self, line: &str) {
        let output = self.output.as_mut().unwrap();
        output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn hang_up(&mut self) {
        let output = self.output.take();
        output.unwrap().shutdown().await.unwrap();
    }

    pub async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.called.insert(self.last, method.to_owned());
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub async fn prompt(&mut self, session: &SessionId, text: &str) -> u64 {
        let blocks = json!([{"type": "text", "text": text}]);
        self.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await
    }

    /// The next message, whatever it is; `None` at the end of the connection.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.input.next_line()).await;
        let line = line.expect("a message in time").unwrap()?;
        let message: Value = serde_json::from_str(&line).unwrap();
        self.check(&message);
        Some(message)
    }

    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        if let Some(method) = message["method"].as_str() {
            return schema().check_call(method, &message["params"]);
        }
        if let Some(error) = message.get("error") {
            assert!(message.get("result").is_none(), "{message}");
            return schema().check_error(error);
        }
        let method = &self.called[&message["id"].as_u64().unwrap()];
        schema().check_result(method, &message["result"]);
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

    /// The answer to a request of ours, with everything before it still to be read.
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
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// The next update of a session.
    pub async fn update(&mut self) -> Value {
        self.next_where(|message| message["method"] == "session/update").await["params"]["update"].clone()
    }

    pub async fn updates(&mut self, count: usize) -> Vec<Value> {
        let mut updates = Vec::new();
        for _ in 0..count {
            updates.push(self.update().await);
        }
        updates
    }

    /// The next request of the agent's.
    pub async fn asked(&mut self, method: &str) -> Value {
        self.next_where(|message| message["method"] == method).await
    }

    /// Updates that came and were not read.
    pub fn unread(&self) -> Vec<&Value> {
        self.held
            .iter()
            .filter(|it| it["method"] == "session/update")
            .map(|it| &it["params"]["update"])
            .collect()
    }
}

pub fn tool_call(name: &str, input: Value) -> domain::ToolCall {
    domain::ToolCall {
        call_id: "c".into(),
        name: name.into(),
        server: "eca".into(),
        origin: domain::tool_call::Origin::Native,
        input_text: input.to_string(),
        input: Some(input),
        state: domain::ToolState::Running,
        summary: format!("Calling {name}"),
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
