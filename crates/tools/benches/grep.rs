//! `grep` over 100,000 files, in turn with what ripgrep does with the same libraries: a parallel walk without an order.
//! `cargo bench -p dragoman-tools --bench grep`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark tells what it measured")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use grep_regex::RegexMatcherBuilder;
use grep_searcher::sinks::Bytes;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::{WalkBuilder, WalkState};

const FILES: usize = 100_000;
const PER_FOLDER: usize = 100;
const ROUNDS: usize = 7;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    make(&root);
    for pattern in ["needle_[0-9]+", "fn absent_everywhere"] {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let found = tools::tool::grep::search_folder(&root, pattern).unwrap();
            ours.push(start.elapsed());
            let start = Instant::now();
            let matches = unordered(&root, pattern);
            floor.push(start.elapsed());
            assert_eq!(found.contains("needle"), matches > 0, "{found:.200}");
        }
        let (ours, floor) = (median(ours), median(floor));
        let ratio = ours / floor;
        println!("{pattern:<24} {ours:>8.1} ms, floor {floor:>8.1} ms, ratio {ratio:.2} (target 1.1)");
    }
}

fn make(root: &Path) {
    for number in 0..FILES / PER_FOLDER {
        let folder = root.join(format!("module_{}/part_{number}", number % 40));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..PER_FOLDER {
            let mut text = format!("fn f{file}() {{ let value = {number}; }}\n").repeat(20);
            if (number, file) == (FILES / PER_FOLDER / 2, 50) {
                text.push_str("// needle_42\n");
            }
            std::fs::write(folder.join(format!("file_{file}.rs")), text).unwrap();
        }
    }
}

fn unordered(root: &Path, pattern: &str) -> usize {
    let matcher = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build(pattern).unwrap();
    let matches = AtomicUsize::new(0);
    WalkBuilder::new(root).hidden(false).require_git(false).build_parallel().run(|| {
        let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).build();
        let (matcher, matches) = (matcher.clone(), &matches);
        Box::new(move |entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let sink = Bytes(|_, _| {
                    matches.fetch_add(1, Ordering::Relaxed);
                    Ok(true)
                });
                let _ = searcher.search_path(&matcher, entry.path(), sink);
            }
            WalkState::Continue
        })
    });
    matches.load(Ordering::Relaxed)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
