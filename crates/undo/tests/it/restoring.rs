//! What a user sees of undo and redo.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use undo::{Action, Limits};

use crate::{Bench, key};

#[test]
fn files_that_only_the_turn_touched_come_back_byte_for_byte() {
    let mut bench = Bench::new();
    bench.write("a.txt", "one\r\ntwo");
    bench.write("b.bin", [0, 255, 1]);
    let before = bench.tree();
    bench.tool_writes(1, "a.txt", "three\n");
    bench.tool_writes(1, "a.txt", "four\n");
    bench.tool_writes(1, "new/deep/c.txt", "made\n");
    bench.tool(1, "b.bin", |path| fs::remove_file(path).unwrap());
    let after = bench.tree();
    bench.restart();
    let plan = bench.store.plan_undo("chat", None).unwrap().unwrap();
    let shown: Vec<(String, Action)> = plan
        .steps
        .iter()
        .map(|step| (step.path.strip_prefix(bench.root()).unwrap().display().to_string(), step.action))
        .collect();
    let expected = [
        ("a.txt", Action::Restore),
        ("b.bin", Action::Create),
        ("new", Action::Delete),
        ("new/deep", Action::Delete),
        ("new/deep/c.txt", Action::Delete),
    ];
    assert_eq!(shown, expected.map(|(path, action)| (path.to_owned(), action)));
    assert_eq!(bench.tree(), after, "a preview changes nothing");
    bench.store.apply(&plan).unwrap();
    assert_eq!(bench.tree(), before);
    bench.redo();
    assert_eq!(bench.tree(), after);
    assert!(bench.store.plan_redo("chat").unwrap().is_none());
    bench.undo(None);
    assert_eq!(bench.tree(), before);
    assert!(bench.store.plan_undo("chat", None).unwrap().is_none());
}

#[test]
fn turns_are_undone_one_by_one_or_together() {
    let bench = Bench::new();
    bench.write("a.txt", "0\n");
    for turn in 1..=4 {
        bench.tool_writes(turn, "a.txt", format!("{turn}\n"));
    }
    bench.undo(None);
    assert_eq!(bench.read("a.txt"), "3\n");
    bench.undo(Some(2));
    assert_eq!(bench.read("a.txt"), "1\n");
    bench.redo();
    assert_eq!(bench.read("a.txt"), "3\n");
    bench.redo();
    assert_eq!(bench.read("a.txt"), "4\n");
    bench.undo(Some(1));
    assert_eq!(bench.read("a.txt"), "0\n");
    // A later turn that changes files ends the way forward.
    bench.tool_writes(5, "a.txt", "5\n");
    assert!(bench.store.plan_redo("chat").unwrap().is_none());
}

/// The text before, the turn's, the user's, and what undo makes of them.
#[test]
fn the_users_changes_since_stay() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let check = |before: Option<&str>, turn: Option<&str>, user: Option<&str>, expected: &str, action| {
        let bench = Bench::new();
        if let Some(text) = before {
            bench.write("a.txt", text);
        }
        bench.tool(1, "a.txt", |path| match turn {
            Some(text) => fs::write(path, text).unwrap(),
            None => fs::remove_file(path).unwrap(),
        });
        match user {
            Some(text) => bench.write("a.txt", text),
            None => fs::remove_file(bench.path("a.txt")).unwrap(),
        }
        let plan = bench.store.plan_undo("chat", None).unwrap().unwrap();
        assert_eq!(plan.steps[0].action, action);
        bench.store.apply(&plan).unwrap();
        let text = bench.read("a.txt");
        match action {
            Action::Conflict => {
                for line in expected.lines() {
                    assert!(text.lines().any(|found| found == line), "{line:?} is not in {text}");
                }
                assert!(text.contains("<<<<<<<"), "{text}");
            }
            _ => assert_eq!(text, expected),
        }
    };
    let turn = lines.replace("2\n", "two\n");
    let user = turn.replace("8\n", "eight\n");
    check(Some(lines), Some(&turn), Some(&user), &lines.replace("8\n", "eight\n"), Action::Merge);
    let clash = turn.replace("two\n", "zwei\n");
    check(Some(lines), Some(&turn), Some(&clash), "zwei\n2\n", Action::Conflict);
    check(None, Some("made\n"), Some("made\nmine\n"), "made\nmine\n", Action::KeepChanged);
    check(Some("old\n"), None, Some("mine\n"), "old\nmine\n", Action::Conflict);
    check(Some("old\n"), Some("turn\n"), None, "old\n", Action::Create);
    check(Some("old\n"), Some("turn\n"), Some("a\0b"), "a\0b", Action::KeepChanged);
}

#[test]
fn a_conflict_can_be_taken_back_exactly() {
    let bench = Bench::new();
    bench.write("a.txt", "old\n");
    bench.tool_writes(1, "a.txt", "turn\n");
    bench.write("a.txt", "mine\n");
    bench.undo(None);
    assert_ne!(bench.read("a.txt"), "mine\n");
    bench.redo();
    assert_eq!(bench.read("a.txt"), "mine\n");
}

