//! Wishes for an interface on the command line: new ones must work, earlier ones are applied again.

use std::collections::BTreeMap;

use apiui::customize::asking::IMPROVEMENT;
use apiui::customize::{Outcome, PlanEdit, RefusalKind, apply, remember, wish};
use apiui::plan::Plan;
use domain::Failure;

use crate::assistant::Assistant;
use crate::generated_project::Project;
use crate::plan_editor::{self, not_applied};

/// The wish of `--improve`, as a project keeps it.
pub(crate) const IMPROVE: &str = "improve";

/// Applies the wishes of a project to its new plan. What cannot be applied any more is named.
pub(crate) fn apply_again(plan: &mut Plan, project: &Project) -> Vec<String> {
    let mut lost = Vec::new();
    for text in project.wishes() {
        if let Some(edits) = project.edits().get(text) {
            lost.extend(apply_kept(plan, text, edits));
            continue;
        }
        match wish(plan, text, &[]) {
            Outcome::Edited { plan: changed, .. } => *plan = *changed,
            Outcome::Clarify { question, .. } => {
                lost.push(format!("The change “{text}” was not made: {question}"))
            }
            Outcome::Refused(refusal) => {
                lost.push(format!("The change “{text}” was not made: {}", refusal.message))
            }
        }
    }
    lost
}

/// Applies what a model made of a wish earlier; each part that does not fit any more is named.
fn apply_kept(plan: &mut Plan, text: &str, edits: &[PlanEdit]) -> Vec<String> {
    let mut lost = Vec::new();
    let before = plan.clone();
    for edit in edits {
        if let Err(problem) = apply(plan, edit) {
            lost.push(format!("A part of the change “{text}” was not made: {problem}"));
        }
    }
    if !edits.contains(&PlanEdit::Undo) {
        remember(&before, plan, text);
    }
    lost
}

/// Applies new wishes and answers with what a model made of some; the first that cannot be applied is an error.
pub(crate) fn apply_new(
    assistant: &dyn Assistant,
    plan: &mut Plan,
    wishes: &[String],
    improves: bool,
) -> Result<BTreeMap<String, Vec<PlanEdit>>, Failure> {
    let mut edits = BTreeMap::new();
    if improves {
        let made = plan_editor::edits(assistant, plan, IMPROVEMENT)?.ok_or_else(|| {
            Failure::config("--improve needs a model, and none is configured.")
                .hint("Give Dragoman a key, or leave --improve out.")
        })?;
        *plan = made.plan;
        edits.insert(IMPROVE.to_owned(), made.edits);
    }
    for text in wishes {
        let (message, choices, is_beyond) = match wish(plan, text, &[]) {
            Outcome::Edited { plan: changed, .. } => {
                *plan = *changed;
                continue;
            }
            Outcome::Clarify { question, options } => (question, options, false),
            Outcome::Refused(refusal) => {
                (refusal.message, refusal.alternatives, refusal.kind == RefusalKind::Beyond)
            }
        };
        if is_beyond && let Some(made) = plan_editor::edits(assistant, plan, text)? {
            *plan = made.plan;
            edits.insert(text.clone(), made.edits);
            continue;
        }
        return Err(not_applied(text, &message, &choices));
    }
    Ok(edits)
}
