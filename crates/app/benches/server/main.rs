//! `dragoman server` from outside, compared with a minimal program (`echo-program`) in the same run.
//!
//! Rows: spawn → initialize, prompt → first chunk, added latency per chunk, also in a window of another process, chunks per second and CPU, idle and peak
//! memory, rounds of tool calls and what one is made of, what the sandbox adds to a command, a written file and a changing command among 50,000 files, the size of the first request, also with many MCP tools,
//! what `acp --proxy` adds, 200 and 1,000 chats at once, load of a 10,000-message chat and prompts in it, as charts too (`docs/charts`);
//! the first text of completions and rewrites; the first answer with twenty broken MCP servers; start and first file
//! completion in a tree of a million files; and `dragoman run` for one word.
//! `cargo bench -p dragoman --bench server -- large_tree broken_servers` measures these alone.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement starts programs and prints"
)]

mod attached;
mod broken_servers;
mod chart;
mod commands;
mod completions;
mod large_tree;
mod large_workspace;
mod long_chat;
mod many_chats;
mod many_tools;
mod program;
mod proxy;
mod round;
mod table;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Request};

use program::{Home, Server, dragoman, programs};
use table::Table;

type Part = fn(&mut Table, &FakeModel);

/// In their order; `long_chat` is the last.
const PARTS: [(&str, Part); 16] = [
    ("start", start_rows),
    ("first_chunk", first_chunk_rows),
    ("broken_servers", broken_servers::row),
    ("large_tree", large_tree::rows),
    ("latency", latency_rows),
    ("attached", attached::row),
    ("proxy", proxy::rows),
    ("completions", completions::rows),
    ("throughput", throughput_rows),
    ("tools", tool_rows),
    ("round", round::rows),
    ("commands", commands::rows),
    ("large_workspace", large_workspace::rows),
    ("many_chats", many_chats::rows),
    ("many_tools", many_tools::rows),
    ("run", run_row),
];

/// The arguments name the parts; without any, all are measured.
fn is_wanted(name: &str) -> bool {
    let mut named = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    named.peek().is_none() || named.any(|argument| argument == name)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let fake = runtime.block_on(FakeModel::start());
    fake.respond_with(scripted);
    let mut table = Table::default();

    for (name, measure) in PARTS {
        if is_wanted(name) {
            measure(&mut table, &fake);
        }
    }
    if is_wanted("long_chat") {
        runtime.block_on(long_chat::rows(&mut table, &fake));
    }
    table.end();
}

/// A prompt with these words is answered with the time.
const STAMP: &str = "tell-the-time";

/// The answers of the fake model by prompt.
fn scripted(request: &Request) -> Answer {
    let prompt = request.last_user_text();
    let mut words = prompt.split_whitespace();
    let number = |word: Option<&str>| word.and_then(|it| it.parse().ok()).unwrap_or(1_usize);
    match words.next() {
        Some("flood") => Answer::flood(number(words.next()), "0123456789abcdef"),
        Some("pace") => Answer::stamps(number(words.next())).every(Duration::from_millis(1)),
        Some("calm") => Answer::stamps(number(words.next())).every(Duration::from_millis(100)),
        Some("tools") => {
            let done = request.messages().iter().filter(|it| it["role"] == "tool").count();
            let read = json!({"path": "notes.txt", "line_offset": done, "limit": 1});
            match done < number(words.next()) {
                true => Answer::new().call(&format!("call-{done}"), "eca__read_file", read),
                false => Answer::new().chunks(["ok"]),
            }
        }
        Some("command") => {
            let done = request.messages().iter().filter(|it| it["role"] == "tool").count();
            let line = commands::line(words.next().unwrap_or_default(), number(words.next()));
            match done {
                0 if line.is_empty() => {
                    let text = json!({"path": "written.txt", "content": prompt});
                    Answer::new().call("call", "eca__write_file", text)
                }
                0 => Answer::new().call("call", "eca__shell_command", json!({"command": line})),
                _ => Answer::new().chunks(["ok"]),
            }
        }
        _ if prompt.contains(STAMP) => Answer::stamps(1),
        _ => Answer::new().chunks(["ok"]),
    }
}

