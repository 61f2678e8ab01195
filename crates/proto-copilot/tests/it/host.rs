//! A host for tests: the real connection over a pipe in memory, and the engine's end of the link, scripted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::command::{Catalog, Completed, Completion, Workspace};
use domain::link::Envelope;
use domain::model::Tokens;
use domain::{Abilities, Command, Failure, Link};
use proto_copilot::Limits;
use rpc::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// No test waits longer for one line.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the scripted engine does with a call to a model.
#[derive(Clone)]
pub enum Say {
    Text(String),
    Fail(Failure),
    /// Never answers.
    Hang,
}

pub struct Host {
    output: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub asked: Arc<Mutex<Vec<Completion>>>,
    pub served: JoinHandle<std::io::Result<()>>,
}

impl Host {
    /// A connection whose model answers each call with the next of `says`, the last one again and again; without any
    /// there is no model.
    pub async fn with(says: Vec<Say>, limits: Limits) -> Host {
        let (link, port, commands) = Link::memory(Abilities::default()).await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(play(commands, says.into(), asked.clone(), port));
        Self::over(link, limits, asked)
    }

    /// A connection whose engine is gone.
    pub async fn without_engine() -> Host {
        let (link, _port, commands) = Link::memory(Abilities::default()).await;
        drop(commands);
        Self::over(link, Limits::default(), Arc::default())
    }

    pub async fn new() -> Host {
        Self::with(Vec::new(), Limits::default()).await
    }

    fn over(link: Link, limits: Limits, asked: Arc<Mutex<Vec<Completion>>>) -> Host {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(theirs);
        let served = tokio::spawn(proto_copilot::serve(
            link,
            Workspace::default(),
            Transport::stream(input, output),
            limits,
        ));
        let (input, output) = tokio::io::split(ours);
        Host { output, lines: BufReader::new(input).lines(), asked, served }
    }

    pub async fn send_line(&mut self, line: &str) {
        self.output.write_all(line.as_bytes()).await.expect("the connection takes input");
        self.output.write_all(b"\n").await.expect("the connection takes input");
    }

    pub async fn send(&mut self, id: u64, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        self.send_line(&line).await;
    }

    pub async fn close_input(&mut self) {
        self.output.shutdown().await.expect("the pipe closes");
    }

    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        serde_json::from_str(&line.expect("a whole line").expect("not the end")).expect("JSON")
    }

    /// The answer to a request, and the chunks before it.
    pub async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut chunks = Vec::new();
        loop {
            let message = self.next().await;
            if message["method"] == "stream/chunk" {
                chunks.push(message["params"].clone());
            } else if message["id"] == id {
                return (message, chunks);
            }
        }
    }

    pub async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(id, method, params).await;
        self.answer(id).await.0
    }

    /// The code of an interface for a specification.
    pub async fn generated(&mut self, spec: Value) -> String {
        let answer = self.call(900, "generate", json!({"spec": spec, "format": "react"})).await;
        answer["result"]["code"].as_str().unwrap_or_else(|| panic!("no code: {answer}")).to_owned()
    }

    pub fn calls(&self) -> Vec<Completion> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn play(
    mut commands: mpsc::Receiver<Envelope>,
    mut says: VecDeque<Say>,
    asked: Arc<Mutex<Vec<Completion>>>,
    _port: domain::link::FrontPort,
) {
    let mut hanging = Vec::new();
    while let Some(Envelope { command, .. }) = commands.recv().await {
        match command {
            Command::Enter { reply, .. } => {
                let _ = reply.send(Ok(Catalog::default()));
            }
            Command::Complete { completion, reply, .. } => {
                asked.lock().expect("no panic").push(completion);
                let say = if says.len() > 1 { says.pop_front() } else { says.front().cloned() };
                match say {
                    Some(Say::Text(text)) => {
                        let model = "fake/m1".to_owned();
                        let _ =
                            reply.send(Ok(Completed { text, model, tokens: Tokens::default(), cost: None }));
                    }
                    Some(Say::Fail(failure)) => drop(reply.send(Err(failure))),
                    Some(Say::Hang) => hanging.push(reply),
                    None => drop(reply.send(Err(Failure::auth("No model is configured.")))),
                }
            }
            Command::Detach => {}
            other => panic!("only a one-shot call may reach the engine, not {other:?}"),
        }
    }
}

/// Two tables, `Users` and `Orders`, each with a name.
pub fn two_tables() -> Value {
    let list = |name: &str| {
        json!({"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": {
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

/// As hosts send it.
pub fn normalized() -> Value {
    let model = json!({"name": "Pet", "type": "object", "properties": {
        "id": {"name": "id", "type": "integer"}, "name": {"name": "name", "type": "string"}}});
    json!({
        "format": "openapi3", "metadata": {"title": "Pets", "version": "1", "baseUrl": "https://pets.example"},
        "endpoints": [{"path": "/pets", "method": "GET", "parameters": [], "responses": {"200": {
            "statusCode": "200", "description": "", "schema": {"name": "Pets", "type": "array", "items": model}}}}],
        "queries": [], "mutations": [], "subscriptions": [], "models": [model],
    })
}

pub const YAML: &str = "openapi: 3.0.3\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets:\n    get:\n      responses:\n        '200': {description: all}\n";
pub const SDL: &str = "type Query { pets: [Pet] }\ntype Pet { id: ID! name: String }\n";
