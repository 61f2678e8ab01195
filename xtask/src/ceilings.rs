//! How large the program may become: the ceilings of `xtask/ceilings.txt`, one `name number` a line.
//!
//! The number of crates is checked here, with the other rules. The size of the release binary and the cost of a first
//! build need a build, so `scripts/build-cost` checks those. Invariant: docs/benchmarks.md names the same ceilings.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Ceilings that are broken, and ceilings that docs/benchmarks.md does not name, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("xtask/ceilings.txt")).unwrap_or_default();
    let ceilings: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, number)| Some((name, number.parse().ok()?)))
        .collect();
    let page = std::fs::read_to_string(root.join("docs/benchmarks.md")).unwrap_or_default();
    let mut problems = Vec::new();
    for (name, label) in [
        ("crates", "crates in the program"),
        ("release-megabytes", "release binary"),
        ("quick-cpu-seconds", "first `make run`"),
    ] {
        let Some((_, ceiling)) = ceilings.iter().find(|(known, _)| *known == name) else {
            problems.push(format!("xtask/ceilings.txt has no line for {name}"));
            continue;
        };
        let is_named = |line: &str| line.contains(label) && line.contains(&format!("≤ {ceiling}"));
        if !page.lines().any(is_named) {
            problems
                .push(format!("docs/benchmarks.md has no row \"{label}\" with the ceiling \"≤ {ceiling}\""));
        }
        if name == "crates" {
            problems.extend(too_many_crates(root, *ceiling));
        }
    }
    problems
}

fn too_many_crates(root: &Path, ceiling: u64) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a chore of the repository, not of the program")]
    let output = Command::new("cargo")
        .args(["tree", "--offline", "-p", "dragoman", "-e", "normal,build", "--prefix", "none"])
        .current_dir(root)
        .output();
    let Ok(output) = output else { return Some("cargo tree does not answer".to_owned()) };
    let lines = String::from_utf8_lossy(&output.stdout);
    let crates: BTreeSet<&str> = lines.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    match crates.len() as u64 {
        0 => Some("cargo tree lists no crate".to_owned()),
        count if count > ceiling => Some(format!("the program has {count} crates; at most {ceiling}")),
        _ => None,
    }
}
