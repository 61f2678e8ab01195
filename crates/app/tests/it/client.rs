//! An ECA client for tests: the real binary in a sealed home, every message kept.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

/// No test waits longer than this for one message.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A home of its own: nothing of the machine's user is seen.
pub(crate) struct Home {
    pub dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary home");
        std::fs::create_dir_all(dir.path().join("work")).expect("a workspace");
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dragoman"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .current_dir(self.workspace());
        command
    }
}

/// Every chat that a test made replays identically.
impl Drop for Home {
    fn drop(&mut self) {
        let data = self.path().join(".local/share/dragoman");
        if std::thread::panicking() || !data.join("chats.sqlite").exists() {
            return;
        }
        let output = self.command(&["replay", "--all"]).output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The configuration of one fake provider, default model `fake/m1`.
pub(crate) fn fake_provider(url: &str, api: &str) -> Value {
    json!({
        "defaultModel": "fake/m1",
        "providers": {"fake": {"api": api, "url": url, "key": "sk-secret-of-the-test", "models": {"m1": {}}}},
        // Most tests are about the question; commands run in the sandbox all the same.
        "sandbox": "ask",
        // The first words are the title at once, and the model gets no request that a test did not cause.
        "chat": {"title": false},
    })
}

pub(crate) struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    messages: mpsc::UnboundedReceiver<Value>,
    next_id: u64,
    /// Messages that came while another was awaited.
    early: Vec<Value>,
}

impl Client {
    /// Started, not initialized.
    pub(crate) fn spawn(home: &Home, config: &Value) -> Self {
        let mut command: Command = home.command(&["server"]).into();
        command.env("DRAGOMAN_CONFIG", config.to_string());
        Self::spawn_with(command)
    }

    pub(crate) fn spawn_with(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, messages) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) = read_message(&mut stdout).await {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, messages, next_id: 0, early: Vec::new() }
    }

    /// Initialized in the home's workspace.
    pub(crate) async fn start(home: &Home, config: &Value) -> Self {
        let mut client = Self::spawn(home, config);
        let result = client.initialize(home, json!({"codeAssistant": {"chat": true}})).await;
        assert!(result["chatWelcomeMessage"].is_string(), "{result}");
        client
    }

    pub(crate) async fn initialize(&mut self, home: &Home, capabilities: Value) -> Value {
        let uri = format!("file://{}/", home.workspace().display());
        let result = self
            .request(
                "initialize",
                json!({
                    "processId": std::process::id(),
                    "clientInfo": {"name": "test", "version": "1\n2"},
                    "capabilities": capabilities,
                    "initializationOptions": {"chatAgent": null},
                    "workspaceFolders": [{"uri": uri, "name": "work"}],
                }),
            )
            .await;
        self.notify("initialized", Value::Null).await;
        result
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_bytes(&frame(message)).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).await.expect("the server reads");
        stdin.flush().await.expect("the server reads");
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends without waiting; the id is given back.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// The result of a request; an error is a failed test.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let response = self.response(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// The whole response. Other messages are kept for `next`.
    pub(crate) async fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.response_to(id).await
    }

    pub(crate) async fn response_to(&mut self, id: u64) -> Value {
        let is_it = |message: &Value| message["id"] == json!(id) && message.get("method").is_none();
        if let Some(at) = self.early.iter().position(is_it) {
            return self.early.remove(at);
        }
        loop {
            let message = self.receive().await;
            if is_it(&message) {
                return message;
            }
            self.early.push(message);
        }
    }

    /// The next message in the order of arrival.
    pub(crate) async fn next(&mut self) -> Value {
        if self.early.is_empty() { self.receive().await } else { self.early.remove(0) }
    }

    async fn receive(&mut self) -> Value {
        match tokio::time::timeout(WAIT_TIMEOUT, self.messages.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) => panic!("the server closed its output"),
            Err(_) => panic!("no message within {WAIT_TIMEOUT:?}; had {:?}", self.early),
        }
    }

    /// The next message, or `None` when the output ends.
    pub(crate) async fn next_or_end(&mut self) -> Option<Value> {
        if !self.early.is_empty() {
            return Some(self.early.remove(0));
        }
        tokio::time::timeout(WAIT_TIMEOUT, self.messages.recv())
            .await
            .expect("the server says something or ends")
    }

    /// All messages up to and including the one that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await;
            let done = fits(&message);
            messages.push(message);
            if done {
                return messages;
            }
        }
    }

    /// Prompts and waits for the end of the turn; response and contents.
    pub(crate) async fn prompt(&mut self, chat: Option<&str>, text: &str) -> (Value, Vec<Value>) {
        self.prompt_with(json!({"chatId": chat, "message": text, "request-id": 1, "contexts": []})).await
    }

    pub(crate) async fn prompt_with(&mut self, params: Value) -> (Value, Vec<Value>) {
        let id = self.ask("chat/prompt", params).await;
        let messages = self.until(is_finished).await;
        let response = messages.iter().find(|message| message["id"] == json!(id)).cloned();
        let result = response.map(|response| response["result"].clone()).expect("a response before the end");
        (result, contents(&messages))
    }

    /// Ends the connection and waits for the process.
    pub(crate) async fn end(mut self) -> std::process::ExitStatus {
        self.close_stdin();
        let waited = tokio::time::timeout(Duration::from_secs(5), self.child.wait()).await;
        waited.expect("the server ends").expect("a status")
    }
}

