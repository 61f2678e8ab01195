//! A process that is killed at any moment leaves a store that can undo what it did.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use undo::{Limits, UndoStore};

use crate::{Bench, Dice, key, scale};

const PLACE: &str = "DRAGOMAN_UNDO_TEST_PLACE";

/// Not a test by itself: the process that is killed.
#[test]
fn victim() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let place = Path::new(&place);
    let store = UndoStore::new(place.join("undo"), Limits::default());
    let root = place.join("work");
    for turn in 1.. {
        let file = root.join(format!("{}.txt", turn % 7));
        store.before_write(&key(turn), &file).unwrap();
        fs::write(&file, format!("agent {turn}\n")).unwrap();
        store.after_write(&key(turn), &file).unwrap();
        let snapshot = store.before_command(&key(turn), std::slice::from_ref(&root)).unwrap();
        for number in 0..7 {
            fs::write(root.join(format!("{number}.txt")), format!("command {turn}\n")).unwrap();
        }
        let _ = fs::remove_file(root.join("keep/user.txt"));
        store.after_command(snapshot).unwrap();
    }
}

/// Not a test by itself: the process that is killed while it restores.
#[test]
fn restoring_victim() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let store = UndoStore::new(Path::new(&place).join("undo"), Limits::default());
    let plan = store.plan_undo("chat", None).unwrap().unwrap();
    store.apply(&plan).unwrap();
}

#[test]
fn a_kill_while_files_are_restored_leaves_the_rest_to_the_next_process() {
    let mut dice = Dice(11);
    for round in 0..3 * scale() {
        let bench = Bench::new();
        for number in 0..300 {
            bench.write(&format!("d/{number}.txt"), format!("user {number}\n"));
        }
        let before = bench.tree();
        bench.shell(1, "rm -r d; echo new > new.txt");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::restoring_victim"])
            .env(PLACE, bench.folder.path().canonicalize().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !bench.root().join("d").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(dice.below(8_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        bench.store.go_on("chat").unwrap();
        bench.store.end("chat").unwrap();
        assert_eq!(bench.tree(), before, "round {round}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_usable_store() {
    let mut dice = Dice(7);
    for round in 0..6 * scale() {
        let bench = Bench::new();
        for number in 0..7 {
            bench.write(&format!("{number}.txt"), format!("user {number}\n"));
        }
        bench.write("keep/user.txt", "precious\n");
        let before = bench.tree();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::victim"])
            .env(PLACE, bench.folder.path().canonicalize().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Not before it has begun, then at any time.
        while !bench.folder.path().join("undo/turns").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(dice.below(60_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(plan) = bench.store.plan_undo("chat", Some(1)).unwrap() {
            let outcome = bench.store.apply(&plan).unwrap();
            assert!(outcome.left.is_empty(), "round {round}: {:?}", outcome.left);
        }
        assert_eq!(bench.read("keep/user.txt"), "precious\n", "round {round}");
        for (path, (kind, bytes, _)) in before {
            if kind == "file" {
                // A kill between a tool's two records leaves both versions in the file.
                let text = fs::read(bench.root().join(&path)).unwrap();
                let holds = text.windows(bytes.len()).any(|part| part == bytes);
                assert!(holds, "round {round}: {} is {}", path.display(), String::from_utf8_lossy(&text));
            }
        }
    }
    println!("figure: {} kills while undo recorded, 0 bytes of the user lost", 6 * scale());
}
