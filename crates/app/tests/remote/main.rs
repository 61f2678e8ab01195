//! Editors of another machine through the real program: `serve --listen`, `acp --connect`, `server --connect`, a fake model, and a
//! network that loses connections.

#![cfg(feature = "serve")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests start the program and read their scale from the environment"
)]

mod certificates;
mod emacs;
mod ends;
mod network;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rpc::{Framing, Messages, Transport};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::fake_model::Request;
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use network::Network;

const WAIT: Duration = Duration::from_secs(120);
const DRIVER: &str = "anna";

/// How many connections are cut.
fn wanted_cuts() -> usize {
    let scale = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse::<usize>().ok());
    30 * scale.unwrap_or(1).clamp(1, 100)
}

/// A home of its own, a model, and a server for other machines in it.
struct World {
    home: TempDir,
    model: FakeModel,
    token: String,
    port: u16,
    fingerprint: String,
    server: Child,
    /// How the server was started, without its address.
    arguments: Vec<String>,
    config: Value,
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dragoman"));
    command.args(arguments).env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
    command.env("HOME", home).current_dir(home).kill_on_drop(true);
    command
}

async fn output(mut command: Command) -> Value {
    let output = tokio::time::timeout(WAIT, command.output()).await.expect("in time").expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Starts a server and reads what it prints. `None` in a program without the page, which `make` builds.
async fn launch(home: &Path, arguments: &[String], config: &Value, port: u16) -> Option<(Child, Value)> {
    let mut server = command(home, &["serve", "--listen", &format!("127.0.0.1:{port}")]);
    server.args(arguments).env("DRAGOMAN_CONFIG", config.to_string());
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(server.stdout.take().expect("stdout"));
    tokio::time::timeout(WAIT, stdout.read_line(&mut line)).await.expect("in time").expect("a line");
    if line.is_empty() {
        let mut told = String::new();
        let _ = server.stderr.take().expect("stderr").read_to_string(&mut told).await;
        assert!(told.contains("without the page"), "{told}");
        testkit::skip("the program was built without its pages");
        return None;
    }
    Some((server, serde_json::from_str(&line).expect("JSON")))
}

impl World {
    /// `None` in a program without the page, which `make` builds.
    async fn start() -> Option<Self> {
        Self::start_with(&[], &[], json!({})).await
    }

    /// With these arguments for the account and for the server, and this as the model.
    async fn start_with(account: &[&str], arguments: &[&str], priced: Value) -> Option<Self> {
        let home = tempfile::tempdir().expect("a temporary home");
        let work = home.path().join("work");
        std::fs::create_dir(&work).expect("a workspace");
        let model = FakeModel::start().await;
        model.respond_with(answer);
        let mut added =
            command(home.path(), &["serve", "tokens", "add", DRIVER, "--role", "drive", "--json"]);
        added.args(account);
        let token = output(added).await["token"].as_str().expect("a token").to_owned();
        let config = json!({
            "defaultModel": "fake/m1",
            "providers": {"fake": {"api": "openai-chat", "url": model.url(), "key": "k", "models": {"m1": priced}}},
            "sandbox": "ask",
        });
        let work = work.display().to_string();
        let own = ["--host", "127.0.0.2", "--json", "--workspace", &work];
        let arguments: Vec<String> = own.iter().chain(arguments).map(|it| (*it).to_owned()).collect();
        let (server, told) = launch(home.path(), &arguments, &config, 0).await?;
        let port = u16::try_from(told["port"].as_u64().expect("a port")).expect("a port");
        let fingerprint = told["fingerprint"].as_str().expect("a fingerprint").to_owned();
        Some(Self { home, model, token, port, fingerprint, server, arguments, config })
    }

    /// `kill -9`, and another process on the same port and store.
    async fn restart(&mut self) {
        self.server.kill().await.expect("it is killed");
        let (server, _) =
            launch(self.home.path(), &self.arguments, &self.config, self.port).await.expect("it starts");
        self.server = server;
    }

    /// Runs the program in the home of the server.
    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = command(self.home.path(), arguments);
        let output = tokio::time::timeout(WAIT, command.output()).await.expect("in time").expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn work(&self) -> PathBuf {
        self.home.path().join("work").canonicalize().expect("it is there")
    }

    /// An editor that reaches the server at this address of the machine.
    fn editor(&self, protocol: &str, address: &str) -> Editor {
        let url = format!("https://{address}:{}", self.port);
        let mut relay = command(self.home.path(), &[protocol, "--connect", &url]);
        relay.args(["--fingerprint", &self.fingerprint]).env("DRAGOMAN_TOKEN", &self.token);
        Editor::start(relay, if protocol == "acp" { Framing::Newline } else { Framing::Header })
    }

    /// How often a prompt reached the model.
    fn asked(&self, words: &str) -> usize {
        self.model.requests().iter().filter(|request| is_first_step(request, words)).count()
    }
}

fn is_first_step(request: &Request, words: &str) -> bool {
    !request.tools().is_empty()
        && request.tool_results().is_empty()
        && request.last_user_text().contains(words)
}

/// What the model says to a prompt: a file where the prompt wants one, else a long answer in small parts.
fn answer(request: &Request) -> Answer {
    let prompt = request.last_user_text();
    if prompt.contains("Write") && request.tool_results().is_empty() && !request.tools().is_empty() {
        return Answer::new().call("c1", "write_file", json!({"path": "made.txt", "content": "made\n"}));
    }
    let number = prompt.split_whitespace().last().unwrap_or_default().to_owned();
    Answer::new().chunks(parts(&number)).every(Duration::from_millis(2))
}

fn parts(number: &str) -> Vec<String> {
    (0..80).map(|part| format!("{number}.{part}: größer 🌍 {}\n", "x".repeat((part % 7) * 11))).collect()
}

struct Editor {
    child: Child,
    messages: Messages,
    last_id: u64,
}

impl Editor {
    fn start(mut command: Command, framing: Framing) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let (stdin, stdout) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
        let messages = rpc::messages(framing, 1 << 24, Transport::stream(stdout, stdin)).expect("a runtime");
        Self { child, messages, last_id: 0 }
    }

    async fn send(&mut self, message: Value) {
        self.messages.outgoing.send(message.to_string()).await.expect("the program is there");
    }

    async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})).await;
        self.last_id
    }

    async fn next(&mut self) -> Value {
        let next =
            tokio::time::timeout(WAIT, self.messages.incoming.recv()).await.expect("a message in time");
        serde_json::from_str(&next.expect("the program is there")).expect("JSON")
    }

    /// The messages up to the one that fits. A person allows everything once.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if fits(&message) {
                return (before, message);
            }
            if message["method"] == "session/request_permission" {
                let allowed = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
                self.send(json!({"jsonrpc": "2.0", "id": message["id"], "result": allowed})).await;
            }
            before.push(message);
        }
    }

    async fn response(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.call(method, params).await;
        self.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let (_, response) = self.response(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    async fn end(mut self) {
        drop(self.messages);
        let status = tokio::time::timeout(WAIT, self.child.wait()).await.expect("it ends").expect("a status");
        assert!(status.success(), "{status}");
    }
}

fn said(messages: &[Value]) -> String {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// ACP through the program, TLS, accounts and the guard, while connections are cut: every answer is whole, every prompt runs
/// once, the approved file is where the server is; a client that was never cut sees the same chat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acp_editor_of_another_machine() {
    let Some(world) = World::start().await else { return };
    let most = wanted_cuts();
    let network = Network::start(world.port, 0xacb, most).await;
    let mut editor = world.editor("acp", "127.0.0.2");
    let offered = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    editor.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": offered})).await;
    let (_, refused) = editor.response("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    let told = refused["error"]["message"].as_str().expect("an error");
    assert!(told.contains(&world.work().display().to_string()), "the error names the workspaces: {told}");
    let new = json!({"cwd": world.work(), "mcpServers": []});
    let session = editor.request("session/new", new).await["sessionId"].clone();
    let (mut round, mut all) = (0, String::new());
    while network.cuts() < most || round < 3 {
        round += 1;
        let words = format!("{} marker-{round} 7{round}", if round == 2 { "Write" } else { "Count" });
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]});
        let (seen, response) = editor.response("session/prompt", prompt).await;
        assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
        assert_eq!(said(&seen), parts(&format!("7{round}")).concat(), "round {round}");
        assert_eq!(world.asked(&format!("marker-{round} ")), 1, "round {round}");
        all.push_str(&said(&seen));
    }
    assert_eq!(std::fs::read_to_string(world.work().join("made.txt")).expect("it is written"), "made\n");
    editor.end().await;
    let mut uncut = world.editor("acp", "127.0.0.1");
    uncut.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let load = json!({"sessionId": session, "cwd": world.work(), "mcpServers": []});
    let (seen, _) = uncut.response("session/load", load).await;
    assert_eq!(said(&seen), all);
    uncut.end().await;
}