pub(crate) fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn read_message(stdout: &mut BufReader<tokio::process::ChildStdout>) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        assert!(line.ends_with("\r\n"), "a header line ends with CRLF: {line:?}");
        match line.trim_end() {
            "" => break,
            header => {
                length = header.strip_prefix("Content-Length: ").and_then(|it| it.parse::<usize>().ok())
            }
        }
    }
    let mut body = vec![0; length.expect("a Content-Length")];
    stdout.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}

pub(crate) fn is_finished(message: &Value) -> bool {
    let content = &message["params"]["content"];
    content["type"] == "progress" && content["state"] == "finished"
}

/// The contents of a chat, with their roles.
pub(crate) fn contents(messages: &[Value]) -> Vec<Value> {
    messages
        .iter()
        .filter(|it| it["method"] == "chat/contentReceived")
        .map(|it| it["params"].clone())
        .collect()
}

/// `role type` or `role type: text` of each content, deltas of one kind joined.
pub(crate) fn outline(contents: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last_kind = String::new();
    for params in contents {
        let content = &params["content"];
        let kind = format!("{} {}", text(&params["role"]), text(&content["type"]));
        let said = content["text"].as_str().unwrap_or_default();
        let joins = kind == last_kind && matches!(kind.as_str(), "assistant text" | "assistant reasonText");
        match lines.last_mut() {
            Some(last) if joins => last.push_str(said),
            _ => lines.push(match said {
                "" => format!(
                    "{kind}{}",
                    content["state"].as_str().map(|it| format!(" {it}")).unwrap_or_default()
                ),
                said => format!("{kind}: {said}"),
            }),
        }
        last_kind = kind;
    }
    lines
}

/// The assistant's text, whole.
pub(crate) fn answer(contents: &[Value]) -> String {
    let texts = contents.iter().filter(|it| it["role"] == "assistant" && it["content"]["type"] == "text");
    texts.filter_map(|it| it["content"]["text"].as_str()).collect()
}

/// Everything the system said.
pub(crate) fn system_text(contents: &[Value]) -> String {
    let texts = contents.iter().filter(|it| it["role"] == "system" && it["content"]["type"] == "text");
    texts.filter_map(|it| it["content"]["text"].as_str()).collect()
}

/// A process that works in this folder and calls itself by this number, which is another one outside of its namespace.
pub(crate) fn runs_in(folder: &Path, number: u32) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).any(|pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = own.and_then(|numbers| numbers.split_whitespace().last()?.parse::<u32>().ok());
        let place = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        own == Some(number) && place.starts_with(folder) && alive(pid)
    })
}

/// Not a zombie either.
pub(crate) fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Exit code, standard output and standard error of a command.
pub(crate) async fn run_command(
    home: &Home,
    config: &Value,
    arguments: &[&str],
) -> (Option<i32>, String, String) {
    let mut command: tokio::process::Command = home.command(arguments).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output())
        .await
        .expect("it ends")
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
