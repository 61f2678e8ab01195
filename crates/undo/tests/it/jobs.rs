//! Commands that go on while other turns and undos happen, and whose process may be killed.

use crate::{Bench, key};

#[test]
fn what_a_job_changes_after_an_undo_of_its_beginning_is_recorded_too() {
    let bench = Bench::new();
    bench.write("a.txt", "old\n");
    let snapshot = bench.store.before_command(&key(1), &[bench.root()]).unwrap();
    bench.write("a.txt", "new\n");
    // A look at the turns while it runs, as `/undo preview` does.
    let owner = key(1).owner;
    assert_eq!(bench.store.turns(&owner).unwrap()[0].paths, [bench.path("a.txt")]);
    bench.write("b.txt", "later\n");
    // The process is killed: the state before the job is still there.
    drop(snapshot);
    let mut bench = bench;
    bench.restart();
    assert_eq!(bench.store.turns(&owner).unwrap()[0].paths, [bench.path("a.txt"), bench.path("b.txt")]);
    bench.undo(None);
    assert_eq!(bench.read("a.txt"), "old\n");
    assert!(!bench.path("b.txt").exists());
}

#[test]
fn a_command_whose_process_is_gone_is_handed_over_once() {
    let bench = Bench::new();
    let (roots, known) = ([bench.root()], [bench.path(".envrc")]);
    let snapshot = bench.store.before_command(&key(1), &roots).unwrap();
    let note = bench.store.note_due(&key(1), &known, &roots).unwrap();
    bench.write("made.txt", "x");
    assert!(bench.store.take_due(&roots).is_empty(), "its process lives");
    drop((snapshot, note));
    let mut bench = bench;
    bench.restart();
    assert!(bench.store.take_due(&[bench.path("elsewhere")]).is_empty(), "other folders");
    let mut due = bench.store.take_due(&roots);
    let due = due.pop().unwrap();
    assert_eq!((due.changed, due.known), (vec![bench.path("made.txt")], known.to_vec()));
    due.note.done();
    assert!(bench.store.take_due(&roots).is_empty());
}

/// The index grows in the file that holds the state before the job.
#[test]
fn the_state_before_a_job_stays_while_other_commands_run() {
    let mut bench = Bench::new();
    for number in 0..30 {
        bench.write(&format!("{number}.txt"), format!("user {number}\n"));
    }
    bench.command(1, || {});
    let before = bench.tree();
    let job = bench.store.before_command(&key(2), &[bench.root()]).unwrap();
    for turn in 3..9 {
        bench.shell(
            turn,
            "for number in 1 2 3; do echo more >> $number.txt; done; rm -f 4.txt; echo new > new.txt",
        );
    }
    bench.write("5.txt", "of the job\n");
    // Contents that only the state before the job names stay.
    bench.store.remove_unused().unwrap();
    drop(job);
    bench.restart();
    assert!(bench.store.turns("chat").unwrap().iter().any(|turn| turn.paths.contains(&bench.path("5.txt"))));
    let outcome = bench.undo(Some(1));
    assert!(outcome.left.is_empty(), "{:?}", outcome.left);
    assert_eq!(bench.tree(), before);
}

/// A baseline that does not read says nothing, least of all that the workspace was empty.
#[test]
fn a_damaged_state_before_a_command_deletes_nothing() {
    let mut bench = Bench::new();
    bench.write("a.txt", "user\n");
    let before = bench.tree();
    drop(bench.store.before_command(&key(1), &[bench.root()]).unwrap());
    let turns = bench.folder.path().join("undo/turns");
    let owner = turns.read_dir().unwrap().next().unwrap().unwrap().path();
    let turn = owner.read_dir().unwrap().next().unwrap().unwrap().path();
    let baseline = turn.join("baseline-0");
    let bytes = std::fs::read(&baseline).unwrap();
    // A file of its own: the index itself is not damaged.
    std::fs::remove_file(&baseline).unwrap();
    std::fs::write(&baseline, &bytes[..bytes.len() - 1]).unwrap();
    bench.restart();
    assert!(bench.store.plan_undo("chat", None).unwrap().is_none());
    assert_eq!(bench.tree(), before);
}
