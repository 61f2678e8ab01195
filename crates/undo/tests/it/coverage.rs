//! What the store holds, and that it stays small and private.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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

/// A tool that writes one file looks at that file, however many others there are.
#[test]
fn only_the_files_that_a_tool_names_are_looked_at() {
    let bench = Bench::with(Limits { file: 100, entries: 10, ..Limits::default() });
    for number in 0..20 {
        bench.write(&format!("{}/{number}.txt", number % 3), "x");
    }
    bench.write("data/large.bin", "x".repeat(101));
    bench.write("large.bin", "x".repeat(101));
    std::os::unix::fs::symlink("large.bin", bench.path("link")).unwrap();
    let at = |names: &[&str]| {
        let files: Vec<_> = names.iter().map(|name| bench.path(name)).collect();
        bench.store.unrecoverable_at(&files, &[bench.root()]).unwrap()
    };
    assert_eq!(bench.store.unrecoverable(&[bench.root()]).unwrap(), [bench.root()], "too many to look at");
    assert!(at(&["0/0.txt", "new/file.txt", "1"]).is_empty());
    assert_eq!(at(&["0/0.txt", "large.bin"]), [bench.path("large.bin")]);
    assert_eq!(at(&["link"]), [bench.path("large.bin")], "a tool may write through a link");
    assert_eq!(at(&["data"]), [bench.path("data/large.bin")], "a folder stands for what is in it");
    assert!(!bench.folder.path().join("undo").exists(), "looking stores nothing");
}

/// A file that the store had no room for is named while there is none.
#[test]
fn a_file_that_a_full_store_refused_is_named() {
    let bench = Bench::with(Limits { file: 10_000, total: 5_000, ..Limits::default() });
    bench.write("a.txt", "a".repeat(3_000));
    bench.write("b.txt", "b".repeat(3_000));
    bench.command(1, || {});
    let refused: Vec<_> = ["a.txt", "b.txt"]
        .iter()
        .map(|name| bench.path(name))
        .filter(|path| {
            !bench.store.unrecoverable_at(std::slice::from_ref(path), &[bench.root()]).unwrap().is_empty()
        })
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(bench.store.unrecoverable(&[bench.root()]).unwrap(), refused);
}

/// A later command writes what has changed, not the whole index again.
#[test]
fn the_index_grows_by_what_changed() {
    let mut bench = Bench::new();
    for number in 0..1_000 {
        bench.write(&format!("{}/{number}.txt", number % 7), format!("{number}"));
    }
    // Until no file is too new to be believed.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let index = || {
        let entry = fs::read_dir(bench.folder.path().join("undo/indexes")).unwrap().next().unwrap().unwrap();
        entry.metadata().unwrap()
    };
    bench.command(1, || {});
    let mut before = index();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(25));
        bench.command(1, || {});
        let now = index();
        if (now.len(), now.ino()) == (before.len(), before.ino()) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the index never rests");
        before = now;
    }
    bench.command(2, || bench.write("3/3.txt", "changed"));
    let after = index();
    let grown = after.len() - before.len();
    assert_eq!(before.ino(), after.ino(), "the file is not written anew");
    assert!((1..2_000).contains(&grown), "{grown} bytes for one file of {}", before.len());
    // Another process reads the same, and takes it back.
    bench.restart();
    bench.command(3, || bench.write("4/4.txt", "changed too"));
    bench.undo(Some(2));
    assert_eq!((bench.read("3/3.txt"), bench.read("4/4.txt")), ("3".to_owned(), "4".to_owned()));
    // Many changes make a new file, which is smaller than all of them together.
    for turn in 4..40 {
        bench.shell(
            turn,
            "for folder in 0 1 2 3 4 5 6; do for file in $folder/*1*.txt; do echo x >> $file; done; done",
        );
    }
    assert!(bench.folder.path().join("undo/indexes").read_dir().unwrap().count() == 1);
    let largest = before.len() * 3 + (2 << 20);
    let files = fs::read_dir(bench.folder.path().join("undo/indexes")).unwrap();
    assert!(files.flatten().all(|file| file.metadata().unwrap().len() < largest));
    bench.undo(Some(4));
    assert_eq!(bench.read("1/1.txt"), "1");
}

/// The review of a command scans, and the command that begins at once uses that scan; whatever the store records in
/// between makes it scan again.
#[test]
fn a_scan_of_a_moment_ago_is_not_used_after_a_change_that_is_known() {
    let bench = Bench::new();
    bench.write("a.txt", "first");
    for turn in 1..20 {
        bench.store.unrecoverable(&[bench.root()]).unwrap();
        bench.tool_writes(turn, "a.txt", format!("of turn {turn}"));
        let snapshot = bench.store.before_command(&key(turn + 100), &[bench.root()]).unwrap();
        bench.write("a.txt", "of the command");
        bench.store.after_command(snapshot).unwrap();
        bench.undo(Some(turn + 100));
        assert_eq!(bench.read("a.txt"), format!("of turn {turn}"));
    }
    bench.store.unrecoverable(&[bench.root()]).unwrap();
    bench.write("a.txt", "of a hook");
    bench.store.forget_scans();
    bench.command(200, || bench.write("a.txt", "of the command"));
    bench.undo(Some(200));
    assert_eq!(bench.read("a.txt"), "of a hook");
    bench.store.unrecoverable(&[bench.root()]).unwrap();
    bench.command(201, || bench.write("a.txt", "of the command"));
    bench.undo(Some(201));
    assert_eq!(bench.read("a.txt"), "of a hook", "a scan that is used again is as good");
}

/// A power cut may leave the name of a content without its bytes: it is stored again.
#[test]
fn a_content_that_lost_its_bytes_is_stored_again() {
    let mut bench = Bench::new();
    bench.write("a.txt", "precious\n");
    bench.command(1, || {});
    let folders = fs::read_dir(bench.folder.path().join("undo/objects")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    fs::write(&files[0], "").unwrap();
    fs::remove_dir_all(bench.folder.path().join("undo/indexes")).unwrap();
    bench.restart();
    bench.shell(2, "rm a.txt");
    bench.undo(Some(2));
    assert_eq!(bench.read("a.txt"), "precious\n");
}
