//! Drives the program under test over its pipes and measures its process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{FakeModel, clock};

pub(crate) fn programs() -> [(&'static str, PathBuf); 2] {
    [("dragoman", dragoman()), ("floor", beside("echo-program"))]
}

pub(crate) fn dragoman() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dragoman"))
}

fn beside(name: &str) -> PathBuf {
    let path = dragoman().with_file_name(name);
    assert!(path.exists(), "build {name} first: cargo build --release -p dragoman-testkit");
    path
}

pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a home"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

pub(crate) struct Server {
    child: Child,
    stdin: ChildStdin,
    messages: mpsc::Receiver<(u64, Value)>,
    next_id: u64,
}

/// One provider, the fake one.
pub(crate) fn config(fake: &FakeModel) -> Value {
    json!({
        "defaultModel": "fake/m1",
        "providers": {"fake": {"api": "openai-chat", "url": fake.url(), "key": "sk-benchmark", "models": {"m1": {}}}},
    })
}

/// `dragoman run` from its start to its end; what it printed.
pub(crate) fn run(home: &Home, fake: &FakeModel, prompt: &str) -> Vec<u8> {
    let output = Command::new(dragoman())
        .args(["run", prompt])
        .env_clear()
        .env("HOME", home.path())
        .env("DRAGOMAN_CONFIG", config(fake).to_string())
        .current_dir(home.path())
        .output();
    output.expect("the program").stdout
}

impl Server {
    pub(crate) fn start(program: &Path, home: &Home, fake: &FakeModel) -> Self {
        Self::start_with(program, home, fake, &config(fake))
    }

    pub(crate) fn start_with(program: &Path, home: &Home, fake: &FakeModel, config: &Value) -> Self {
        let mut child = Command::new(program)
            .arg("server")
            .env_clear()
            .env("HOME", home.path())
            .env("MODEL", fake.url().trim_start_matches("http://"))
            .env("DRAGOMAN_CONFIG", config.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let stdin = child.stdin.take().expect("stdin");
        let mut stdout = BufReader::with_capacity(256 << 10, child.stdout.take().expect("stdout"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(body) = read(&mut stdout) {
                let at = clock();
                let Ok(message) = serde_json::from_slice(&body) else { return };
                if sender.send((at, message)).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, messages, next_id: 0 }
    }

    pub(crate) fn initialize(&mut self, home: &Home) {
        self.initialize_in(home.path());
    }

    pub(crate) fn initialize_in(&mut self, workspace: &Path) {
        let folder = format!("file://{}", workspace.display());
        let id = self.ask(
            "initialize",
            json!({"processId": null, "capabilities": {}, "workspaceFolders": [{"uri": folder, "name": "w"}]}),
        );
        self.until(|it| it["id"] == json!(id));
        self.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": null}));
    }

    pub(crate) fn prompt(&mut self, chat: &str, text: &str) {
        self.ask("chat/prompt", json!({"chatId": chat, "message": text}));
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.stdin.write_all(framed.as_bytes()).expect("stdin");
    }

    pub(crate) fn next(&mut self) -> (u64, Value) {
        self.messages.recv_timeout(Duration::from_secs(60)).expect("a message")
    }

    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) {
        while !fits(&self.next().1) {}
    }

    /// Proportional memory now, in MiB.
    pub(crate) fn pss(&self) -> f64 {
        kibibytes(&format!("/proc/{}/smaps_rollup", self.child.id()), "Pss:") / 1024.0
    }

    /// Peak resident memory, in MiB.
    pub(crate) fn peak(&self) -> f64 {
        kibibytes(&format!("/proc/{}/status", self.child.id()), "VmHWM:") / 1024.0
    }

    pub(crate) fn resident(&self) -> f64 {
        kibibytes(&format!("/proc/{}/status", self.child.id()), "VmRSS:") / 1024.0
    }

    /// The processor time of all threads so far, in milliseconds, and how often they waited.
    pub(crate) fn work(&self) -> (f64, f64) {
        let threads =
            std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        threads.fold((0.0, 0.0), |(time, waits), thread| {
            let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let own =
                read("schedstat").split(' ').next().and_then(|it| it.parse::<f64>().ok()).unwrap_or_default();
            let status = read("status");
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            let own_waits = line.and_then(|it| it.trim().parse::<f64>().ok()).unwrap_or_default();
            (time + own / 1e6, waits + own_waits)
        })
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<f64>().ok()).unwrap_or_default();
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kibibytes(file: &str, name: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(f64::NAN)
}

fn read(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            header => length = header.strip_prefix("Content-Length: ")?.parse().ok()?,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(body)
}
