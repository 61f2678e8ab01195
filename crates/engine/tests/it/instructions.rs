//! The guard of the engine's cost: fixed scenarios run under callgrind, and their instructions and allocations stay
//! within 3 % of the committed baseline. Times waver on a busy machine; these counts do not. Instructions are those of the
//! measured part alone; allocations include its preparation, because callgrind counts calls all the time.
//!
//! The baseline holds for one compiler version and one kind of processor. After a change that is meant:
//! `DRAGOMAN_WRITE_BASELINE=1 cargo nextest run --workspace -E 'test(/instructions::/)'`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;

use domain::ModelEvent;
use domain::model::BlockKind;
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};
use tokio::runtime::Runtime;

use crate::bench::Bench;

const SCENARIOS: [&str; 4] = ["one_turn", "thousand_chunks", "fifty_tool_rounds", "long_chat"];

/// Growth and decline that count as noise, in percent.
const TOLERANCE: u64 = 3;

/// Messages of the user in the long chat.
const LONG_CHAT: usize = 150;

/// Counts of one scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    instructions: u64,
    allocations: u64,
}

type Baseline = BTreeMap<String, Cost>;

/// What callgrind counts: it looks for the name of this function.
#[inline(never)]
fn measured_scenario(runtime: &Runtime, work: Pin<&mut dyn Future<Output = ()>>) {
    runtime.block_on(work);
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn one_turn() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let mut client = bench.client().await;
        client.run("first").await;
        (bench, client)
    });
    measured_scenario(&runtime, std::pin::pin!(async { drop(client.run("hello").await) }));
    drop(bench);
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn thousand_chunks() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let client = bench.client().await;
        (bench, client)
    });
    let event = |event| ModelStep::Event(event);
    let start = event(ModelEvent::BlockStarted { block: 1, kind: BlockKind::Text });
    let mut answer = ScriptedAnswer::default().then(start);
    for number in 0..1000 {
        answer = answer.then(event(ModelEvent::BlockDelta { block: 1, text: format!("word {number:04} ") }));
    }
    bench.models.answer(answer.then(event(ModelEvent::BlockEnded { block: 1, provider: None })));
    measured_scenario(&runtime, std::pin::pin!(async { drop(client.run("speak").await) }));
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn fifty_tool_rounds() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let client = bench.client().await;
        (bench, client)
    });
    for number in 0..50 {
        bench.models.answer(ScriptedAnswer::call("eca__read", json!({"text": format!("file {number}")})));
    }
    measured_scenario(&runtime, std::pin::pin!(async { drop(client.run("read").await) }));
}

/// Another process opens a long chat and goes on with it.
#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn long_chat() {
    let runtime = runtime();
    let (bench, session) = runtime.block_on(async {
        let bench = Bench::new();
        let mut client = bench.client().await;
        for number in 0..LONG_CHAT {
            client.run(&format!("message {number}")).await;
        }
        client.close().await.unwrap();
        (bench, client.session.clone())
    });
    let other = runtime.block_on(async { bench.other_process() });
    measured_scenario(
        &runtime,
        std::pin::pin!(async {
            let mut client = other.join(&session).await;
            drop(client.run("go on").await);
        }),
    );
}

#[test]
fn the_engine_costs_what_the_baseline_says() {
    let works = Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success());
    if !works {
        eprintln!("skipped: valgrind is not installed");
        return;
    }
    let (file, machine) = (baseline_file(), machine());
    let measure_all =
        || SCENARIOS.iter().map(|name| ((*name).to_owned(), measure(name))).collect::<Baseline>();
    if std::env::var_os("DRAGOMAN_WRITE_BASELINE").is_some() {
        std::fs::write(&file, written(&machine, &measure_all())).unwrap();
        return;
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if text.lines().next() != Some(&*machine) {
        eprintln!("skipped: there is no baseline for {machine}");
        return;
    }
    let measured = measure_all();
    let baseline = parsed(&text);
    assert_eq!(baseline.keys().collect::<Vec<_>>(), measured.keys().collect::<Vec<_>>());
    let is_near = |was: u64, is: u64| was.abs_diff(is) * 100 <= was * TOLERANCE;
    let differs = |name: &&String| {
        let (was, is) = (baseline[*name], measured[*name]);
        !is_near(was.instructions, is.instructions) || !is_near(was.allocations, is.allocations)
    };
    let different: Vec<_> = baseline.keys().filter(differs).collect();
    assert!(
        different.is_empty(),
        "{different:?} differ by more than {TOLERANCE} %. If that is meant, write a new baseline (see the top of this file).\n\
         baseline: {baseline:#?}\nmeasured: {measured:#?}"
    );
}

/// Runs one scenario of this program under callgrind.
fn measure(scenario: &str) -> Cost {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured_scenario*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--test-threads=1", &format!("instructions::{scenario}")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {text}{}", String::from_utf8_lossy(&output.stdout));
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok());
    let cost = Cost { instructions: collected.unwrap_or(0), allocations: allocations(&profile) };
    assert!(cost.instructions > 0 && cost.allocations > 0, "{scenario}: {cost:?} {text}");
    cost
}

/// Calls of the allocator in a profile: the line after the name of a called function says how often it was called.
fn allocations(profile: &Path) -> u64 {
    let (mut known, mut is_allocator, mut sum) = (BTreeMap::new(), false, 0);
    for line in std::fs::read_to_string(profile).unwrap().lines() {
        // A name is written once; later lines have its number alone.
        if let Some((kind, rest)) = line.split_once("fn=") {
            let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
            let is_one = ["malloc", "calloc", "realloc", "memalign", "posix_memalign"].contains(&name);
            let is_one = if name.is_empty() { known.get(number).copied().unwrap_or(false) } else { is_one };
            known.insert(number.to_owned(), is_one);
            is_allocator = kind == "c" && is_one;
        } else if let Some(calls) = line.strip_prefix("calls=").filter(|_| is_allocator) {
            sum += calls.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    sum
}

/// What a baseline depends on.
fn machine() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default();
    format!("{version}, {}", std::env::consts::ARCH)
}

fn baseline_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/instructions.txt")
}

fn written(machine: &str, costs: &Baseline) -> String {
    let line =
        |(name, cost): (&String, &Cost)| format!("{name} {} {}\n", cost.instructions, cost.allocations);
    format!("{machine}\n{}", costs.iter().map(line).collect::<String>())
}

fn parsed(text: &str) -> Baseline {
    let lines = text.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let cost = |words: &[&str]| Cost {
        instructions: words[1].parse().unwrap(),
        allocations: words[2].parse().unwrap(),
    };
    lines.map(|words| (words[0].to_owned(), cost(&words))).collect()
}
