//! The model that edits a plan on the command line: one call without tools for a wish, never the embedded model.
//!
//! Owns the cache: what was answered is kept by the hash of all that was asked, so that the same interface and wish are not
//! asked about twice. Invariants: the answer becomes edits of the plan; code in them is checked before anything is written.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use apiui::check::check;
use apiui::customize::PlanEdit;
use apiui::customize::asking::{apply_all, instructions, outline, read_answer};
use apiui::plan::Plan;
use apiui::print::print_whole;
use domain::command::{Completion, WorkspaceSpec};
use domain::link::Commands;
use domain::{Command, Failure, FailureKind};
use sha2::{Digest, Sha256};

use crate::assistant::Assistant;

/// Calls for one wish: the first, and one for each time that a refused answer is shown.
const CALLS: usize = 3;
const DEADLINE: Duration = Duration::from_secs(120);

/// A changed plan, and the edits that led to it.
pub(crate) struct Edited {
    pub plan: Plan,
    pub edits: Vec<PlanEdit>,
}

/// What the default model, or the cache, makes of a wish. `None`: there is no model.
pub(crate) fn edits(assistant: &dyn Assistant, plan: &Plan, wish: &str) -> Result<Option<Edited>, Failure> {
    let question = format!("The interface:\n{}\n\nThe change: {wish}", outline(plan));
    let kept = cached(assistant, &question);
    let known: Option<Vec<PlanEdit>> =
        std::fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(edits) = known
        && let Ok(plan) = changed(plan, &edits)
    {
        return Ok(Some(Edited { plan, edits }));
    }
    let mut outcome = Ok(None);
    let answer = &mut outcome;
    assistant.with_engine(Box::new(move |commands| {
        Box::pin(async move { *answer = ask(&commands, plan, wish, question).await })
    }))?;
    if let Ok(Some(edited)) = &outcome {
        keep(&kept, &edited.edits);
    }
    outcome
}

/// Where the answer to a question is kept.
fn cached(assistant: &dyn Assistant, question: &str) -> PathBuf {
    let digest = Sha256::new().chain_update(instructions()).chain_update(question).finalize();
    let name = digest.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    });
    assistant.cache_folder().join("interfaces").join(name).with_extension("json")
}

/// An answer that cannot be kept is asked for again next time.
fn keep(path: &std::path::Path, edits: &[PlanEdit]) {
    let Some(folder) = path.parent() else { return };
    let kept = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, serde_json::to_vec(edits).unwrap_or_default()));
    if let Err(error) = kept {
        tracing::info!(%error, "the answer is not kept");
    }
}

/// The plan with these edits; or why they are refused.
fn changed(plan: &Plan, edits: &[PlanEdit]) -> Result<Plan, String> {
    if edits.is_empty() {
        return Err("The answer must hold edits.".to_owned());
    }
    let (plan, _) = apply_all(plan, edits)?;
    match check(&print_whole(&plan)) {
        Ok(_) => Ok(plan),
        Err(refusals) => {
            let told: Vec<String> = refusals.iter().take(20).map(ToString::to_string).collect();
            Err(format!("The code did not pass the check: {}", told.join(" ")))
        }
    }
}

async fn ask(
    commands: &Commands,
    plan: &Plan,
    wish: &str,
    question: String,
) -> Result<Option<Edited>, Failure> {
    let roots = std::env::current_dir().into_iter().collect();
    let workspace = WorkspaceSpec { roots, options: None };
    let entered = commands.call(|reply| Command::Enter { workspace, reply }).await;
    let answered = match entered {
        Ok(_) => converse(commands, plan, wish, question).await,
        Err(failure) => Err(failure),
    };
    match answered {
        Err(failure) if matches!(failure.kind, FailureKind::Auth | FailureKind::Config) => {
            tracing::info!(%failure, "no model for a change");
            Ok(None)
        }
        other => other.map(Some),
    }
}

async fn converse(commands: &Commands, plan: &Plan, wish: &str, question: String) -> Result<Edited, Failure> {
    let mut messages = vec![question];
    let mut reason = String::new();
    for _ in 0..CALLS {
        let completion = Completion {
            purpose: "customize".to_owned(),
            system: instructions(),
            messages: messages.clone(),
            output_schema: None,
            middle: None,
            model: None,
            no_local: true,
            gate: Default::default(),
            deadline: DEADLINE,
        };
        let call = commands.call(|reply| Command::Complete { completion, deltas: None, reply });
        let completed = tokio::time::timeout(DEADLINE, call)
            .await
            .unwrap_or_else(|_| Err(Failure::provider("The model gave no whole answer in time.")))?;
        let proposal = match read_answer(&completed.text) {
            Ok(proposal) => proposal,
            Err(problem) => {
                reason = problem;
                messages.extend([completed.text, refused(&reason)]);
                continue;
            }
        };
        if let Some(impossible) = proposal.impossible {
            return Err(not_applied(wish, &impossible, &[]));
        }
        if let Some(asked) = proposal.question {
            return Err(not_applied(wish, &asked, &proposal.options));
        }
        match changed(plan, &proposal.edits) {
            Ok(plan) => return Ok(Edited { plan, edits: proposal.edits }),
            Err(problem) => reason = problem,
        }
        messages.extend([completed.text, refused(&reason)]);
    }
    Err(not_applied(wish, &format!("The model’s answer was refused: {reason}"), &[]))
}

fn refused(reason: &str) -> String {
    format!("That was refused: {reason}\nAnswer again with one JSON object in one of the forms.")
}

pub(crate) fn not_applied(text: &str, message: &str, choices: &[String]) -> Failure {
    let failure = Failure::user(format!("The change “{text}” was not made: {message} Nothing was written."));
    if choices.is_empty() {
        return failure;
    }
    failure.hint(format!("These work: {}.", choices.join("; ")))
}
