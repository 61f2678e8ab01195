//! Wishes for an interface on the command line: new ones must work, earlier ones are applied again.

use apiui::customize::{Outcome, wish};
use apiui::plan::Plan;
use domain::Failure;

/// Applies the wishes of a project to its new plan. What cannot be applied any more is named.
pub(super) fn apply_again(plan: &mut Plan, wishes: &[String]) -> Vec<String> {
    let mut lost = Vec::new();
    for text in wishes {
        match wish(plan, text, &[]) {
            Outcome::Edited { plan: changed, .. } => *plan = *changed,
            Outcome::Clarify { question, .. } => {
                lost.push(format!("The wish “{text}” was not applied: {question}"))
            }
            Outcome::Refused(refusal) => {
                lost.push(format!("The wish “{text}” was not applied: {}", refusal.message))
            }
        }
    }
    lost
}

/// Applies new wishes; the first that is not understood is an error.
pub(super) fn apply_new(plan: &mut Plan, wishes: &[String]) -> Result<(), Failure> {
    for text in wishes {
        let (message, choices) = match wish(plan, text, &[]) {
            Outcome::Edited { plan: changed, .. } => {
                *plan = *changed;
                continue;
            }
            Outcome::Clarify { question, options } => (question, options),
            Outcome::Refused(refusal) => (refusal.message, refusal.alternatives),
        };
        let failure =
            Failure::user(format!("The wish “{text}” was not applied: {message} Nothing was written."));
        return Err(if choices.is_empty() {
            failure
        } else {
            failure.hint(format!("These work: {}.", choices.join("; ")))
        });
    }
    Ok(())
}
