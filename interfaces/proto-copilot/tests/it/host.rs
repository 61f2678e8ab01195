//! A host for tests: the real connection over a pipe in memory, and the engine's end of the link, scripted.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use domain::command::{Catalog, Completed, Completion, WorkspaceSpec};
use domain::link::Envelope;
use domain::model::Tokens;
use domain::{Abilities, Command, Failure, Link};
use proto_copilot::Limits;
use rpc::Transport;
use serde_json::{Value, json};
use testkit::Lines;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) use crate::talk::two_tables;
use crate::talk::{Talk, check_message};

/// What the scripted engine does with a call to a model.
#[derive(Clone)]
pub(crate) enum Say {
    Text(String),
    Fail(Failure),
    /// Never answers.
    Hang,
}

pub(crate) struct Host {
    talk: Talk,
    pub(crate) asked: Arc<Mutex<Vec<Completion>>>,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
}

impl Deref for Host {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        &self.talk
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Talk {
        &mut self.talk
    }
}

impl Host {
    /// A connection whose model answers each call with the next of `says`, the last one again and again; without any
    /// there is no model.
    pub(crate) async fn with(says: Vec<Say>, limits: Limits) -> Host {
        let (link, port, commands) = Link::memory(Abilities::default()).await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(play(commands, says.into(), asked.clone(), port));
        Self::over(link, limits, asked)
    }

    /// A connection whose engine is gone.
    pub(crate) async fn without_engine() -> Host {
        let (link, _port, commands) = Link::memory(Abilities::default()).await;
        drop(commands);
        Self::over(link, Limits::default(), Arc::default())
    }

    pub(crate) async fn new() -> Host {
        Self::with(Vec::new(), Limits::default()).await
    }

    fn over(link: Link, limits: Limits, asked: Arc<Mutex<Vec<Completion>>>) -> Host {
        let (lines, input, output) = Lines::piped(64 << 10, true, check_message);
        let served = tokio::spawn(proto_copilot::serve(
            link,
            WorkspaceSpec::default(),
            Transport::stream(input, output),
            limits,
        ));
        Host { talk: Talk::new(lines), asked, served }
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        self.lines.send_line(line).await;
    }

    pub(crate) async fn close_input(&mut self) {
        self.lines.hang_up().await;
    }

    pub(crate) fn calls(&self) -> Vec<Completion> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn play(
    mut commands: mpsc::Receiver<Envelope>,
    mut says: VecDeque<Say>,
    asked: Arc<Mutex<Vec<Completion>>>,
    _port: domain::link::FrontendPort,
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
            #[allow(clippy::wildcard_enum_match_arm, reason = "every other command is a mistake")]
            other => panic!("only a one-shot call may reach the engine, not {other:?}"),
        }
    }
}

/// As hosts send it.
pub(crate) fn normalized() -> Value {
    let model = json!({"name": "Pet", "type": "object", "properties": {
        "id": {"name": "id", "type": "integer"}, "name": {"name": "name", "type": "string"}}});
    json!({
        "format": "openapi3", "metadata": {"title": "Pets", "version": "1", "baseUrl": "https://pets.example"},
        "endpoints": [{"path": "/pets", "method": "GET", "parameters": [], "responses": {"200": {
            "statusCode": "200", "description": "", "schema": {"name": "Pets", "type": "array", "items": model}}}}],
        "queries": [], "mutations": [], "subscriptions": [], "models": [model],
    })
}

pub(crate) const YAML: &str = "openapi: 3.0.3\ninfo: {title: Pets, version: '1'}\npaths:\n  /pets:\n    get:\n      responses:\n        '200': {description: all}\n";
pub(crate) const SDL: &str = "type Query { pets: [Pet] }\ntype Pet { id: ID! name: String }\n";
