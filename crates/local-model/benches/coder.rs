//! What a model of code gains from rules, guesses and marks, and how it compares with llama.cpp on the same weights.
//!
//!     DRAGOMAN_CODER=FILE.gguf [DRAGOMAN_PEER_URL=http://127.0.0.1:PORT] cargo bench -p dragoman-local-model --bench coder
//!
//! `benches/llama_cpp_server.py` starts the peer; DRAGOMAN_PEER_PID is its process. Both take turns, and the medians count. With
//! one thread times are CPU times of the computing thread and of the peer's process, with more they are those of the clock, so the
//! machine should be quiet. DRAGOMAN_THREADS sets the threads (1), DRAGOMAN_PARTS the parts to run.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark is a program of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use domain::middle::Middle;
use local_model::{AnswerOptions, AnswerReport, Engine, Limits, Message, Role, Sampling, Session};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const ROUNDS: usize = 5;
const PROMPT: usize = 500;
const DECODED: usize = 48;
const HOLES_PER_FILE: usize = 13;
const FILES: [(&str, &str); 12] = [
    ("walk.rs", include_str!("holes/walk.rs.txt")),
    ("due.rs", include_str!("holes/due.rs.txt")),
    ("backlog.rs", include_str!("holes/backlog.rs.txt")),
    ("pending.rs", include_str!("holes/pending.rs.txt")),
    ("json_lines.rs", include_str!("holes/json_lines.rs.txt")),
    ("restore.rs", include_str!("holes/restore.rs.txt")),
    ("events.ts", include_str!("holes/events.ts.txt")),
    ("actions.ts", include_str!("holes/actions.ts.txt")),
    ("paging.ts", include_str!("holes/paging.ts.txt")),
    ("client.py", include_str!("holes/client.py.txt")),
    ("server.py", include_str!("holes/server.py.txt")),
    ("record.py", include_str!("holes/record.py.txt")),
];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let path = std::env::var("DRAGOMAN_CODER").map_err(|_| "DRAGOMAN_CODER names the model file")?;
    let parts =
        std::env::var("DRAGOMAN_PARTS").unwrap_or_else(|_| "rules guesses speed greedy holes".to_owned());
    let peer = std::env::var("DRAGOMAN_PEER_URL").ok();
    let bench = Bench::new(Path::new(&path))?;
    println!("{}, {} threads", path, bench.limits.threads);
    let runs = |part: &str| parts.split_whitespace().any(|wanted| part.starts_with(wanted));
    if runs("rules") {
        bench.rules()?;
    }
    if runs("guesses") {
        bench.guesses()?;
    }
    if let Some(peer) = &peer {
        if runs("speed") {
            bench.speed(peer)?;
        }
        if runs("greedy") {
            bench.greedy(peer)?;
        }
    }
    if runs("holes") {
        bench.holes(peer.as_deref())?;
    }
    Ok(())
}

