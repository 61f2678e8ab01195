//! Holds the cost of fixed scenarios: they run under callgrind, and their instructions and allocations stay within 3 % of a
//! committed baseline. Times waver on a busy machine; these counts do not. Instructions are those of the measured part
//! alone; allocations include its preparation, because callgrind counts calls all the time.
//!
//! A scenario is an ignored test that calls [`measured_scenario`] once. The baseline holds for one compiler version and one
//! kind of processor. After a change that is meant:
//! `DRAGOMAN_WRITE_BASELINE=1 cargo nextest run --workspace -E 'test(/costs_what_the_baseline_says/)'`.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "a test starts valgrind and reads its own switch")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Growth and decline that count as noise, in percent.
const TOLERANCE: u64 = 3;

/// So many allocations of the preparation depend on the environment: the variables and arguments of the process.
const PREPARATION: u64 = 500;

/// Counts of one scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    instructions: u64,
    allocations: u64,
}

type Baseline = BTreeMap<String, Cost>;

/// What callgrind counts: it looks for the name of this function.
#[inline(never)]
pub fn measured_scenario(work: &mut dyn FnMut()) {
    work();
}

/// The scenarios of one test module.
pub struct InstructionGuard {
    /// The path of the ignored tests, such as `costs`.
    pub module: &'static str,
    pub scenarios: &'static [&'static str],
    /// The committed file.
    pub baseline: PathBuf,
}

impl InstructionGuard {
    /// Fails where a scenario costs more or less than the baseline says.
    pub fn check(&self) {
        let works = Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success());
        if !works {
            crate::skip("valgrind is not installed");
            return;
        }
        let machine = machine();
        if std::env::var_os("DRAGOMAN_WRITE_BASELINE").is_some() {
            std::fs::write(&self.baseline, written(&machine, &self.measure_all())).unwrap();
            return;
        }
        let text = std::fs::read_to_string(&self.baseline).unwrap_or_default();
        if text.lines().next() != Some(&*machine) {
            crate::skip(format!("there is no baseline for {machine}"));
            return;
        }
        compare(&parsed(&text), &self.measure_all());
    }

    fn measure_all(&self) -> Baseline {
        self.scenarios.iter().map(|name| ((*name).to_owned(), measure(self.module, name))).collect()
    }
}

fn compare(baseline: &Baseline, measured: &Baseline) {
    assert_eq!(baseline.keys().collect::<Vec<_>>(), measured.keys().collect::<Vec<_>>());
    let is_near = |was: u64, is: u64| was.abs_diff(is) * 100 <= was * TOLERANCE;
    let differs = |name: &&String| {
        let (was, is) = (baseline[*name], measured[*name]);
        let allocates_alike = is_near(was.allocations, is.allocations)
            || was.allocations.abs_diff(is.allocations) <= PREPARATION;
        !is_near(was.instructions, is.instructions) || !allocates_alike
    };
    let different: Vec<_> = baseline.keys().filter(differs).collect();
    assert!(
        different.is_empty(),
        "{different:?} differ by more than {TOLERANCE} %. If that is meant, write a new baseline (see \
         testkit/src/instruction_guard.rs).\nbaseline: {baseline:#?}\nmeasured: {measured:#?}"
    );
}

/// Runs one scenario of this program under callgrind.
fn measure(module: &str, scenario: &str) -> Cost {
    let profile = std::env::temp_dir().join(format!("callgrind-{}-{scenario}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured_scenario*"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--test-threads=1", &format!("{module}::{scenario}")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {text}{}", String::from_utf8_lossy(&output.stdout));
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok());
    let cost = Cost { instructions: collected.unwrap_or(0), allocations: allocations(&profile) };
    let _ = std::fs::remove_file(&profile);
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