/// Starts in a new home each time: only the disk cache is warm.
fn run_row(table: &mut Table, fake: &FakeModel) {
    let mut samples = Vec::new();
    for _ in 0..30 {
        let home = Home::new();
        let since = Instant::now();
        assert_eq!(program::run(&home, fake, "hello"), b"ok\n");
        samples.push(since.elapsed().as_secs_f64() * 1000.0);
    }
    table.row("run: a one-word answer, wall, median of 30", "ms", median(samples), 40.0);
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

/// The model writes a chunk per millisecond, with its time inside.
fn latency_rows(table: &mut Table, fake: &FakeModel) {
    let mut all = HashMap::new();
    for (name, program) in programs() {
        let home = Home::new();
        let mut server = Server::start(&program, &home, fake);
        server.initialize(&home);
        server.prompt("c", "pace 5000");
        let mut late: Vec<f64> = Vec::new();
        loop {
            let (at, message) = server.next();
            if is_finished(&message) {
                break;
            }
            late.extend(latencies(at, &message));
        }
        assert_eq!(late.len(), 5000, "{name}");
        late.sort_by(f64::total_cmp);
        all.insert(name, late);
    }
    for (part, allowed, name) in [(0.50, 0.3, "p50"), (0.99, 2.0, "p99")] {
        let [ours, floor] = ["dragoman", "floor"].map(|it| at(&all[it], part));
        let what = format!("model's write → editor's read at 1,000 chunks/s, {name}");
        table.pair(&what, "ms", ours, floor, floor + allowed);
    }
}

fn throughput_rows(table: &mut Table, fake: &FakeModel) {
    const CHUNKS: usize = 100_000;
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

/// Rounds of model → tool → model with one small read each, and the size of the first request.
fn tool_rows(table: &mut Table, fake: &FakeModel) {
    const ROUNDS: usize = 50;
    let mut times = HashMap::new();
    for (name, program) in programs() {
        let mut samples = Vec::new();
        for _ in 0..5 {
            let home = Home::new();
            let lines: String = (0..100).map(|line| format!("line {line}\n")).collect();
            std::fs::write(home.path().join("notes.txt"), lines).expect("a file");
            let mut server = Server::start(&program, &home, fake);
            server.initialize(&home);
            server.prompt("c", "hello");
            server.until(is_finished);
            fake.forget_requests();
            let since = Instant::now();
            server.prompt("c", &format!("tools {ROUNDS}"));
            server.until(is_finished);
            samples.push(since.elapsed().as_secs_f64() * 1000.0 / ROUNDS as f64);
            assert_eq!(fake.requests().len(), ROUNDS + 1, "{name}");
        }
        times.insert(name, median(samples));
    }
    let target = times["floor"] + 2.5;
    table.pair("a round of tool calls, of 50, median", "ms", times["dragoman"], times["floor"], target);
    let home = Home::new();
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    fake.forget_requests();
    server.prompt("c", "hello");
    server.until(is_finished);
    let bytes = fake.requests().first().map_or(f64::NAN, |it| it.body.to_string().len() as f64);
    table.row("first request of a chat, with all tools", "B", bytes, 10_000.0);
}

/// How long the chunks of a message were on their way, in milliseconds: each holds the time of its writing.
fn latencies(at: u64, message: &Value) -> Vec<f64> {
    let text = message["params"]["content"]["text"].as_str().unwrap_or_default();
    let stamps = text.split(['<', '>']).filter_map(|it| it.parse::<u64>().ok());
    stamps.map(|stamp| at.saturating_sub(stamp) as f64 / 1e6).collect()
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