struct Bench {
    engine: Arc<Engine>,
    limits: Limits,
    stop: AtomicBool,
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

impl Bench {
    fn new(path: &Path) -> Result<Bench, Failed> {
        let threads =
            std::env::var("DRAGOMAN_THREADS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
        let limits = Limits { window: 8192, threads };
        Ok(Bench { engine: Arc::new(Engine::open(path)?), limits, stop: AtomicBool::new(false) })
    }

    fn session(&self) -> Session {
        Session::new(self.engine.clone(), self.limits)
    }

    fn chat(&self, question: &str) -> Result<Vec<u32>, Failed> {
        Ok(self.engine.encode_chat(&[Message::new(Role::User, question)])?)
    }

    /// The text, the report, and the seconds after the first piece of text.
    fn answer(
        &self,
        session: &mut Session,
        prompt: &[u32],
        options: AnswerOptions,
    ) -> Result<(String, AnswerReport, f64), Failed> {
        let (mut text, mut first) = (String::new(), None);
        let report = session.answer_with(prompt, options, &self.stop, |piece| {
            first.get_or_insert_with(|| self.now());
            text.push_str(piece);
        })?;
        Ok((text, report, first.map_or(0.0, |first| self.now() - first)))
    }

    /// Decoding within the rules of a schema, beside the same number of free tokens.
    fn rules(&self) -> Result<(), Failed> {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}, "minItems": 30},
                "count": {"type": "integer"}, "kind": {"enum": ["prose", "code"]},
            },
            "required": ["title", "lines", "count", "kind"],
        });
        let question = format!("List thirty rules for good code as JSON of this schema: {schema}");
        let prompt = self.chat(&question)?;
        let mut session = self.session();
        let (mut free, mut ruled) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let plain = AnswerOptions::new(80, Sampling::default()).without_guesses();
            let bound = plain.clone().with_rules(&[], Some(&schema), false);
            for (options, times) in [(plain, &mut free), (bound, &mut ruled)] {
                let (_, report, time) = self.answer(&mut session, &prompt, options)?;
                times.push(time * 1e3 / (report.answer_tokens - 1) as f64);
            }
        }
        let (free, ruled) = (median(&mut free), median(&mut ruled));
        println!(
            "rules: {free:.2} ms a token free, {ruled:.2} ms within a schema, {:+.1} %",
            (ruled / free - 1.0) * 100.0
        );
        Ok(())
    }

    /// A whole file written again with one change, with and without guesses.
    fn guesses(&self) -> Result<(), Failed> {
        for (name, source, change) in [
            (FILES[0].0, FILES[0].1, "Rename the first function to `visit_all`."),
            (FILES[9].0, FILES[9].1, "Add a comment at the top that says what this is."),
        ] {
            let source: String = source.lines().take(50).map(|line| format!("{line}\n")).collect();
            let question = format!("{change} Answer with the whole file and nothing else.\n```\n{source}```");
            let mut prompt = self.chat(&question)?;
            // The answer has begun.
            prompt.extend(self.engine.encode("```\n", false));
            let options = AnswerOptions::new(700, Sampling::default());
            let plain = options.clone().without_guesses();
            let mut session = self.session();
            let (slow_text, slow, slow_time) = self.answer(&mut session, &prompt, plain)?;
            let (fast_text, fast, fast_time) = self.answer(&mut session, &prompt, options)?;
            println!(
                "guesses, {name}: {} tokens in {:.1} s, with guesses {:.1} s: {:.2} times as fast; {} of {} guesses right; {}",
                slow.answer_tokens,
                slow_time,
                fast_time,
                slow_time / fast_time,
                fast.confirmed_tokens,
                fast.guessed_tokens,
                if slow_text == fast_text { "the same text" } else { "ANOTHER TEXT" },
            );
        }
        Ok(())
    }

    /// Tokens per second of a prompt and of decoding after 16 and after 500 tokens, in turn with the peer.
    fn speed(&self, peer: &str) -> Result<(), Failed> {
        let text = FILES.iter().map(|(_, text)| *text).collect::<String>();
        let tokens = self.engine.encode(&text, false)[..PROMPT].to_vec();
        let mut session = self.session();
        let mut all: [Vec<f64>; 6] = Default::default();
        for _ in 0..ROUNDS {
            for (place, count) in [16, PROMPT].into_iter().enumerate() {
                let ours = self.decode(&mut session, &tokens[..count])?;
                let theirs = match self.limits.threads {
                    1 => peer_decode_cpu(peer, &tokens[..count])?,
                    _ => peer_decode(peer, &tokens[..count])?,
                };
                all[place * 2].push(ours[1]);
                all[place * 2 + 1].push(theirs[1]);
                if count == PROMPT {
                    all[4].push(ours[0]);
                    all[5].push(theirs[0]);
                }
            }
        }
        let rates = all.map(|mut rates| median(&mut rates));
        for (name, at) in [("decoding after 16", 0), ("decoding after 500", 2), ("a prompt of 500", 4)] {
            let (ours, theirs) = (rates[at], rates[at + 1]);
            println!(
                "speed, {name}: {ours:.1} tokens/s, llama.cpp {theirs:.1}, ours / it {:.2}",
                ours / theirs
            );
        }
        Ok(())
    }

    /// Seconds of CPU time with one thread, else of the clock.
    fn now(&self) -> f64 {
        let is_alone = self.limits.threads == 1;
        let time = clock_gettime(if is_alone { ClockId::ThreadCPUTime } else { ClockId::Monotonic });
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }

    /// Tokens per second of the prompt and of decoding.
    fn decode(&self, session: &mut Session, tokens: &[u32]) -> Result<[f64; 2], Failed> {
        session.logits(&[0], &self.stop)?;
        let started = self.now();
        session.logits(tokens, &self.stop)?;
        let prompt = self.now() - started;
        let mut all = tokens.to_vec();
        let started = self.now();
        for token in 0..DECODED {
            all.push(1000 + token as u32);
            session.logits(&all, &self.stop)?;
        }
        Ok([tokens.len() as f64 / prompt, DECODED as f64 / (self.now() - started)])
    }

    /// Greedy answers to twenty questions, token for token.
    fn greedy(&self, peer: &str) -> Result<(), Failed> {
        let (mut same, mut tokens, mut total) = (0, 0, 0);
        for number in 0..20 {
            let (name, text) = FILES[number % FILES.len()];
            let piece: String =
                text.lines().skip(number * 3).take(15).map(|line| format!("{line}\n")).collect();
            let asks =
                ["Explain this", "Write a test for this", "Find a fault in this", "Write this shorter"];
            let prompt =
                self.chat(&format!("{}, from {name}:\n```\n{piece}```", asks[number % asks.len()]))?;
            let options = AnswerOptions::new(64, Sampling::default());
            let (ours, report, _) = self.answer(&mut self.session(), &prompt, options)?;
            let theirs = peer_answer(peer, &prompt, 64)?;
            let (mine, other) = (self.engine.encode(&ours, false), self.engine.encode(&theirs, false));
            let equal = mine.iter().zip(&other).take_while(|(one, other)| one == other).count();
            same += usize::from(ours == theirs);
            tokens += equal.min(report.answer_tokens);
            total += report.answer_tokens;
        }
        println!("greedy: {same} of 20 answers are the same, {tokens} of {total} tokens before a difference");
        Ok(())
    }

    /// Holes in our own code: how many are filled exactly, and how many first lines.
    fn holes(&self, peer: Option<&str>) -> Result<(), Failed> {
        let holes: Vec<Hole> = FILES.iter().flat_map(|(name, text)| Hole::all(name, text)).collect();
        let mut session = self.session();
        let (mut ours, mut theirs, mut firsts) =
            (Score::default(), Score::default(), [Vec::new(), Vec::new()]);
        for hole in &holes {
            let started = Instant::now();
            let mut first = None;
            let mut text = String::new();
            let stop = AtomicBool::new(false);
            let prompt = self.engine.fill_prompt(&hole.middle, 700).ok_or("the model fills no middles")?;
            let options = AnswerOptions::new(96, Sampling::default()).ending_at_marks();
            session.answer_with(&prompt, options, &stop, |piece| {
                first.get_or_insert_with(|| started.elapsed());
                text.push_str(piece);
                if hole.middle.end(&text).is_some() {
                    stop.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            })?;
            firsts[0].push(first.unwrap_or_default().as_secs_f64() * 1e3);
            ours.add(hole, hole.middle.cut(&text));
            if let Some(peer) = peer {
                let (text, first) = peer_infill(peer, &hole.middle)?;
                firsts[1].push(first);
                theirs.add(hole, hole.middle.cut(&text));
            }
        }
        let [ours_first, theirs_first] = &mut firsts;
        println!("holes: {} in all; ours: {ours}, first token {:.0} ms", holes.len(), median(ours_first));
        if peer.is_some() {
            println!("holes: llama.cpp /infill: {theirs}, prompt {:.0} ms", median(theirs_first));
        }
        Ok(())
    }
}

