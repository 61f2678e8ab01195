//! `dragoman server` from outside, beside the least a program can do (`echo-program`), in one run.
//!
//! Rows: spawn → initialize, prompt → first chunk, added latency per chunk, chunks per second and CPU, idle and peak
//! memory, 200 chats at once, load of a 10,000-message chat.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement starts programs and prints"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let fake = runtime.block_on(FakeModel::start());
    fake.respond_with(|request| scripted(&request.last_user_text()));
    let mut table = Table::default();
    start_rows(&mut table, &fake);
    first_chunk_rows(&mut table, &fake);
    latency_rows(&mut table, &fake);
    throughput_rows(&mut table, &fake);
    many_chats_row(&mut table, &fake);
    load_row(&mut table, &fake);
    table.print();
}

/// What the fake model says to which prompt.
fn scripted(prompt: &str) -> Answer {
    let mut words = prompt.split_whitespace();
    let number = |word: Option<&str>| word.and_then(|it| it.parse().ok()).unwrap_or(1_usize);
    match words.next() {
        Some("flood") => Answer::flood(number(words.next()), "0123456789abcdef"),
        Some("pace") => {
            let count = number(words.next());
            Answer::new().every(Duration::from_millis(1)).chunks((0..count).map(|at| format!("<{at}>")))
        }
        _ => Answer::new().chunks(["ok"]),
    }
}

fn start_rows(table: &mut Table, fake: &FakeModel) {
    let mut times = HashMap::new();
    for (name, program) in programs() {
        let mut samples = Vec::new();
        for _ in 0..40 {
            let home = Home::new();
            let since = Instant::now();
            let mut server = Server::start(&program, &home, fake);
            server.initialize(&home);
            samples.push(since.elapsed().as_secs_f64() * 1000.0);
            if samples.len() == 40 {
                std::thread::sleep(Duration::from_secs(1));
                table.row(&format!("idle memory, PSS ({name})"), "MiB", server.pss(), 12.0);
            }
        }
        times.insert(name, median(samples));
    }
    table.pair("spawn → initialize, median of 40", "ms", times["dragoman"], times["floor"], 5.0);
}

fn first_chunk_rows(table: &mut Table, fake: &FakeModel) {
    let mut first = HashMap::new();
    let mut later = HashMap::new();
    for (name, program) in programs() {
        let (mut firsts, mut laters) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            let home = Home::new();
            let mut server = Server::start(&program, &home, fake);
            server.initialize(&home);
            std::thread::sleep(Duration::from_millis(30));
            for turn in 0..6 {
                let since = Instant::now();
                server.prompt("c", "hello");
                server.until(|it| it["params"]["role"] == "assistant");
                let time = since.elapsed().as_secs_f64() * 1000.0;
                if turn == 0 {
                    firsts.push(time)
                } else {
                    laters.push(time)
                }
                server.until(is_finished);
            }
        }
        first.insert(name, median(firsts));
        later.insert(name, median(laters));
    }
    table.pair("first prompt → first chunk, median", "ms", first["dragoman"], first["floor"], 15.0);
    table.pair("later prompt → first chunk, median", "ms", later["dragoman"], later["floor"], 4.0);
}

/// The model writes a chunk a millisecond and the moment it wrote it is known from the pace of the first chunk.
fn latency_rows(table: &mut Table, fake: &FakeModel) {
    let mut all = HashMap::new();
    for (name, program) in programs() {
        let home = Home::new();
        let mut server = Server::start(&program, &home, fake);
        server.initialize(&home);
        server.prompt("c", "pace 4000");
        let mut arrivals: Vec<Instant> = Vec::new();
        loop {
            let (at, message) = server.next();
            if is_finished(&message) {
                break;
            }
            let text = message["params"]["content"]["text"].as_str().unwrap_or_default();
            arrivals.extend(text.matches('<').map(|_| at));
        }
        all.insert(name, lateness(&arrivals));
    }
    let [p50, p99] = [0.50, 0.99].map(|part| (at(&all["dragoman"], part), at(&all["floor"], part)));
    table.pair("lateness per chunk at 1,000/s, p50", "ms", p50.0, p50.1, p50.1 + 0.3);
    table.pair("lateness per chunk at 1,000/s, p99", "ms", p99.0, p99.1, p99.1 + 2.0);
}

