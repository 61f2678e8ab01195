//! How fast the file index answers in a tree of 100,000 files. `cargo bench -p tools --bench index`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark tells what it measured")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tools::index::{FileIndex, Snapshot};

const FILES: usize = 100_000;
const QUERIES: &[&str] = &[
    "",
    "s",
    "rs",
    "module",
    "component_7/file_3",
    "file_42",
    "fl4",
    "cmp7fil",
    "nothing_like_it",
    "src main",
];

/// What this thread has used: on a busy machine the clock tells of others.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    make(folder.path());
    println!("tree of {FILES} files made in {:?}", began.elapsed());

    let root: PathBuf = folder.path().canonicalize().unwrap();
    let began = Instant::now();
    let snapshot = Snapshot::walk(std::slice::from_ref(&root));
    println!("walk of {} entries: {:?}", snapshot.len(), began.elapsed());

    for query in QUERIES {
        let mut times: Vec<(Duration, Duration)> = (0..21)
            .map(|_| {
                let (began, cpu) = (Instant::now(), thread_time());
                std::hint::black_box(snapshot.search(query, 100));
                (thread_time() - cpu, began.elapsed())
            })
            .collect();
        times.sort();
        let (cpu, wall) = times[10];
        let found = snapshot.search(query, 100).len();
        println!("query {query:?}: {cpu:?} of the processor, {wall:?} by the clock (median), {found} found");
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let index = FileIndex::new(vec![root].into());
        let began = Instant::now();
        let found = index.query("file_42", 100).await;
        println!("first query, with the walk: {:?}, {} found", began.elapsed(), found.len());
        let began = Instant::now();
        let found = index.query("file_42", 100).await;
        println!("second query: {:?}, {} found", began.elapsed(), found.len());
    });
}

/// 100 packages of 10 components of 100 files.
fn make(root: &std::path::Path) {
    for number in 0..FILES {
        let (package, component, file) = (number / 1_000, number / 100 % 10, number % 100);
        let folder = root.join(format!("packages/module_{package}/src/component_{component}"));
        if file == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("file_{file}_{number}.rs")), b"").unwrap();
    }
}
