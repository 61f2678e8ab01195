//! What the store holds, and that it stays small and private.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use undo::{Limits, TurnKey};

use crate::{Bench, key};

#[test]
fn build_folders_are_known_by_name_and_manifest() {
    let bench = Bench::new();
    for (file, text) in [
        ("Cargo.toml", "[package]\n"),
        ("target/debug/made", "x"),
        ("web/package.json", "{}"),
        ("web/node_modules/a/b.js", "x"),
        ("py/.venv/pyvenv.cfg", "home = /usr\n"),
        ("py/.venv/lib/x.py", "x"),
        // The same names without a manifest are the user's.
        ("photos/target/cat.jpg", "cat"),
        ("photos/node_modules/dog.jpg", "dog"),
        ("photos/venv/bird.jpg", "bird"),
        ("__pycache__/mine.txt", "mine"),
        (".gitignore", "photos/\n.env\n"),
        (".env", "SECRET=1"),
    ] {
        bench.write(file, text);
    }
    let snapshot = bench.store.before_command(&key(1), &[bench.root()]).unwrap();
    let mut skipped = snapshot.coverage.build_folders.clone();
    skipped.sort();
    assert_eq!(skipped, ["py/.venv", "target", "web/node_modules"].map(|name| bench.path(name)));
    for file in ["photos", ".env", "__pycache__", "target"] {
        let path = bench.path(file);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    bench.store.after_command(snapshot).unwrap();
    bench.undo(None);
    for (file, text) in
        [("photos/target/cat.jpg", "cat"), (".env", "SECRET=1"), ("__pycache__/mine.txt", "mine")]
    {
        assert_eq!(bench.read(file), text);
    }
    assert!(!bench.path("target").exists());
}

#[test]
fn the_store_is_private() {
    let bench = Bench::new();
    bench.write("a.txt", "secret\n");
    bench.shell(1, "echo b > a.txt");
    bench.undo(None);
    check_private(&bench.folder.path().join("undo"));
}

fn check_private(path: &Path) {
    let metadata = fs::metadata(path).unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    assert_eq!(mode, if metadata.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check_private(&entry.unwrap().path());
        }
    }
}

#[test]
fn nothing_is_written_before_the_first_record() {
    let bench = Bench::new();
    assert!(bench.store.plan_undo("chat", None).unwrap().is_none());
    assert!(bench.store.turns("chat").unwrap().is_empty());
    assert_eq!(bench.store.disk_use().bytes, 0);
    assert!(!bench.folder.path().join("undo").exists());
}

#[test]
fn a_deleted_chat_leaves_only_what_the_workspace_still_has() {
    let bench = Bench::new();
    bench.write("a.txt", "first content\n");
    bench.shell(1, "echo 'second content, of the turn' > a.txt");
    bench.write("a.txt", "third content, the user's\n");
    let other = TurnKey { owner: "other".to_owned(), turn: 1 };
    let snapshot = bench.store.before_command(&other, &[bench.root()]).unwrap();
    bench.store.after_command(snapshot).unwrap();
    let full = bench.store.disk_use();
    bench.store.forget("chat").unwrap();
    let left = bench.store.disk_use();
    assert_eq!((full.objects, left.objects), (3, 1));
    assert!(bench.store.plan_undo("chat", None).unwrap().is_none());
    // What is left is what the next command may destroy.
    let snapshot = bench.store.before_command(&other, &[bench.root()]).unwrap();
    fs::remove_file(bench.path("a.txt")).unwrap();
    bench.store.after_command(snapshot).unwrap();
    let plan = bench.store.plan_undo("other", None).unwrap().unwrap();
    bench.store.apply(&plan).unwrap();
    assert_eq!(bench.read("a.txt"), "third content, the user's\n");
}

/// The cap drops the oldest turns and never the last ten.
#[test]
fn the_last_ten_turns_stay() {
    let bench = Bench::with(Limits { file: 1 << 20, total: 100_000, ..Limits::default() });
    bench.write("a.txt", "0");
    for turn in 1..=30 {
        bench.command(turn, || bench.write("a.txt", format!("{turn} ").repeat(1500)));
        // Turns are ordered by their time, in milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let turns: Vec<u64> = bench.store.turns("chat").unwrap().iter().map(|turn| turn.turn).collect();
    assert!(turns.len() >= 10 && turns.len() < 30, "{turns:?}");
    assert!(turns.ends_with(&(21..=30).collect::<Vec<_>>()), "{turns:?}");
    assert!(bench.store.disk_use().bytes <= 100_000);
    bench.undo(Some(21));
    assert_eq!(bench.read("a.txt"), "20 ".repeat(1500));
}

/// Two edits within one tick of the file system's clock, of the same size.
#[test]
fn quick_changes_of_the_same_size_are_seen() {
    for number in 0..50 {
        let bench = Bench::new();
        bench.write("a.txt", format!("{number:03}a"));
        bench.command(1, || bench.write("a.txt", format!("{number:03}b")));
        bench.command(2, || bench.write("a.txt", format!("{number:03}c")));
        bench.undo(None);
        assert_eq!(bench.read("a.txt"), format!("{number:03}b"));
        bench.undo(None);
        assert_eq!(bench.read("a.txt"), format!("{number:03}a"));
    }
}

/// Somebody works in a home folder: it is not copied, and that is said.
#[test]
fn a_workspace_with_too_many_files_is_named() {
    let bench = Bench::with(Limits { entries: 10, ..Limits::default() });
    for number in 0..20 {
        bench.write(&format!("{}/{number}.txt", number % 3), "x");
    }
    for turn in 1..3 {
        let snapshot = bench.store.before_command(&key(turn), &[bench.root()]).unwrap();
        assert_eq!(snapshot.coverage.uncovered, [bench.root()]);
        bench.store.after_command(snapshot).unwrap();
    }
    assert_eq!(bench.store.disk_use().objects, 0);
    bench.tool_writes(3, "a.txt", "made");
    bench.undo(None);
    assert!(!bench.path("a.txt").exists(), "file tools are covered all the same");
}

#[test]
fn files_over_the_limits_are_named_before_a_command() {
    let bench = Bench::with(Limits { file: 100, ..Limits::default() });
    bench.write("small.txt", "x");
    bench.write("data/large.bin", "x".repeat(101));
    assert_eq!(bench.store.unrecoverable(&[bench.root()]).unwrap(), [bench.path("data/large.bin")]);
    assert!(!bench.folder.path().join("undo").exists(), "looking stores nothing");
}