/// How late each chunk is against the steadiest schedule that fits all of them.
fn lateness(arrivals: &[Instant]) -> Vec<f64> {
    let Some(begin) = arrivals.first() else { return vec![f64::NAN] };
    let since: Vec<f64> =
        arrivals.iter().map(|it| it.duration_since(*begin).as_secs_f64() * 1000.0).collect();
    let count = since.len() as f64;
    let step = (since.last().copied().unwrap_or_default()) / (count - 1.0).max(1.0);
    let earliest =
        since.iter().enumerate().map(|(at, time)| time - at as f64 * step).fold(f64::INFINITY, f64::min);
    let mut late: Vec<f64> =
        since.iter().enumerate().map(|(at, time)| time - at as f64 * step - earliest).collect();
    late.sort_by(f64::total_cmp);
    late
}

fn throughput_rows(table: &mut Table, fake: &FakeModel) {
    const CHUNKS: usize = 200_000;
    let mut rates = HashMap::new();
    for (name, program) in programs() {
        let home = Home::new();
        let mut server = Server::start(&program, &home, fake);
        server.initialize(&home);
        let cpu = server.cpu_seconds();
        let since = Instant::now();
        server.prompt("c", &format!("flood {CHUNKS}"));
        let mut bytes = 0;
        loop {
            let (_, message) = server.next();
            if is_finished(&message) {
                break;
            }
            if message["params"]["role"] == "assistant" {
                let text = message["params"]["content"]["text"].as_str().unwrap_or_default();
                assert!(
                    text.as_bytes().chunks(16).all(|part| b"0123456789abcdef".starts_with(part)),
                    "{text}"
                );
                bytes += text.len();
            }
        }
        let seconds = since.elapsed().as_secs_f64();
        assert_eq!(bytes, CHUNKS * 16, "{name}: every byte arrives");
        rates.insert(name, CHUNKS as f64 / seconds);
        let used = (server.cpu_seconds() - cpu) * 1000.0 / CHUNKS as f64;
        table.row(&format!("CPU per 1,000 chunks ({name})"), "s", used, 0.010);
        table.row(&format!("peak memory, one chat ({name})"), "MiB", server.peak(), 30.0);
    }
    table.pair_more("chunks per second at full speed", "/s", rates["dragoman"], rates["floor"], 100_000.0);
}

fn many_chats_row(table: &mut Table, fake: &FakeModel) {
    let program = dragoman();
    let home = Home::new();
    let mut server = Server::start(&program, &home, fake);
    server.initialize(&home);
    let since = Instant::now();
    for chat in 0..200 {
        server.prompt(&format!("chat-{chat}"), "pace 200");
    }
    let mut finished = 0;
    while finished < 200 {
        finished += usize::from(is_finished(&server.next().1));
    }
    table.row("200 chats of 200 chunks at once, wall", "s", since.elapsed().as_secs_f64(), f64::INFINITY);
    table.row("200 chats at once, peak memory", "MiB", server.peak(), 100.0);
}

fn load_row(table: &mut Table, fake: &FakeModel) {
    let program = dragoman();
    let home = Home::new();
    let mut server = Server::start(&program, &home, fake);
    server.initialize(&home);
    for _ in 0..5_000 {
        server.prompt("long", "hi");
        server.until(is_finished);
    }
    drop(server);
    let mut server = Server::start(&program, &home, fake);
    server.initialize(&home);
    let since = Instant::now();
    let id = server.ask("chat/open", json!({"chatId": "long"}));
    server.until(|it| it["id"] == json!(id) && it.get("method").is_none());
    let time = since.elapsed().as_secs_f64() * 1000.0;
    table.row("open a chat of 10,000 messages, all contents sent", "ms", time, f64::INFINITY);
}

// The program under test.

