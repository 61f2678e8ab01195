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
