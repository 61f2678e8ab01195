//! Changing an interface in plain language, as far as that needs no language model.
//!
//! Owns the way from a wish to edits of the plan. A wish becomes `PlanEdit`s, the only things that change a plan; a
//! language model that returns edits goes the same way. Knows no code: the caller prints the plan again.
//! Invariant: the plan that comes out is as valid as the one that went in.

mod arranging;
pub mod asking;
mod button_requests;
mod buttons;
mod cells;
mod choosing;
mod conditions;
mod conversation;
mod describing;
mod edit;
mod fields;
mod formats;
mod grammar;
mod meaning;
mod naming;
mod outcome;
mod past;
mod phrases;
mod plan_edit;
mod requests;
mod rows;
mod understand;
mod values;
mod views;
mod visibility;

pub use edit::{PlanEdit, apply};
pub use naming::NotPossible;
pub use outcome::{EXAMPLES, Outcome, Refusal, RefusalKind, Turn};
pub use past::remember;

use crate::plan::Plan;

/// Understands a wish and changes a copy of the plan.
pub fn wish(plan: &Plan, prompt: &str, history: &[Turn]) -> Outcome {
    conversation::wish(plan, prompt, history)
}
