//! What of our environment others can see: children through what they inherit, any program of the user through /proc.
//!
//! Invariants: a variable that holds a secret, by its name or by its value, reaches no child unless the caller sets it
//! for that child; after [`hide_own_environment`] the kernel's copy of our environment holds no values.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Arc, PoisonError, RwLock};

/// Whether a variable, by name and value, holds a secret.
pub type SecretTest = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// One test for each set of settings that was read; old ones go first.
static TESTS: RwLock<VecDeque<SecretTest>> = RwLock::new(VecDeque::new());
const MAX_TESTS: usize = 64;

/// Withholds variables that pass the test from every child that starts from now on.
pub fn withhold_environment(test: SecretTest) {
    let mut tests = TESTS.write().unwrap_or_else(PoisonError::into_inner);
    if tests.len() >= MAX_TESTS {
        tests.pop_front();
    }
    tests.push_back(test);
}

/// Takes secrets away from what a child inherits. Call it before variables are set for that child.
pub(crate) fn remove_secrets(command: &mut Command) {
    let tests = TESTS.read().unwrap_or_else(PoisonError::into_inner).clone();
    if tests.is_empty() {
        return;
    }
    for (name, value) in std::env::vars_os() {
        let (text, value) = (name.to_string_lossy(), value.to_string_lossy());
        if tests.iter().any(|test| test(&text, &value)) {
            command.env_remove(&name);
        }
    }
}

/// Overwrites the block that `/proc/PID/environ` shows, and keeps other programs of the same user from reading our
/// memory unless `debuggable`. Variables can still be read inside this process.
///
/// # Safety
/// No other thread may run yet: the environment is set anew.
#[cfg(target_os = "linux")]
pub unsafe fn hide_own_environment(debuggable: bool) {
    if !debuggable {
        // A kernel that refuses leaves the overwritten block as the protection.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
    let Some((start, end)) = environment_block() else { return };
    #[expect(clippy::disallowed_methods, reason = "no other thread runs yet")]
    for (name, value) in std::env::vars_os() {
        // SAFETY: no other thread runs, as the caller promises. The C library keeps a copy of its own from now on.
        unsafe { std::env::set_var(name, value) };
    }
    // SAFETY: the kernel names this range of our own stack as the initial environment; it is mapped and writable for
    // the life of the process. Every variable was copied to the heap above, so nothing reads the range after this
    // except entries without `=`, which stay strings that end.
    let block = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    for entry in block.split_mut(|byte| *byte == 0) {
        // Another Dragoman finds its descendants by this mark.
        if entry.starts_with(crate::tree::MARKER.as_bytes()) {
            continue;
        }
        if let Some(at) = entry.iter().position(|byte| *byte == b'=') {
            // Written as volatile, because nothing in this program reads it again.
            for byte in &mut entry[at + 1..] {
                // SAFETY: a valid, exclusive reference.
                unsafe { std::ptr::write_volatile(byte, 0) };
            }
        }
    }
}

/// Where the kernel keeps the initial environment, as `/proc/self/stat` says.
#[cfg(target_os = "linux")]
fn environment_block() -> Option<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    // Fields 50 and 51; the first one here is field 3.
    let (start, end) = (fields.get(47)?.parse().ok()?, fields.get(48)?.parse().ok()?);
    (start != 0 && start < end).then_some((start, end))
}

/// Other systems do not show the environment of a process to other users' programs.
///
/// # Safety
/// None is needed here; see the variant for Linux.
#[cfg(not(target_os = "linux"))]
pub unsafe fn hide_own_environment(_debuggable: bool) {}
