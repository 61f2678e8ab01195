//! The attempts of `dragoman doctor sandbox`: none gets out, and without a sandbox they do.

use std::path::Path;
use std::sync::Arc;

use process::Lane;
use process::sandbox::Sandbox;
use process::sandbox::suite::{ATTEMPTS, World};

use crate::kit;

/// Worlds for attempts at the same time.
fn lanes(confined: bool) -> Vec<Lane> {
    let first = World::make(Path::new(env!("CARGO_TARGET_TMPDIR")), &kit::helper()).unwrap();
    let mut worlds = vec![first];
    for _ in 1..6 {
        worlds.push(worlds[0].make_sibling().unwrap());
    }
    let lane = |world: World| {
        let path = std::env::var("PATH").unwrap_or_default();
        let sandbox = confined.then(|| Arc::new(Sandbox::new(world.facts(kit::helper(), path))));
        Lane { world: Arc::new(world), sandbox, allowance: None }
    };
    worlds.into_iter().map(lane).collect()
}

/// The documents name one number, and it is the length of the list.
#[test]
fn documents_name_the_number_of_attempts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for document in ["docs/sandbox.md", "SECURITY.md", "docs/figures.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let mut numbers = text
            .split(" built-in attempts")
            .map(|before| before.rsplit([' ', '\n']).next().unwrap_or_default());
        let first = numbers.next().unwrap_or_default();
        assert_eq!(first, ATTEMPTS.len().to_string(), "{document}");
    }
}

#[test]
fn there_are_at_least_225_different_attempts() {
    let mut scripts: Vec<&str> = ATTEMPTS.iter().map(|attempt| attempt.script).collect();
    scripts.sort_unstable();
    scripts.dedup();
    assert!(scripts.len() >= 225, "{}", scripts.len());
}

#[tokio::test]
async fn no_attempt_gets_out() {
    if !kit::World::new().is_whole().await {
        return;
    }
    let outcomes = process::run_escapes(lanes(true), |_| ()).await.unwrap();
    let escaped: Vec<_> = outcomes.iter().filter(|outcome| !outcome.blocked).collect();
    assert!(escaped.is_empty(), "{} of {} got out: {escaped:#?}", escaped.len(), outcomes.len());
}

/// A script that never succeeds would prove nothing. Some need what this machine does not have, such as a display.
#[tokio::test]
async fn without_a_sandbox_the_attempts_get_out() {
    let outcomes = process::run_escapes(lanes(false), |_| ()).await.unwrap();
    let blocked: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.blocked)
        .map(|outcome| format!("{}: {}", outcome.category, outcome.name))
        .collect();
    eprintln!("blocked without a sandbox: {blocked:#?}");
    assert!(outcomes.len() - blocked.len() >= 140, "{blocked:#?}");
}
