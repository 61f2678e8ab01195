//! Runs the attempts to get out of the sandbox: for `doctor sandbox` on the user's machine, and for tests.
//! An attempt counts as blocked if its script failed and nothing outside of the workspace changed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sandbox::suite::{ATTEMPTS, Attempt, GIT_VARIABLES, HOME, LOOK, Outcome, RUNS_LATER, World};
use sandbox::{Allowance, GitAccess, Sandbox};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::run::End;
use crate::spawn::Spawn;

/// An attempt that hangs did not get out.
const DEADLINE: Duration = Duration::from_secs(5);

/// A world, and the sandbox of its workspace. Without a sandbox the attempts show that they are real.
#[derive(Clone)]
pub struct Lane {
    pub world: Arc<World>,
    pub sandbox: Option<Arc<Sandbox>>,
    /// What the program in the sandbox may do; `None`: what an approved command may.
    pub allowance: Option<Allowance>,
}

/// Tries every way out: one after the other in each lane, the lanes at the same time.
pub async fn run_escapes(lanes: Vec<Lane>, mut on_outcome: impl FnMut(&Outcome)) -> io::Result<Vec<Outcome>> {
    let victim = Spawn::new("sleep").arg("3600").env("VICTIM_SECRET", "CANARY").start();
    let victim = victim.await.map_err(|error| io::Error::other(error.to_string()))?;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let count = lanes.len();
    // The first world has the tool of all.
    let _first = lanes.first().cloned();
    for (number, lane) in lanes.into_iter().enumerate() {
        let (sender, victim) = (sender.clone(), victim.pid());
        tasks.spawn(async move {
            for (index, attempt) in ATTEMPTS.iter().enumerate().skip(number).step_by(count) {
                let outcome = try_in(&lane, attempt, victim).await;
                if sender.send((index, outcome)).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut outcomes = Vec::new();
    while let Some((index, outcome)) = receiver.recv().await {
        let outcome = outcome?;
        on_outcome(&outcome);
        outcomes.push((index, outcome));
    }
    victim.stop().await;
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

async fn try_in(lane: &Lane, attempt: &Attempt, victim: u32) -> io::Result<Outcome> {
    lane.world.repair()?;
    let before = lane.world.fingerprint();
    let got_out = try_attempt(lane, attempt, victim).await?;
    if attempt.category == RUNS_LATER {
        let (category, name) = (attempt.category, attempt.name.to_owned());
        return Ok(Outcome { category, name, blocked: !look(&lane.world).await? });
    }
    let changed = lane.world.fingerprint() != before;
    // A world in the temporary folder is covered by the sandbox's own one: a script that writes there writes nowhere else.
    let is_covered = lane.world.is_in_temporary_folder()
        && attempt.category == "writing outside"
        && ["$HOME", "$OUTSIDE"].iter().any(|place| attempt.script.contains(place));
    let (category, name) = (attempt.category, attempt.name.to_owned());
    Ok(Outcome { category, name, blocked: !changed && (!got_out || is_covered) })
}

async fn try_attempt(lane: &Lane, attempt: &Attempt, victim: u32) -> io::Result<bool> {
    let in_home = attempt.category == HOME;
    let folder = if in_home { lane.world.home() } else { lane.world.workspace() };
    // Paths may hold blanks: words of the scripts end at line ends alone.
    let mut spawn = Spawn::shell(format!("IFS='\n'; {}", attempt.script))
        .directory(&folder)
        .envs(lane.world.variables(victim))
        .merge_stderr()
        .deadline(DEADLINE);
    let runs_later = attempt.category == RUNS_LATER;
    if runs_later {
        spawn = spawn.envs(GIT_VARIABLES.iter().copied());
    }
    let of_home =
        lane.sandbox.as_ref().filter(|_| in_home).map(|sandbox| Arc::new(sandbox.rooted_at(folder)));
    if let Some(sandbox) = of_home.or_else(|| lane.sandbox.clone()) {
        // What an approved command gets: most of what could be left behind.
        let git = if runs_later { GitAccess::Copy } else { GitAccess::ReadOnly };
        let unreadable = lane.world.unreadable();
        let usual = || Allowance { git, ..Allowance::default() };
        let allowance = lane.allowance.clone().unwrap_or_else(usual);
        spawn = spawn.confine(sandbox, Allowance { unreadable, ..allowance });
    }
    let finished = spawn.run(&CancellationToken::new()).await;
    let finished = finished.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(finished.end == End::Exited(0))
}

/// Uses git as a person would, outside of the sandbox. True: it ran what the attempt left behind.
async fn look(world: &World) -> io::Result<bool> {
    let ran = world.mark_of_later();
    let spawn = Spawn::shell(LOOK)
        .directory(world.workspace())
        .env("HOME", world.home())
        .envs(GIT_VARIABLES.iter().copied())
        .merge_stderr()
        .deadline(DEADLINE);
    spawn.run(&CancellationToken::new()).await.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(ran.exists())
}
