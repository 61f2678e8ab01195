//! A client of the test's own: lines out, lines in, each checked against the official schema.

use std::ops::{Deref, DerefMut};

use domain::SessionId;
use domain::command::Catalog;
use domain::model::ModelInfo;
use serde_json::{Value, json};
use testkit::{FakeEngine, Lines, Seen};
use tokio::task::JoinHandle;

pub(crate) struct Client {
    lines: Lines,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

impl Deref for Client {
    type Target = Lines;

    fn deref(&self) -> &Lines {
        &self.lines
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }
}

pub(crate) fn catalog() -> Catalog {
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
    pub(crate) fn connect(engine: &FakeEngine, buffer: usize) -> Self {
        let (lines, input, output) = Lines::piped(buffer, true, crate::schema::check_message);
        let serving = tokio::spawn(proto_acp::serve(engine.engine(), rpc::Transport::stream(input, output)));
        Self { lines, serving }
    }

    /// An initialized connection.
    pub(crate) async fn start(capabilities: Value) -> (Self, FakeEngine) {
        let engine = FakeEngine::start(catalog());
        let mut client = Self::connect(&engine, 1 << 20);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        client.request("initialize", params).await;
        (client, engine)
    }

    /// The same with a session in it.
    pub(crate) async fn session(capabilities: Value) -> (Self, FakeEngine, SessionId) {
        let (mut client, mut engine) = Self::start(capabilities).await;
        let opened = client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
        let session = SessionId::new(opened["sessionId"].as_str().unwrap());
        assert!(matches!(engine.next().await, Seen::Open { .. }));
        assert_eq!(client.update().await["sessionUpdate"], "available_commands_update");
        (client, engine, session)
    }

    pub(crate) async fn prompt(&mut self, session: &SessionId, text: &str) -> u64 {
        let blocks = json!([{"type": "text", "text": text}]);
        self.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await
    }

    /// The next update of a session.
    pub(crate) async fn update(&mut self) -> Value {
        self.next_where(|message| message["method"] == "session/update").await["params"]["update"].clone()
    }

    pub(crate) async fn updates(&mut self, count: usize) -> Vec<Value> {
        let mut updates = Vec::new();
        for _ in 0..count {
            updates.push(self.update().await);
        }
        updates
    }

    /// Updates that came and were not read.
    pub(crate) fn unread(&self) -> Vec<&Value> {
        self.held
            .iter()
            .filter(|it| it["method"] == "session/update")
            .map(|it| &it["params"]["update"])
            .collect()
    }
}

pub(crate) fn tool_call(name: &str, input: Value) -> domain::ToolCall {
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
