//! How fast the embedded model is, beside llama.cpp on the same file in the same run, one thread each.
//!
//!     cargo bench -p local-model
//!
//! Both engines take turns, so that a busy machine slows both; the best of several rounds counts, in CPU time of the
//! computing thread, which for one thread on a quiet machine is the time on the clock. For the peer, a Python that can
//! `import llama_cpp` is needed (`DRAGOMAN_PEER_PYTHON` names another one than `python3`).
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark is a program of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use local_model::{DEFAULT, Engine, Limits, Message, Role, Sampling, Session};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 5;
const PROMPT: usize = 500;
const DECODED: usize = 64;
const TEXT: &str = "The history of the lighthouse begins long before electric light. Fires were lit on hills, and later \
    on towers of stone, so that ships could find the mouth of a harbor at night. ";

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let path = model()?;
    let mut ours = Ours::load(&path)?;
    let mut peer = Peer::start(&path);
    let mut best = [[Duration::MAX; 2]; 2];
    for round in 0..ROUNDS {
        // Who goes first changes, so that neither always finds the caches the other left.
        for turn in [round % 2, 1 - round % 2] {
            let times = match (turn, &mut peer) {
                (0, _) => Some(ours.round()?),
                (_, Ok(peer)) => Some(peer.round(&ours.tokens)?),
                (_, Err(_)) => None,
            };
            for (best, time) in best[turn].iter_mut().zip(times.into_iter().flatten()) {
                *best = time.min(*best);
            }
        }
    }
    let peer_load = peer.as_ref().ok().map(|peer| peer.load);
    let rate = |count: usize, time: Duration| count as f64 / time.as_secs_f64();
    println!("kernels: {}; file: {}", ours.kernels(), path.display());
    row("load (ms)", ours.load.as_secs_f64() * 1e3, peer_load.map(|load| load.as_secs_f64() * 1e3));
    let theirs = |count, index: usize| peer.is_ok().then(|| rate(count, best[1][index]));
    row("prompt of 500 (tokens/s)", rate(PROMPT, best[0][0]), theirs(PROMPT, 0));
    row("decoding (tokens/s)", rate(DECODED, best[0][1]), theirs(DECODED, 1));
    println!("{:28} {:>10.1}", "first token, chat (ms)", ours.first_token()?.as_secs_f64() * 1e3);
    let memory = anonymous_memory()?;
    println!("{:28} {:>10.1}", "memory beyond the file (MB)", memory);
    let [alone, together] = on_the_clock(&ours)?;
    println!(
        "{:28} {alone:>10.1}   2 threads {together:>10.1}   ratio {:.2}",
        "decoding by the clock",
        together / alone
    );
    println!("targets: decoding and prompt at least as fast, load at most 50 ms, memory at most 40 MB");
    match &peer {
        Ok(peer) => println!("peer: {}", peer.about),
        Err(error) => println!("no peer ({error}): python3 -m pip install llama-cpp-python"),
    }
    Ok(())
}

fn row(name: &str, ours: f64, theirs: Option<f64>) {
    match theirs {
        Some(theirs) => {
            println!("{name:28} {ours:>10.1}   llama.cpp {theirs:>10.1}   ratio {:.2}", ours / theirs)
        }
        None => println!("{name:28} {ours:>10.1}"),
    }
}

fn model() -> Result<PathBuf, Failed> {
    let shared = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models");
    let models = std::env::var_os("DRAGOMAN_MODELS").map_or_else(shared, PathBuf::from);
    DEFAULT.installed(&models).ok_or_else(|| DEFAULT.by_hand(&models).into())
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Megabytes of this process that are not the mapped file.
fn anonymous_memory() -> Result<f64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon")).ok_or("no RssAnon")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kilobytes / 1024.0)
}

