//! How many Dragomans that work for others are above this one: each tells its children by a variable.
//!
//! Invariant: a child knows at least the depth of its parent, also where its environment was cleared.

use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

const VARIABLE: &str = "DRAGOMAN_NESTING";

static DEPTH: LazyLock<AtomicU32> = LazyLock::new(|| {
    #[expect(clippy::disallowed_methods, reason = "the parent says it by this variable")]
    let told = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    AtomicU32::new(told.unwrap_or(0))
});

/// This program works for another one: it is one deeper than its parent said. Gives the depth, 1 for the outermost.
pub fn enter_nesting() -> u32 {
    DEPTH.fetch_add(1, Ordering::Relaxed).saturating_add(1)
}

pub(crate) fn tell_depth(command: &mut Command) {
    let depth = DEPTH.load(Ordering::Relaxed);
    if depth > 0 {
        command.env(VARIABLE, depth.to_string());
    }
}
