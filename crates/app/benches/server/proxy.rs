//! What `dragoman acp --proxy` adds between an agent of another vendor and its editor: per message, and per start.
//!
//! The agent is a script that writes the time into each piece of its answer.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use testkit::FakeModel;

use crate::at;
use crate::program::{Home, dragoman};
use crate::table::Table;

const CHUNKS: usize = 2_000;
const STARTS: usize = 15;

const AGENT: &str = r#"
import json, sys, time

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
    elif method == "session/new":
        send({"id": number, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        for _ in range(int(params["prompt"][-1]["text"])):
            content = {"type": "text", "text": f"<{time.time_ns()}>"}
            send({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": {"sessionUpdate": "agent_message_chunk", "content": content}}})
            time.sleep(0.001)
        send({"id": number, "result": {"stopReason": "end_turn"}})
"#;

struct Connection {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    fn start(mut command: Command, home: &Home) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut child = command
            .env_clear()
            .envs([("HOME", home.path().as_os_str()), ("PATH", &path)])
            .env("DRAGOMAN_CONFIG", config(home).to_string())
            .current_dir(home.path().join("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let (input, output) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        Self { child, input, output: BufReader::new(output), last: 0 }
    }

    /// The result of a request, and the messages before it with the time at which each came.
    fn request(&mut self, method: &str, params: &Value) -> (Value, Vec<(u128, Value)>) {
        self.last += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        writeln!(self.input, "{message}").and_then(|()| self.input.flush()).expect("it reads");
        let mut before = Vec::new();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it writes");
            let at = now();
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == json!(self.last) && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message}");
                return (message["result"].clone(), before);
            }
            before.push((at, message));
        }
    }

    /// From `initialize` to a session.
    fn open(&mut self, folder: &Path) -> Value {
        self.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        let opened = self.request("session/new", &json!({"cwd": folder, "mcpServers": []}));
        opened.0["sessionId"].clone()
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

fn config(home: &Home) -> Value {
    json!({"chat": {"title": false}, "acpAgents": {"script": {"command": "python3", "args": [home.path().join("agent.py")]}}})
}

fn direct(home: &Home) -> Command {
    let mut command = Command::new("python3");
    command.arg(home.path().join("agent.py"));
    command
}

fn proxied(_: &Home) -> Command {
    let mut command = Command::new(dragoman());
    command.args(["acp", "--proxy", "script"]);
    command
}

/// Milliseconds between the write of the agent and the read of the editor, sorted.
fn delays(command: Command, home: &Home) -> Vec<f64> {
    let mut connection = Connection::start(command, home);
    let session = connection.open(&home.path().join("work"));
    let text = json!([{"type": "text", "text": CHUNKS.to_string()}]);
    let (_, messages) = connection.request("session/prompt", &json!({"sessionId": session, "prompt": text}));
    let mut late = Vec::new();
    for (at, message) in messages {
        let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        let stamps = text.split(['<', '>']).filter_map(|stamp| stamp.parse::<u128>().ok());
        late.extend(stamps.map(|stamp| at.saturating_sub(stamp) as f64 / 1e6));
    }
    assert_eq!(late.len(), CHUNKS, "every piece arrives");
    late.sort_by(f64::total_cmp);
    late
}

/// Milliseconds from the start of the program to an open session, sorted.
fn starts(command: impl Fn(&Home) -> Command, home: &Home) -> Vec<f64> {
    let mut times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let begin = Instant::now();
            Connection::start(command(home), home).open(&home.path().join("work"));
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

pub(crate) fn rows(table: &mut Table, _: &FakeModel) {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("work")).expect("a folder");
    std::fs::write(home.path().join("agent.py"), AGENT).expect("the agent");
    let (own, between) = (delays(direct(&home), &home), delays(proxied(&home), &home));
    for (part, name) in [(0.50, "p50"), (0.99, "p99")] {
        let (between, own) = (at(&between, part), at(&own, part));
        let target = if name == "p50" { own + 0.5 } else { f64::INFINITY };
        let what = format!("acp --proxy: agent's write → editor's read, {name}, beside the agent alone");
        table.pair(&what, "ms", between, own, target);
    }
    let (own, between) = (starts(direct, &home), starts(proxied, &home));
    let (between, own) = (at(&between, 0.5), at(&own, 0.5));
    table.pair("acp --proxy: start → open session, p50, beside the agent", "ms", between, own, own + 5.0);
}