#[test]
fn a_mode_that_the_user_set_since_stays() {
    let bench = Bench::new();
    bench.write("run.sh", "old\n");
    bench.tool_writes(1, "run.sh", "new\n");
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.undo(None);
    assert_eq!(bench.read("run.sh"), "old\n");
    assert_eq!(fs::metadata(bench.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_folder_that_was_moved_comes_back() {
    let bench = Bench::new();
    bench.write("old/a.txt", "a\n");
    bench.write("old/deep/b.txt", "b\n");
    let before = bench.tree();
    let (old, new) = (bench.path("old"), bench.path("new"));
    bench.store.before_write(&key(1), &old).unwrap();
    bench.store.before_write(&key(1), &new).unwrap();
    fs::rename(&old, &new).unwrap();
    bench.store.after_write(&key(1), &old).unwrap();
    bench.store.after_write(&key(1), &new).unwrap();
    bench.undo(None);
    assert_eq!(bench.tree(), before);
}

/// A link that leads out of the workspace is restored as a link; nothing behind it is read, written or deleted.
#[test]
fn links_are_never_followed() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("theirs.txt"), "theirs\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path("way-out")).unwrap();
    bench.write("folder/a.txt", "a\n");
    bench.shell(1, "echo changed > way-out/theirs.txt; rm way-out; echo b > folder/a.txt");
    let turns = bench.store.turns("chat").unwrap();
    assert_eq!(turns[0].paths, [bench.path("folder/a.txt"), bench.path("way-out")]);
    // The user replaces a folder by a link: undo must not write through it.
    fs::remove_dir_all(bench.path("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path("folder")).unwrap();
    fs::write(outside.path().join("a.txt"), "theirs\n").unwrap();
    let outcome = bench.undo(None);
    assert_eq!(outcome.left.len(), 1, "{:?}", outcome.left);
    assert!(outcome.left[0].1.contains("link"));
    assert_eq!(fs::read_to_string(outside.path().join("a.txt")).unwrap(), "theirs\n");
    assert!(bench.path("way-out").is_symlink());
}

#[test]
fn a_file_that_changes_between_preview_and_undo_is_left_alone() {
    let bench = Bench::new();
    bench.write("a.txt", "old\n");
    bench.tool_writes(1, "a.txt", "turn\n");
    let plan = bench.store.plan_undo("chat", None).unwrap().unwrap();
    bench.write("a.txt", "mine\n");
    let outcome = bench.store.apply(&plan).unwrap();
    assert_eq!(outcome.left.len(), 1);
    assert_eq!(bench.read("a.txt"), "mine\n");
}

#[test]
fn a_file_over_the_limit_is_named_and_kept() {
    let bench = Bench::with(Limits { file: 1000, total: 1 << 20, ..Limits::default() });
    bench.write("large", vec![b'x'; 2000]);
    bench.write("small", "old\n");
    let coverage = bench.store.before_write(&key(1), &bench.path("large")).unwrap();
    assert_eq!(coverage.uncovered, [bench.path("large")]);
    let snapshot = bench.store.before_command(&key(1), &[bench.root()]).unwrap();
    assert_eq!(snapshot.coverage.uncovered, [bench.path("large")]);
    bench.write("large", vec![b'y'; 2000]);
    bench.write("small", "new\n");
    bench.store.after_command(snapshot).unwrap();
    let plan = bench.store.plan_undo("chat", None).unwrap().unwrap();
    assert_eq!(
        plan.steps.iter().map(|step| step.action).collect::<Vec<_>>(),
        [Action::KeepUncovered, Action::Restore]
    );
    bench.store.apply(&plan).unwrap();
    assert_eq!(fs::read(bench.path("large")).unwrap(), vec![b'y'; 2000]);
    assert_eq!(bench.read("small"), "old\n");
}

/// The link leads to a folder that has the same files.
#[test]
fn a_folder_that_became_a_link_comes_back_with_its_files() {
    for script in [
        "mkdir other; mv d other/d; ln -s other/d d",
        "cp -r d copy; rm -r d; ln -s copy d",
        "mv d other; ln -s other d; echo more >> d/a.txt",
        "mkdir -p far/d/deep; cp d/a.txt far/d; cp d/deep/b.txt far/d/deep; rm -r d; ln -s $PWD/far/d d",
    ] {
        let bench = Bench::new();
        bench.write("d/a.txt", "one\n");
        bench.write("d/deep/b.txt", "two\n");
        let before = bench.tree();
        bench.shell(1, script);
        let after = bench.tree();
        let outcome = bench.undo(None);
        assert!(outcome.left.is_empty(), "{script}: {:?}", outcome.left);
        assert_eq!(bench.tree(), before, "{script}");
        bench.redo();
        assert_eq!(bench.tree(), after, "{script}");
    }
}

/// A process that was killed after any step of a restore leaves the rest to the next one.
#[test]
fn a_restore_that_was_interrupted_is_finished() {
    let mut bench = Bench::new();
    bench.write("a.txt", "one\n");
    bench.write("d/b.txt", "two\n");
    let before = bench.tree();
    bench.shell(1, "echo changed > a.txt; rm -r d; echo new > c.txt");
    let after = bench.tree();
    let plan = bench.store.plan_undo("chat", None).unwrap().unwrap();
    bench.store.begin(&plan, "and the messages").unwrap();
    assert_eq!(bench.tree(), after, "nothing has changed yet");
    for round in 0..3 {
        bench.restart();
        assert!(bench.store.is_pending("chat"), "{round}");
        let (outcome, note) = bench.store.go_on("chat").unwrap().unwrap();
        assert!(outcome.left.is_empty(), "{:?}", outcome.left);
        assert_eq!(note, "and the messages");
        assert_eq!(bench.tree(), before, "{round}");
        // As a kill in the middle leaves it.
        fs::write(bench.path("a.txt"), "changed\n").unwrap();
        fs::remove_dir_all(bench.path("d")).unwrap();
    }
    bench.store.go_on("chat").unwrap();
    bench.store.end("chat").unwrap();
    assert!(!bench.store.is_pending("chat") && bench.store.go_on("chat").unwrap().is_none());
    assert!(bench.store.plan_undo("chat", None).unwrap().is_none(), "it is undone once");
    bench.redo();
    assert_eq!(bench.tree(), after);
    assert!(bench.store.plan_undo("chat", None).unwrap().is_some());
}