struct Hole {
    middle: Middle,
    text: String,
}

#[derive(Default)]
struct Score {
    exact: usize,
    first_line: usize,
}

impl Score {
    fn add(&mut self, hole: &Hole, text: &str) {
        self.exact += usize::from(text.trim() == hole.text.trim());
        let first = |text: &str| text.trim().lines().next().map(|line| line.trim().to_owned());
        self.first_line += usize::from(first(text) == first(&hole.text));
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} exact, {} first lines", self.exact, self.first_line)
    }
}

impl Hole {
    /// Holes of one file: ends of lines, whole lines, and two or three lines of a block.
    fn all(name: &str, text: &str) -> Vec<Hole> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_code =
            |line: &str| line.trim().len() > 12 && !line.trim_start().starts_with(['/', '#', '*', '"']);
        let places: Vec<usize> = (6..lines.len() - 4).filter(|at| is_code(lines[*at])).collect();
        let step = places.len() as f64 / HOLES_PER_FILE as f64;
        let hole = |number: usize| {
            let at = places[(number as f64 * step) as usize];
            let start: usize = lines[..at].iter().map(|line| line.len()).sum();
            let line = lines[at].trim_end();
            let indent = line.len() - line.trim_start().len();
            let (from, to) = match number % 3 {
                0 => {
                    let half =
                        line[indent..].find(['(', '=', '{', ':']).map_or(indent, |found| indent + found + 1);
                    (start + half, start + line.len())
                }
                1 => (start + indent, start + line.len()),
                _ => {
                    let last = lines[at + 1].trim_end().len();
                    (start + indent, start + lines[at].len() + last)
                }
            };
            let middle = Middle {
                path: Some(name.to_owned()),
                before: text[..from].to_owned(),
                after: text[to..].to_owned(),
            };
            Hole { middle, text: text[from..to].to_owned() }
        };
        (0..HOLES_PER_FILE).map(hole).filter(|hole| !hole.text.trim().is_empty()).collect()
    }
}