/// Tokens per second as a person sees them, with one and with two threads, on the machine as busy as it is.
fn on_the_clock(ours: &Ours) -> Result<[f64; 2], Failed> {
    let stop = AtomicBool::new(false);
    let mut sessions =
        [1, 2].map(|threads| Session::new(ours.engine.clone(), Limits { threads, ..Limits::default() }));
    let mut tokens = ours.tokens[..64].to_vec();
    for session in &mut sessions {
        session.logits(&tokens, &stop)?;
    }
    let mut times = [Duration::ZERO; 2];
    for token in 0..ROUNDS * DECODED {
        tokens.push(1000 + token as u32);
        for (session, time) in sessions.iter_mut().zip(&mut times) {
            let started = Instant::now();
            session.logits(&tokens, &stop)?;
            *time += started.elapsed();
        }
    }
    Ok(times.map(|time| (ROUNDS * DECODED) as f64 / time.as_secs_f64()))
}

struct Ours {
    engine: Arc<Engine>,
    session: Session,
    tokens: Vec<u32>,
    load: Duration,
}

impl Ours {
    fn load(path: &Path) -> Result<Ours, Failed> {
        let mut load = Duration::MAX;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            Engine::open(path)?;
            load = load.min(started.elapsed());
        }
        let engine = Arc::new(Engine::open(path)?);
        let tokens = engine.encode(&TEXT.repeat(20), false)[..PROMPT].to_vec();
        Ok(Ours { session: Session::new(engine.clone(), Limits::default()), engine, tokens, load })
    }

    fn kernels(&self) -> &'static str {
        self.session.kernels()
    }

    /// The time of the prompt, then of decoding.
    fn round(&mut self) -> Result<[Duration; 2], Failed> {
        let stop = AtomicBool::new(false);
        // Another beginning, so that nothing is remembered.
        self.session.logits(&[0], &stop)?;
        let started = cpu_time();
        self.session.logits(&self.tokens, &stop)?;
        let prompt = cpu_time() - started;
        let mut tokens = self.tokens.clone();
        let started = cpu_time();
        for token in 0..DECODED {
            tokens.push(1000 + token as u32);
            self.session.logits(&tokens, &stop)?;
        }
        Ok([prompt, cpu_time() - started])
    }

    /// From a question to the first letters of the answer, with a new session.
    fn first_token(&self) -> Result<Duration, Failed> {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let started = cpu_time();
            let mut session = Session::new(self.engine.clone(), Limits::default());
            let chat = [Message::new(Role::User, "What is the capital of France?")];
            let prompt = self.engine.encode_chat(&chat)?;
            session.answer(&prompt, 1, Sampling::default(), &AtomicBool::new(false), |_| {})?;
            best = best.min(cpu_time() - started);
        }
        Ok(best)
    }
}

/// llama.cpp in a process of its own, asked by lines.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    load: Duration,
    about: String,
}

impl Peer {
    /// With llama.cpp's repacked weights where they work, else without: its AMX kernels crash on some machines.
    fn start(path: &Path) -> Result<Peer, Failed> {
        let mut first = Peer::spawn(path, "repack")?;
        match first.round(&[0; 64]) {
            Ok(_) => Ok(first),
            Err(_) => Peer::spawn(path, "plain"),
        }
    }

    fn spawn(path: &Path, weights: &str) -> Result<Peer, Failed> {
        let python = std::env::var_os("DRAGOMAN_PEER_PYTHON").unwrap_or_else(|| "python3".into());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/llama_cpp_peer.py");
        let mut command = Command::new(python);
        command
            .arg(script)
            .arg(path)
            .arg(weights)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut peer = Peer { child, input, output, load: Duration::ZERO, about: String::new() };
        peer.load = Duration::from_secs_f64(peer.line().map_err(|_| "it has no llama_cpp")?.parse()?);
        peer.about = format!("{}, {weights} weights", peer.line()?);
        Ok(peer)
    }

    fn round(&mut self, tokens: &[u32]) -> Result<[Duration; 2], Failed> {
        let words: Vec<String> = tokens.iter().map(u32::to_string).collect();
        writeln!(self.input, "{DECODED} {}", words.join(" "))?;
        let line = self.line()?;
        let (prompt, decoded) = line.split_once(' ').ok_or("an odd answer")?;
        Ok([Duration::from_secs_f64(prompt.parse()?), Duration::from_secs_f64(decoded.parse()?)])
    }

    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("it is gone".into()),
            _ => Ok(line.trim().to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
