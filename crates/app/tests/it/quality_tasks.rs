//! The tasks of `make quality`: each check fails on the untouched files and passes with a known solution.
//!
//! It needs neither a model nor the program; a tenth of the tasks is tested at scale 1.

use std::path::Path;
use std::process::Command;

use crate::scaled;

#[test]
fn the_checks_of_the_tasks_tell_solved_from_unsolved() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("python3");
    command.args(["scripts/quality-tasks", "--self-test", &scaled(60).to_string()]).current_dir(&repository);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return testkit::skip("python3 is not installed");
        }
        Err(error) => panic!("python3 does not start: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("0 problems."), "{said}");
}
