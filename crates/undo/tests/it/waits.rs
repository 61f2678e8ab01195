//! The one wait of the store: another process that tidies it.

use std::fs::{self, File};
use std::time::Duration;

use undo::Limits;

use crate::{Bench, key};

#[test]
fn a_store_that_stays_locked_is_reported_and_works_afterwards() {
    let bench = Bench::with(Limits { lock_timeout: Duration::from_millis(50), ..Limits::default() });
    bench.write("a.txt", "one");
    bench.tool_writes(1, "a.txt", "two");
    let lock = File::open(bench.folder.path().join("undo/lock")).unwrap();
    lock.lock().unwrap();
    let refused = bench.store.before_write(&key(2), &bench.path("a.txt")).unwrap_err().to_string();
    assert!(refused.contains("undo/lock") && refused.contains("timed out"), "{refused}");
    assert!(bench.store.before_command(&key(2), &[bench.root()]).is_err());
    assert!(bench.store.plan_undo("chat", None).and_then(|plan| bench.store.apply(&plan.unwrap())).is_err());
    assert_eq!(bench.read("a.txt"), "two", "nothing changed while the store was locked");
    drop(lock);
    bench.undo(None);
    assert_eq!(bench.read("a.txt"), "one");
    assert!(fs::exists(bench.folder.path().join("undo/lock")).unwrap());
}
