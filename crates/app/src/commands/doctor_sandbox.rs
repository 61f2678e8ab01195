//! `dragoman doctor sandbox`: tries to get out of the sandbox on this machine, and prints blocked / attempted.
//!
//! Invariant: secrets of the user are looked for only from inside of the sandbox, and only whether they can be read.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use config::Environment;
use domain::{CancellationToken, Failure};
use process::sandbox::suite::{ATTEMPTS, Outcome, World};
use process::sandbox::{Allowance, Sandbox, Support, launch};
use process::{Lane, Spawn};
use serde_json::json;

use crate::output::note_part;
use crate::{lifetime, sandboxing, working_folder};

pub(crate) fn run(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let mut all_blocked = false;
    let ran = lifetime::run(async {
        let Some(report) = lifetime::until_signal(examine(&environment)).await else { return Ok(()) };
        let report =
            report.map_err(|error| Failure::user(format!("The attempts could not be run: {error}.")))?;
        all_blocked = report.outcomes.iter().all(|outcome| outcome.blocked) && !report.outcomes.is_empty();
        let text = if json { format!("{:#}", report.json()) } else { report.text() };
        crate::output::print_line(&text)
    });
    if all_blocked { ran } else { ExitCode::FAILURE }
}

/// How long the search for readable secrets in one folder may take.
const SECRETS_DEADLINE: Duration = Duration::from_secs(5);

/// The category of what only this machine has.
const OWN_SECRETS: &str = "your own secrets";

/// Attempts at the same time.
const LANES: usize = 8;

struct EscapeReport {
    support: Support,
    outcomes: Vec<Outcome>,
}

async fn examine(environment: &Environment) -> io::Result<EscapeReport> {
    // The user's own folder decides which sandbox is tried.
    let own = Sandbox::new(sandboxing::facts(environment, &working_folder::current_folder()));
    let support = process::sandbox_support(&own).await;
    if support.mode().is_none() {
        return Ok(EscapeReport { support, outcomes: Vec::new() });
    }
    let (mut tried, shown) = (0, io::stderr().is_terminal());
    let progress = |_: &Outcome| {
        tried += 1;
        if shown {
            note_part(&format!("\r{tried} of {} attempts", ATTEMPTS.len()));
        }
    };
    let mut outcomes = process::run_escapes(lanes(environment)?, progress).await?;
    if shown {
        note_part("\n");
    }
    outcomes.extend(own_secrets(environment, &support).await?);
    Ok(EscapeReport { support, outcomes })
}

/// Worlds with their sandboxes. Most of an attempt is waiting, so there are more of them than processors.
fn lanes(environment: &Environment) -> io::Result<Vec<Lane>> {
    let path = environment.var("PATH").unwrap_or_default().to_owned();
    let lane = |world: World| {
        let sandbox = Sandbox::new(world.facts(launch::own_program(), path.clone()));
        Lane { world: Arc::new(world), sandbox: Some(Arc::new(sandbox)), allowance: None }
    };
    let mut lanes = vec![lane(World::make(&environment.cache_dir(), &std::env::current_exe()?)?)];
    for _ in 1..LANES {
        lanes.push(lane(lanes[0].world.make_sibling()?));
    }
    Ok(lanes)
}

/// The user's own secrets, from inside of this folder's own sandbox.
async fn own_secrets(environment: &Environment, support: &Support) -> io::Result<Vec<Outcome>> {
    let roots = working_folder::current_folder();
    let sandbox = Arc::new(Sandbox::new(sandboxing::facts(environment, &roots)));
    let (Some(mode), Some(folder)) = (support.mode(), roots.first()) else { return Ok(Vec::new()) };
    let mut outcomes = Vec::new();
    for path in sandbox.policy(mode, &Allowance::default(), folder)?.hidden {
        let read = "test -d \"$1\" && find \"$1\" -type f -exec head -c 1 {} + 2>/dev/null | grep -q . || grep -qs . \"$1\"";
        let spawn = Spawn::shell(read)
            .arg("sh")
            .arg(&path)
            .directory(Path::new("/"))
            .deadline(SECRETS_DEADLINE)
            .confine(sandbox.clone(), Allowance::default());
        let finished = spawn.run(&CancellationToken::new()).await;
        let finished = finished.map_err(|error| io::Error::other(error.to_string()))?;
        let name = path.display().to_string();
        outcomes.push(Outcome { category: OWN_SECRETS, name, blocked: !finished.success() });
    }
    Ok(outcomes)
}

impl EscapeReport {
    fn counts(&self) -> (usize, usize) {
        (self.outcomes.iter().filter(|outcome| outcome.blocked).count(), self.outcomes.len())
    }

    fn text(&self) -> String {
        let mut lines = vec![self.support.sentence(), String::new()];
        let mut categories: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for outcome in &self.outcomes {
            let (blocked, attempted) = categories.entry(outcome.category).or_default();
            *blocked += usize::from(outcome.blocked);
            *attempted += 1;
        }
        for (category, (blocked, attempted)) in categories {
            lines.push(format!("{blocked:>4} / {attempted:<4} {category}"));
        }
        let (blocked, attempted) = self.counts();
        lines.push(format!("{blocked:>4} / {attempted:<4} blocked / attempted"));
        for outcome in self.outcomes.iter().filter(|outcome| !outcome.blocked) {
            lines.push(format!("GOT OUT: {}: {}", outcome.category, outcome.name));
        }
        lines.join("\n")
    }

    fn json(&self) -> serde_json::Value {
        let (blocked, attempted) = self.counts();
        // Without the user's own secrets, whose number differs from machine to machine.
        let built_in = self.outcomes.iter().filter(|outcome| outcome.category != OWN_SECRETS);
        let outcome = |outcome: &Outcome| json!({"category": outcome.category, "name": outcome.name, "blocked": outcome.blocked});
        json!({
            "sandbox": self.support.sentence(),
            "blocked": blocked,
            "attempted": attempted,
            "builtIn": built_in.clone().count(),
            "builtInBlocked": built_in.filter(|outcome| outcome.blocked).count(),
            "outcomes": self.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        })
    }
}