/// The text of the assistant in messages of ECA.
fn said_by_assistant(messages: &[Value]) -> String {
    let contents =
        messages.iter().filter(|it| it["method"] == "chat/contentReceived").map(|it| &it["params"]);
    let texts = contents.filter(|it| it["role"] == "assistant" && it["content"]["type"] == "text");
    texts.filter_map(|it| it["content"]["text"].as_str()).collect()
}

/// The same for ECA.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eca_editor_of_another_machine() {
    let Some(world) = World::start().await else { return };
    let most = wanted_cuts();
    let network = Network::start(world.port, 0xeca, most).await;
    let mut editor = world.editor("server", "127.0.0.2");
    let folder = |path: &Path| json!([{"uri": format!("file://{}", path.display()), "name": "work"}]);
    let initialize = |folders: Value| {
        let capabilities = json!({"codeAssistant": {"chat": true}});
        json!({"processId": 1, "capabilities": capabilities, "workspaceFolders": folders})
    };
    editor.request("initialize", initialize(folder(&world.work()))).await;
    editor.send(json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})).await;
    let mut round = 0;
    while network.cuts() < most || round < 3 {
        round += 1;
        let words = format!("Count marker-{round} 7{round}");
        editor.call("chat/prompt", json!({"chatId": "c", "message": words})).await;
        let ended = |it: &Value| {
            let params = &it["params"];
            params["chatId"] == "c"
                && params["content"]["type"] == "progress"
                && params["content"]["state"] == "finished"
        };
        let (seen, _) = editor.until(ended).await;
        assert_eq!(said_by_assistant(&seen), parts(&format!("7{round}")).concat(), "round {round}");
        assert_eq!(world.asked(&format!("marker-{round} ")), 1, "round {round}");
    }
    let answered = editor.request("shutdown", Value::Null).await;
    assert!(answered.is_null() || answered.is_object());
    editor.send(json!({"jsonrpc": "2.0", "method": "exit"})).await;
    let status = tokio::time::timeout(WAIT, editor.child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success(), "{status}");
}

