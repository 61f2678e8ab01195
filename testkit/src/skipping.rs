//! Tests that cannot run on this machine report it here, so that `make test` can list them.
//!
//! The list is the file that `DRAGOMAN_SKIPPED_TESTS` names: one line for each skip, with the test and the reason.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]
#![allow(clippy::disallowed_methods, reason = "tests are configured by the environment")]

use std::fmt::Display;
use std::io::Write;

/// Reports that the current test, or a part of it, is skipped. The caller then returns.
pub fn skip(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unnamed test");
    eprintln!("skipped: {test}: {reason}");
    let Some(path) = std::env::var_os("DRAGOMAN_SKIPPED_TESTS") else { return };
    let line = format!("{test}: {reason}\n");
    // One write of a short line: lines of tests that run at the same time do not mix.
    let written = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut list| list.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot write {}: {written:?}", path.display());
}

/// Whether randomized and slow tests run at their full size (`make test-full`); where they do not, the skip is reported.
pub fn is_full_run() -> bool {
    let is_full = std::env::var("DRAGOMAN_TEST_SCALE").is_ok_and(|scale| scale == "10");
    if !is_full {
        skip("only `make test-full` runs it");
    }
    is_full
}