fn programs() -> [(&'static str, PathBuf); 2] {
    [("dragoman", dragoman()), ("floor", beside("echo-program"))]
}

fn dragoman() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dragoman"))
}

fn beside(name: &str) -> PathBuf {
    let path = dragoman().with_file_name(name);
    assert!(path.exists(), "build {name} first: cargo build --release -p testkit");
    path
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a home"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

struct Server {
    child: Child,
    stdin: ChildStdin,
    messages: mpsc::Receiver<(Instant, Value)>,
    next_id: u64,
}

impl Server {
    fn start(program: &Path, home: &Home, fake: &FakeModel) -> Self {
        let config = json!({
            "defaultModel": "fake/m1",
            "providers": {"fake": {"api": "openai-chat", "url": fake.url(), "key": "sk-benchmark", "models": {"m1": {}}}},
        });
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
                let at = Instant::now();
                let Ok(message) = serde_json::from_slice(&body) else { return };
                if sender.send((at, message)).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, messages, next_id: 0 }
    }

    fn initialize(&mut self, home: &Home) {
        let folder = format!("file://{}", home.path().display());
        let id = self.ask(
            "initialize",
            json!({"processId": null, "capabilities": {}, "workspaceFolders": [{"uri": folder, "name": "w"}]}),
        );
        self.until(|it| it["id"] == json!(id));
        self.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": null}));
    }

    fn prompt(&mut self, chat: &str, text: &str) {
        self.ask("chat/prompt", json!({"chatId": chat, "message": text}));
    }

    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.stdin.write_all(framed.as_bytes()).expect("stdin");
    }

    fn next(&mut self) -> (Instant, Value) {
        self.messages.recv_timeout(Duration::from_secs(60)).expect("a message")
    }

    fn until(&mut self, fits: impl Fn(&Value) -> bool) {
        while !fits(&self.next().1) {}
    }

    /// Proportional memory now, in MiB.
    fn pss(&self) -> f64 {
        kibibytes(&format!("/proc/{}/smaps_rollup", self.child.id()), "Pss:") / 1024.0
    }

    /// The most memory ever resident, in MiB.
    fn peak(&self) -> f64 {
        kibibytes(&format!("/proc/{}/status", self.child.id()), "VmHWM:") / 1024.0
    }

    fn cpu_seconds(&self) -> f64 {
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

fn is_finished(message: &Value) -> bool {
    message["params"]["content"]["state"] == "finished"
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    at(&samples, 0.5)
}

fn at(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * part) as usize).copied().unwrap_or(f64::NAN)
}

// The table.

#[derive(Default)]
struct Table {
    lines: Vec<String>,
}

impl Table {
    fn row(&mut self, what: &str, unit: &str, value: f64, target: f64) {
        let verdict = if target.is_finite() {
            format!("target ≤ {target} {}", met(value <= target))
        } else {
            String::new()
        };
        self.push(format!("{what:<52} {value:>12.3} {unit:<4} {:>24} {verdict}", ""));
    }

    /// Smaller is better.
    fn pair(&mut self, what: &str, unit: &str, value: f64, floor: f64, target: f64) {
        let ratio = format!("floor {floor:.3}, ratio {:.2}", value / floor);
        self.push(format!(
            "{what:<52} {value:>12.3} {unit:<4} {ratio:>24} target ≤ {target:.3} {}",
            met(value <= target)
        ));
    }

    /// More is better.
    fn pair_more(&mut self, what: &str, unit: &str, value: f64, floor: f64, target: f64) {
        let ratio = format!("floor {floor:.0}, ratio {:.2}", value / floor);
        self.push(format!(
            "{what:<52} {value:>12.0} {unit:<4} {ratio:>24} target ≥ {target:.0} {}",
            met(value >= target)
        ));
    }

    /// Shown at once: a benchmark that takes minutes must not look dead.
    fn push(&mut self, line: String) {
        println!("{line}");
        self.lines.push(line);
    }

    fn print(&self) {
        println!("\n{} rows", self.lines.len());
    }
}

fn met(good: bool) -> &'static str {
    if good { "met" } else { "MISSED" }
}