/// Wrong tokens and certificates: nothing happens, and the editor is told why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_or_certificate_is_refused() {
    let Some(world) = World::start().await else { return };
    let url = format!("https://127.0.0.1:{}", world.port);
    let file = world.home.path().join("token");
    std::fs::write(&file, "dragoman_wrong\n").expect("a file");
    let file = file.display().to_string();
    let other = "00".repeat(32);
    for (arguments, told) in [
        (vec!["--fingerprint", &world.fingerprint, "--token-file", &file], "refuses the connection"),
        (vec!["--fingerprint", &other], "certificate"),
        (vec![], "certificate"),
    ] {
        let mut relay = command(world.home.path(), &["acp", "--connect", &url]);
        relay.args(&arguments).env("DRAGOMAN_TOKEN", &world.token);
        let mut editor = Editor::start(relay, Framing::Newline);
        let (_, response) = editor.response("initialize", json!({"protocolVersion": 1})).await;
        let message = response["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(told), "{arguments:?}: {response}");
        assert!(!message.contains("dragoman_"), "a token is in no message: {message}");
        let status =
            tokio::time::timeout(WAIT, editor.child.wait()).await.expect("it ends").expect("a status");
        assert!(!status.success());
    }
    // Without any token the program does not even connect.
    let mut relay = command(world.home.path(), &["acp", "--connect", &url]);
    let output = relay.stdin(Stdio::null()).output().await.expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("There is no token for this server"), "{told}");
}
