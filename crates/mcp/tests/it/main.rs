//! Real servers: a scripted one in Python, good and bad, over pipes and HTTP, and the official reference server.
//! Processes are watched from outside by /proc. Every wait has a deadline, so a hang is a failure.
#![allow(clippy::disallowed_methods, reason = "tests start and watch processes of their own")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![cfg(target_os = "linux")]

mod auth;
mod bad;
mod calls;
mod http;
mod kept;
mod lifecycle;
mod pins;
mod popular;
mod reference;
mod resources;
mod sampling;
mod sdk;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::command::{ServerSpec, ServerTransport};
use domain::tool::{
    Invocation, Sample, Sampled, Scope, ServerStatus, Tool, ToolContext, ToolResult, ToolServer, ToolSource,
};
use domain::{
    Abilities, Answer, AskKind, BoxFuture, CancellationToken, Failure, HostCall, HostReply, ItemId, Part,
    SessionId,
};
use mcp::{Options, ServerConfig, Supervisor};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Generous: the machine may be busy.
const LONG: Duration = Duration::from_secs(30);

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/scripted.py")
}

/// A place for logs and the servers that write them.
struct Bench {
    folder: TempDir,
    changes: Arc<Mutex<u32>>,
}

impl Bench {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), changes: Arc::default() }
    }

    fn options(&self) -> Options {
        let changes = self.changes.clone();
        let root: Vec<PathBuf> = vec![self.folder.path().canonicalize().unwrap()];
        Options {
            start_timeout: LONG,
            // A busy machine starts Python in more than the usual two seconds.
            probe_timeout: LONG,
            call_timeout: LONG,
            // Restarts have a test of their own.
            restart_wait: Duration::from_secs(3600),
            ..Options::new(root, Arc::new(move || *changes.lock().unwrap() += 1))
        }
    }

    /// A scripted server over pipes.
    fn spec(&self, name: &str, mode: &str) -> ServerSpec {
        let args = vec![script().display().to_string(), mode.into(), "--log".into(), self.log_path(name)];
        let env = vec![("SECRET_KEY".to_owned(), "very-secret-value".to_owned())];
        ServerSpec {
            name: name.into(),
            transport: ServerTransport::Stdio { command: "python3".into(), args, env },
        }
    }

    fn log_path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Started servers of these names and modes.
    fn supervisor(&self, servers: &[(&str, &str)]) -> Supervisor {
        self.with_options(servers, self.options())
    }

    fn with_options(&self, servers: &[(&str, &str)], options: Options) -> Supervisor {
        let configs =
            servers.iter().map(|(name, mode)| ServerConfig::fixed(&self.spec(name, mode))).collect();
        let supervisor = Supervisor::new(configs, options);
        supervisor.start();
        supervisor
    }

    /// What a server told of itself, all of one kind.
    fn told(&self, name: &str, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.log_path(name)).unwrap_or_default();
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter_map(|mut value| value.get_mut(kind).map(Value::take)).collect()
    }

    /// The process ids of a server and of its children.
    fn pids(&self, name: &str) -> Vec<u32> {
        let children =
            self.told(name, "children").into_iter().flat_map(|list| list.as_array().cloned().unwrap());
        let all = self.told(name, "pid").into_iter().chain(children);
        all.map(|pid| pid.as_u64().unwrap() as u32).collect()
    }
}

fn server(source: &dyn ToolSource, name: &str) -> ToolServer {
    source.servers().into_iter().find(|server| server.name == name).unwrap()
}

/// Waits until the server is in this state.
async fn reaches(source: &dyn ToolSource, name: &str, status: ServerStatus) -> ToolServer {
    let reached = within(LONG, || server(source, name).status == status).await;
    let server = server(source, name);
    assert!(reached, "{name} never was {status:?}: {:?} {:?}", server.status, server.error);
    server
}

async fn within(limit: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if happened() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Neither running nor waiting to be reaped by us; an orphan's zombie is init's affair.
fn is_gone(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    let mut fields = stat[stat.rfind(')').unwrap() + 2..].split(' ');
    let (state, parent) = (fields.next().unwrap(), fields.next().unwrap());
    state == "Z" && parent != std::process::id().to_string()
}

async fn all_gone(pids: &[u32]) -> bool {
    within(Duration::from_secs(5), || pids.iter().all(|pid| is_gone(*pid))).await
}

/// What a running call may ask of the engine, played by a test.
struct Port {
    output: Mutex<String>,
    asked: Mutex<Vec<AskKind>>,
    sampled: Mutex<Vec<Sample>>,
    /// `None`: the user never answers.
    answer: Option<Answer>,
}

impl Port {
    fn new(answer: Option<Answer>) -> Arc<Self> {
        Arc::new(Self {
            output: Mutex::default(),
            asked: Mutex::default(),
            sampled: Mutex::default(),
            answer,
        })
    }
}

impl ToolContext for Port {
    fn output(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn host(&self, _call: HostCall, _deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>> {
        Box::pin(async { Err(Failure::user("no host")) })
    }

    fn ask(&self, kind: AskKind) -> BoxFuture<'_, Answer> {
        self.asked.lock().unwrap().push(kind);
        let answer = self.answer.clone();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn sample(&self, sample: Sample) -> BoxFuture<'_, Result<Sampled, Failure>> {
        self.sampled.lock().unwrap().push(sample);
        let sampled = Sampled { text: "Paris".into(), model: "test/one".into(), is_cut: false };
        Box::pin(async { Ok(sampled) })
    }
}

fn tool(source: &dyn ToolSource, name: &str) -> Arc<dyn Tool> {
    let found = source.tools().into_iter().find(|tool| tool.spec().offered_name() == name);
    found.unwrap_or_else(|| panic!("{name} is offered"))
}

fn invocation(input: Value, port: Arc<Port>, cancel: CancellationToken) -> Invocation {
    Invocation {
        item: ItemId(1),
        input,
        scope: scope(),
        outside_allowed: false,
        contained: false,
        keeps_run_later: false,
        run_later: Vec::new(),
        cancel,
        context: port,
    }
}

fn scope() -> Scope {
    Scope {
        session: SessionId::new("test"),
        roots: Arc::from(Vec::new()),
        read_only: false,
        remembered: Arc::from(Vec::new()),
        forbidden_paths: std::sync::Arc::from([]),
        tainted: false,
        secret_read: false,
    }
}

/// Calls a tool by its offered name.
async fn call(source: &dyn ToolSource, name: &str, input: Value) -> ToolResult {
    call_with(source, name, input, Port::new(None)).await
}

async fn call_with(source: &dyn ToolSource, name: &str, input: Value, port: Arc<Port>) -> ToolResult {
    let tool = tool(source, name);
    let run = tool.run(invocation(input, port, CancellationToken::new()));
    tokio::time::timeout(LONG, run).await.unwrap_or_else(|_| panic!("{name} ends"))
}

fn said(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { mime, .. } => format!("<{mime}>"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The echo of a word: the shortest proof that a server works.
async fn echoes(source: &dyn ToolSource, server: &str) {
    let result = call(source, &format!("{server}__echo"), json!({"text": "hello"})).await;
    assert_eq!((said(&result.parts).as_str(), result.error), ("hello", false));
}
