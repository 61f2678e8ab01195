//! What a command costs: the first one copies the workspace, later ones only look. `cargo bench -p dragoman-undo`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and has no caller"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use undo::{Limits, TurnKey, UndoStore};

const FILES: usize = 50_000;
const PER_FOLDER: usize = 50;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    for number in 0..FILES {
        let parent = root.join(format!("folder-{}", number / PER_FOLDER));
        if number % PER_FOLDER == 0 {
            fs::create_dir_all(&parent).unwrap();
        }
        fs::write(parent.join(format!("file-{number}.txt")), format!("content {number}\n").repeat(20))
            .unwrap();
    }
    let key = |turn| TurnKey { owner: "chat".to_owned(), turn };
    let store = UndoStore::new(folder.path().join("undo"), Limits::default());
    let start = Instant::now();
    let snapshot = store.before_command(&key(1), std::slice::from_ref(&root)).unwrap();
    println!("{:<58} {:>10.1} ms", format!("first command, {FILES} files copied"), millis(start.elapsed()));
    store.after_command(snapshot).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for turn in 2..22 {
        let start = Instant::now();
        let snapshot = store.before_command(&key(turn), std::slice::from_ref(&root)).unwrap();
        before.push(start.elapsed());
        let start = Instant::now();
        store.after_command(snapshot).unwrap();
        after.push(start.elapsed());
    }
    before.sort();
    let (half, most) = (millis(before[before.len() / 2]), millis(before[(before.len() - 1) * 99 / 100]));
    println!(
        "figure: {FILES} files scanned in {half:.0} ms (p50), {most:.0} ms (p99; target 150) before a later command"
    );
    row("before a later command, p50 and p99 (target 150)", before);
    row("after a later command, p50 and p99", after);
    let changing = (22..42).map(|turn| changing_command(&store, &key(turn), &root)).collect();
    row("before and after a command that changes a file (target 130)", changing);
    let written = (42..92).map(|turn| written_file(&store, &key(turn), &root)).collect();
    row("before and after a written file (target 5)", written);
    let floor = (0..50).map(|_| floor(folder.path())).collect();
    row("floor: two small files written and synced", floor);
    let start = Instant::now();
    let restarted = UndoStore::new(folder.path().join("undo"), Limits::default());
    restarted.before_command(&key(30), &[root]).unwrap();
    println!("{:<58} {:>10.1} ms", "first command of a new process", millis(start.elapsed()));
}

/// A review as before every command that may destroy, both scans, and what is written.
fn changing_command(store: &UndoStore, key: &TurnKey, root: &Path) -> Duration {
    let roots = [root.to_owned()];
    let start = Instant::now();
    store.unrecoverable(&roots).unwrap();
    let snapshot = store.before_command(key, &roots).unwrap();
    let spent = start.elapsed();
    fs::write(root.join("folder-3/file-150.txt"), format!("turn {}\n", key.turn)).unwrap();
    let start = Instant::now();
    store.after_command(snapshot).unwrap();
    spent + start.elapsed()
}

fn written_file(store: &UndoStore, key: &TurnKey, root: &Path) -> Duration {
    let file = root.join("folder-4/file-200.txt");
    let start = Instant::now();
    store.unrecoverable_at(std::slice::from_ref(&file), &[root.to_owned()]).unwrap();
    store.before_write(key, &file).unwrap();
    let spent = start.elapsed();
    fs::write(&file, format!("turn {}\n", key.turn)).unwrap();
    let start = Instant::now();
    store.after_write(key, &file).unwrap();
    spent + start.elapsed()
}

/// The former bytes and a line of the log are on disk before a tool writes.
fn floor(folder: &Path) -> Duration {
    let start = Instant::now();
    for name in ["one", "other"] {
        let mut file = fs::File::create(folder.join(name)).unwrap();
        file.write_all(b"some bytes").unwrap();
        file.sync_data().unwrap();
    }
    start.elapsed()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| millis(times[(times.len() - 1) * share / 100]);
    println!("{name:<58} {:>10.1} {:>10.1} ms", at(50), at(99));
}