/// Posts JSON and reads the answer.
fn post(url: &str, path: &str, body: &Value) -> Result<Value, Failed> {
    let host = url.strip_prefix("http://").ok_or("the peer's url begins with http://")?;
    let body = body.to_string();
    let mut stream = TcpStream::connect(host)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let json = answer.split_once("\r\n\r\n").ok_or("no body")?.1;
    Ok(serde_json::from_str(json).map_err(|error| format!("{error}: {json}"))?)
}

/// Tokens per second of the prompt and of decoding.
fn peer_decode(url: &str, tokens: &[u32]) -> Result<[f64; 2], Failed> {
    let body = json!({
        "prompt": tokens, "n_predict": DECODED + 1, "ignore_eos": true, "cache_prompt": false, "temperature": 0,
        "samplers": ["top_k"], "top_k": 1,
    });
    let timings = post(url, "/completion", &body)?["timings"].clone();
    let rate = |name: &str| timings[name].as_f64().ok_or("no timings");
    Ok([rate("prompt_per_second")?, rate("predicted_per_second")?])
}

/// Seconds of CPU time of all threads of a process.
fn cpu_of(process: &str) -> Result<f64, Failed> {
    let mut total = 0.0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        total += text.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(total / 1e9)
}

/// The same by the CPU time of the peer: of a prompt and one token, and of more tokens.
fn peer_decode_cpu(url: &str, tokens: &[u32]) -> Result<[f64; 2], Failed> {
    let process =
        std::env::var("DRAGOMAN_PEER_PID").map_err(|_| "DRAGOMAN_PEER_PID is the peer's process")?;
    let process = &process;
    let run = |count: usize| {
        let body = json!({
            "prompt": tokens, "n_predict": count, "ignore_eos": true, "cache_prompt": false, "temperature": 0,
            "samplers": ["top_k"], "top_k": 1,
        });
        let started = cpu_of(process)?;
        post(url, "/completion", &body)?;
        Ok::<f64, Failed>(cpu_of(process)? - started)
    };
    let prompt = run(1)?;
    Ok([tokens.len() as f64 / prompt, DECODED as f64 / (run(DECODED + 1)? - prompt)])
}

fn peer_answer(url: &str, tokens: &[u32], count: usize) -> Result<String, Failed> {
    let body =
        json!({"prompt": tokens, "n_predict": count, "temperature": 0, "samplers": ["top_k"], "top_k": 1});
    Ok(post(url, "/completion", &body)?["content"].as_str().unwrap_or_default().to_owned())
}

/// The text, and the milliseconds of its prompt.
fn peer_infill(url: &str, middle: &Middle) -> Result<(String, f64), Failed> {
    // The same part of the file as ours, about.
    let tail = |text: &str, bytes: usize| {
        let start = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at));
        text[start.unwrap_or(0)..].to_owned()
    };
    let head: String = middle.after.chars().take(600).collect();
    let body = json!({
        "input_prefix": tail(&middle.before, 1900), "input_suffix": head, "n_predict": 96, "temperature": 0,
        "samplers": ["top_k"], "top_k": 1,
    });
    let answer = post(url, "/infill", &body)?;
    let text = answer["content"].as_str().unwrap_or_default().to_owned();
    Ok((text, answer["timings"]["prompt_ms"].as_f64().unwrap_or_default()))
}
