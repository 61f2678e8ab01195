//! What became of a wish, and the turns of the conversation about it.

use super::edit::PlanEdit;
use crate::plan::Plan;
use serde::{Deserialize, Serialize};

/// One message of the conversation so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// `user` or `assistant`.
    pub role: String,
    pub content: String,
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Edited {
        plan: Box<Plan>,
        edits: Vec<PlanEdit>,
        description: String,
        assumptions: Vec<String>,
    },
    /// The wish fits more than one thing; the answer comes back as a wish, the question in the history.
    Clarify {
        question: String,
        options: Vec<String>,
    },
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// A sentence that says what is the matter and what to do.
    pub message: String,
    /// Wishes or names that would have worked.
    pub alternatives: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The wish is understood, but names something that the interface does not have.
    NotFound,
    /// The wish is not one of those that are understood without a language model.
    Beyond,
}

/// What can be wished for without a language model, as sentences that work.
pub const EXAMPLES: [&str; 12] = [
    "Add a search bar to filter by name",
    "Add a filter for status",
    "Sort by name, descending",
    "Show 50 rows per page",
    "Hide the id column",
    "Rename the id column to Number",
    "Move the name column first",
    "Show as cards",
    "Use the dark theme",
    "Change the title to “My interface”",
    "Make it read-only",
    "Group by status",
];
