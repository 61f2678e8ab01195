//! Runs the attempts to get out of the sandbox: for `doctor sandbox` on the user's machine, and for tests.
//! An attempt counts as blocked if its script failed and nothing outside of the workspace changed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sandbox::Sandbox;
use sandbox::suite::{ATTEMPTS, Attempt, Outcome, World};
use tokio_util::sync::CancellationToken;

use crate::run::End;
use crate::spawn::Spawn;

/// An attempt that hangs did not get out.
const DEADLINE: Duration = Duration::from_secs(5);

/// Tries every way out, one after the other. Without a sandbox they show that they are real.
pub async fn run_escapes(
    world: &World,
    sandbox: Option<Arc<Sandbox>>,
    mut on_outcome: impl FnMut(&Outcome),
) -> io::Result<Vec<Outcome>> {
    let victim = Spawn::new("sleep").arg("3600").env("VICTIM_SECRET", "CANARY").start();
    let victim = victim.await.map_err(|error| io::Error::other(error.to_string()))?;
    let mut outcomes = Vec::new();
    for attempt in ATTEMPTS {
        world.repair()?;
        let before = world.fingerprint();
        let got_out = try_attempt(world, sandbox.clone(), attempt, victim.pid()).await?;
        let changed = world.fingerprint() != before;
        let outcome = Outcome {
            category: attempt.category,
            name: attempt.name.to_owned(),
            blocked: !got_out && !changed,
        };
        on_outcome(&outcome);
        outcomes.push(outcome);
    }
    victim.stop().await;
    Ok(outcomes)
}

async fn try_attempt(
    world: &World,
    sandbox: Option<Arc<Sandbox>>,
    attempt: &Attempt,
    victim: u32,
) -> io::Result<bool> {
    let mut spawn = Spawn::shell(attempt.script)
        .directory(world.workspace())
        .envs(world.variables(victim))
        .merge_stderr()
        .deadline(DEADLINE);
    if let Some(sandbox) = sandbox {
        spawn = spawn.confine(sandbox, Vec::new());
    }
    let finished = spawn.run(&CancellationToken::new()).await;
    let finished = finished.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(finished.end == End::Exited(0))
}
