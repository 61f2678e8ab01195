//! What the sandbox adds to one command. `cargo bench -p dragoman-sandbox --bench overhead`
//!
//! `DRAGOMAN_HELPER` names the program that is the helper: `target/release/dragoman` for what users have, else the small
//! one of this crate.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark says what it measured and with which program"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use process::Spawn;
use process::sandbox::{Allowance, Facts, Sandbox};
use tokio_util::sync::CancellationToken;

const RUNS: usize = 200;

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    let small = env!("CARGO_BIN_EXE_sandbox-helper");
    let helper = std::env::var_os("DRAGOMAN_HELPER").unwrap_or_else(|| small.into());
    println!("helper: {}", helper.to_string_lossy());
    let sandbox = Arc::new(Sandbox::new(Facts {
        helper: helper.into(),
        home: std::env::home_dir().unwrap(),
        roots: vec![workspace.clone()],
        cache: workspace.join("cache"),
        temporary: std::env::temp_dir(),
        ..Facts::default()
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        println!("{}", process::sandbox_support(&sandbox).await.sentence());
        let (mut plain, mut confined) = (Vec::new(), Vec::new());
        // In turn, so that both meet the same machine.
        for _ in 0..RUNS {
            plain.push(time(Spawn::new("/bin/true").directory(&workspace)).await);
            let spawn = Spawn::new("/bin/true").directory(&workspace);
            confined.push(time(spawn.confine(sandbox.clone(), Allowance::default())).await);
        }
        let pairs = plain.iter().zip(&confined);
        let mut added: Vec<Duration> =
            pairs.map(|(plain, confined)| confined.saturating_sub(*plain)).collect();
        for (name, times) in [("without", &mut plain), ("with", &mut confined), ("added", &mut added)] {
            times.sort();
            let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
            println!("{name}: p50 {:?}, p95 {:?}", at(50), at(95));
        }
    });
}

async fn time(spawn: Spawn) -> Duration {
    let began = Instant::now();
    let finished = spawn.run(&CancellationToken::new()).await.unwrap();
    assert!(finished.success());
    began.elapsed()
}
