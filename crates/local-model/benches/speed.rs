//! How fast the embedded model is, beside llama.cpp on the same file in the same run, one thread each.
//!
//!     DRAGOMAN_PEER_PYTHON=PYTHON cargo bench -p dragoman-local-model --bench speed
//!
//! All take turns, so that a busy machine slows all; the median of the turns counts, in CPU time of the computing
//! thread, which for one thread on a quiet machine is the time on the clock. For the peer, a Python that can
//! `import llama_cpp` is needed (`python3` unless the variable names another one); docs/benchmarks.md says how to
//! build it. Each of `CONFIGURATIONS` that runs is a row, named by what it was built with and told to do.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark is a program of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use local_model::{DEFAULT, Engine, Limits, Message, Role, Sampling, Session};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 9;
const SHORT: usize = 16;
const PROMPT: usize = 500;
const DECODED: usize = 64;
const TEXT: &str = "The history of the lighthouse begins long before electric light. Fires were lit on hills, and later \
    on towers of stone, so that ships could find the mouth of a harbor at night. ";
/// Arguments of `llama_cpp_peer.py`: the layout of the weights, flash attention, and the type of its cache.
const CONFIGURATIONS: [[&str; 3]; 5] = [
    ["repack", "off", "f16"],
    ["repack", "on", "f16"],
    ["repack", "on", "q8_0"],
    ["plain", "off", "f16"],
    ["plain", "on", "f16"],
];

type Failed = Box<dyn std::error::Error>;

/// CPU time of decoding from `SHORT` tokens on, of a prompt, and of decoding after it.
type Turn = [Duration; 3];

fn main() -> Result<(), Failed> {
    let path = model()?;
    let mut ours = Ours::load(&path)?;
    let mut peers: Vec<Peer> =
        CONFIGURATIONS.iter().filter_map(|arguments| Peer::start(&path, arguments)).collect();
    let mut turns = vec![Vec::new(); peers.len() + 1];
    let mut reading = Vec::new();
    for round in 0..ROUNDS {
        reading.push(read_weights(&path)?);
        // The first one changes, so that nobody always finds the caches the same other one left.
        for place in 0..=peers.len() {
            let turn = (place + round) % turns.len();
            turns[turn].push(match turn.checked_sub(1) {
                None => ours.round()?,
                Some(peer) => peers[peer].round(&ours.tokens)?,
            });
        }
    }
    println!("kernels: {}; file: {}", ours.kernels(), path.display());
    println!("{:54} {:>9} {:>9} {:>9} {:>9}", "tokens/s", "from 16", "from 500", "prompt", "load (ms)");
    let rates = speeds(&turns[0]);
    print_row("Dragoman", rates, ours.load, rates);
    for (peer, turns) in peers.iter().zip(&turns[1..]) {
        print_row(&peer.about, speeds(turns), peer.load, rates);
    }
    if peers.is_empty() {
        println!("no peer: docs/benchmarks.md says how to build llama-cpp-python for DRAGOMAN_PEER_PYTHON");
    }
    let bytes = std::fs::metadata(&path)?.len() as f64;
    let gigabytes = |time: Duration| bytes / time.as_secs_f64() / 1e9;
    println!("{:54} {:>9.1} GB/s", "weights read while decoding from 16", rates[0] * bytes / 1e9);
    println!(
        "{:54} {:>9.1} GB/s",
        "the file read by one thread that only adds",
        gigabytes(median(&mut reading))
    );
    println!("{:54} {:>9.1} ms", "first token, chat", ours.first_token()?.as_secs_f64() * 1e3);
    println!("{:54} {:>9.1} MB", "memory beyond the file", anonymous_memory()?);
    let [alone, together] = on_the_clock(&ours)?;
    println!("{:54} {alone:>9.1} {together:>9.1}", "decoding by the clock, 1 and 2 threads (tokens/s)");
    Ok(())
}

fn print_row(name: &str, rates: [f64; 3], load: Duration, ours: [f64; 3]) {
    print!("{name:54}");
    for (rate, ours) in rates.iter().zip(ours) {
        print!(" {rate:>9.1} (ours / it: {:.2})", ours / rate);
    }
    println!(" {:>9.1}", load.as_secs_f64() * 1e3);
}

/// Medians, as tokens per second.
fn speeds(turns: &[Turn]) -> [f64; 3] {
    let counts = [DECODED, PROMPT, DECODED];
    let speed = |index: usize| {
        let mut times: Vec<Duration> = turns.iter().map(|turn| turn[index]).collect();
        counts[index] as f64 / median(&mut times).as_secs_f64()
    };
    [speed(0), speed(2), speed(1)]
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// CPU time of reading every byte of the mapped file once: no engine can decode a token faster.
fn read_weights(path: &Path) -> Result<Duration, Failed> {
    let file = std::fs::File::open(path)?;
    // SAFETY: read only, and nobody writes into a model.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let sum = |map: &[u8]| {
        let words = map.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        std::hint::black_box(words.fold(0, u64::wrapping_add));
    };
    // The first time maps the pages.
    sum(&map);
    let started = cpu_time();
    sum(&map);
    Ok(cpu_time() - started)
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

    fn round(&mut self) -> Result<Turn, Failed> {
        let short = self.tokens[..SHORT].to_vec();
        let [_, from_short] = self.decode_after(short)?;
        let [prompt, from_long] = self.decode_after(self.tokens.clone())?;
        Ok([from_short, prompt, from_long])
    }

    /// The time of the prompt, then of decoding.
    fn decode_after(&mut self, mut tokens: Vec<u32>) -> Result<[Duration; 2], Failed> {
        let stop = AtomicBool::new(false);
        // Another beginning, so that nothing is remembered.
        self.session.logits(&[0], &stop)?;
        let started = cpu_time();
        self.session.logits(&tokens, &stop)?;
        let prompt = cpu_time() - started;
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
    /// `None` where there is no llama.cpp, or one that crashes: its AMX kernels do in some builds.
    fn start(path: &Path, arguments: &[&str]) -> Option<Peer> {
        let mut peer = Peer::spawn(path, arguments).ok()?;
        match peer.round(&[0; PROMPT]) {
            Ok(_) => Some(peer),
            Err(error) => {
                println!("{} does not run: {error}", peer.about);
                None
            }
        }
    }

    fn spawn(path: &Path, arguments: &[&str]) -> Result<Peer, Failed> {
        let python = std::env::var_os("DRAGOMAN_PEER_PYTHON").unwrap_or_else(|| "python3".into());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/llama_cpp_peer.py");
        let mut command = Command::new(python);
        command
            .arg(script)
            .arg(path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut peer = Peer { child, input, output, load: Duration::ZERO, about: String::new() };
        peer.load = Duration::from_secs_f64(peer.line().map_err(|_| "it has no llama_cpp")?.parse()?);
        let [weights, flash, cache] = arguments else { return Err("three arguments".into()) };
        peer.about = format!("{}: {weights} weights, flash attention {flash}, {cache} cache", peer.line()?);
        Ok(peer)
    }

    fn round(&mut self, tokens: &[u32]) -> Result<Turn, Failed> {
        let [_, from_short] = self.decode_after(&tokens[..SHORT])?;
        let [prompt, from_long] = self.decode_after(tokens)?;
        Ok([from_short, prompt, from_long])
    }

    fn decode_after(&mut self, tokens: &[u32]) -> Result<[Duration; 2], Failed> {
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
