//! Files and names that tools rarely think of: everything comes back byte for byte, and a redo does it again.

use std::fs;
use std::os::unix::net::UnixListener;

use crate::{Bench, sh};

/// What is there, and what the agent's command does.
const CASES: &[(&str, &str)] = &[
    ("echo a > a; ln a b", "echo changed > b"),
    ("echo a > a; ln a b", "rm a; echo other > a"),
    ("echo a > x", "rm x; mkdir x; echo y > x/y"),
    ("mkdir -p x/deep; echo y > x/deep/y", "rm -r x; echo file > x"),
    ("echo a > x; mkdir y; echo b > y/b", "mv x z; mv y x; mv z y"),
    ("echo a > name", "mv name NAME"),
    ("echo a > name; echo b > Name", "mv name x; mv Name name; mv x Name"),
    ("echo a > tool", "chmod +x tool"),
    ("echo a > tool; chmod 4755 tool", "chmod 600 tool; echo b > tool"),
    ("mkdir -m 700 closed; echo a > closed/a", "chmod 755 closed; rm closed/a"),
    ("mkdir -m 555 closed", "chmod 755 closed; echo a > closed/a"),
    ("printf a > \"$(printf 'two\\nlines')\"", "rm -f two*"),
    ("printf a > \"$(printf 'bad\\377name')\"", "for f in bad*; do mv \"$f\" good; done"),
    ("printf a > -rf; printf b > ' '; printf c > '*'", "rm -f -- -rf ' ' '*'"),
    ("echo a > a; ln -s a link", "rm link; echo file > link"),
    ("echo a > a; ln -s a link", "echo through > link"),
    ("mkdir real; echo a > real/a; ln -s real link", "rm link; mkdir link; echo b > link/b"),
    ("mkdir real; echo a > real/a; ln -s real link", "rm link/a"),
    ("ln -s nowhere link; ln -s link loop; ln -s self self", "rm link loop self"),
    ("mkdir -p empty/folders; : > file", "rm -rf empty file"),
    ("mkdir src; echo a > src/a; echo b > src/b", "mv src lib; echo c >> lib/a"),
    (
        "head -c 300000 /dev/zero > zeros; head -c 300000 /dev/urandom > noise",
        "truncate -s 5 zeros; cat zeros > noise",
    ),
    ("git init -q nested; cd nested; echo a > a; git add a; git commit -qm a", "rm -rf nested"),
    (
        "git init -q nested; cd nested; echo a > a; git add a; git commit -qm a",
        "cd nested; git checkout -q -b other; echo b > a; git commit -qam b",
    ),
    (
        "git init -q one; cd one; echo a > a; git add a; git commit -qm a; git worktree add -q ../two",
        "rm -rf two; cd one; git worktree prune; git branch -qD two",
    ),
    (
        "git init -q --bare store.git; git clone -q store.git copy; cd copy; echo a > a; git add a; git commit -qm a; git push -q",
        "rm -rf store.git copy",
    ),
    (
        "git init -q inner; cd inner; echo a > a; git add a; git commit -qm a; cd ..; git init -q outer; cd outer; \
         git -c protocol.file.allow=always submodule -q add ../inner sub; git commit -qm sub",
        "cd outer; git rm -qf sub; git commit -qm gone; rm -rf .git/modules",
    ),
];

#[test]
fn odd_files_come_back_byte_for_byte() {
    for (setup, script) in CASES {
        let mut bench = Bench::new();
        sh(&bench.root(), setup);
        let before = bench.tree();
        assert!(!before.is_empty(), "{setup}");
        bench.shell(1, script);
        let after = bench.tree();
        assert_ne!(before, after, "{script} changes nothing");
        bench.restart();
        let undone = bench.undo(None);
        assert!(undone.left.is_empty(), "{script}: {:?}", undone.left);
        let left = |path: &std::path::Path| path.components().any(|part| part.as_os_str() == "objects");
        // Objects that git added stay: they take space and nothing else.
        let (mut now, mut was) = (bench.tree(), before.clone());
        now.retain(|path, _| was.contains_key(path) || !left(path));
        was.retain(|path, _| !left(path) || now.contains_key(path));
        assert_eq!(was, now, "{setup} | {script}");
        let redone = bench.redo();
        assert!(redone.left.is_empty(), "{script}: {:?}", redone.left);
        let mut again = bench.tree();
        again.retain(|path, _| after.contains_key(path) || !left(path));
        assert_eq!(after, again, "{setup} | {script}, redone");
    }
}

/// Pipes, sockets and devices have no bytes to keep: they neither block a command nor its undo.
#[test]
fn pipes_and_sockets_are_passed_over() {
    let bench = Bench::new();
    sh(&bench.root(), "mkfifo pipe; mkdir dir; mkfifo dir/pipe; echo a > a");
    let socket = UnixListener::bind(bench.path("socket")).unwrap();
    bench.shell(1, "echo changed > a; rm -f pipe; echo file > pipe; rm -rf dir");
    let undone = bench.undo(None);
    assert!(undone.left.is_empty(), "{:?}", undone.left);
    assert_eq!(bench.read("a"), "a\n");
    assert!(!bench.path("pipe").exists() && bench.path("dir").is_dir());
    drop(socket);
    // A file tool is pointed at one.
    sh(&bench.root(), "mkfifo again");
    let coverage = bench.store.before_write(&crate::key(2), &bench.path("again")).unwrap();
    assert_eq!(coverage.uncovered, [bench.path("again")]);
}

/// A file that grows while it is copied: the copy is one of its states, and later states are found.
#[test]
fn a_file_that_changes_while_it_is_copied_is_kept_as_it_was_at_some_moment() {
    let bench = Bench::new();
    bench.write("log", "x".repeat(1 << 20));
    let path = bench.path("log");
    let writer = std::thread::spawn(move || {
        for _ in 0..200 {
            let mut text = fs::read(&path).unwrap();
            text.extend(b"y");
            fs::write(&path, text).unwrap();
        }
    });
    for turn in 1..6 {
        bench.shell(turn, "true");
    }
    writer.join().unwrap();
    bench.shell(6, "echo gone > log");
    bench.undo(Some(6));
    assert_eq!(bench.read("log").len(), (1 << 20) + 200, "what was there before the command");
}
