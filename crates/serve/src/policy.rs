//! What the administrator of a server allows its clients, and budgets.

use domain::{Failure, FailureKind};

/// What the administrator allows beyond the usual. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Names of MCP servers that a client may bring with a chat.
    pub servers: Vec<String>,
    /// Names of variables that such a server may be given.
    pub environment: Vec<String>,
    /// Names of settings that a client may send.
    pub settings: Vec<String>,
    /// US dollars of all accounts together.
    pub team_budget: Option<f64>,
}

/// A budget that is used up.
pub(crate) fn over_budget(who: &str, spent: f64, budget: f64) -> Failure {
    Failure::new(FailureKind::Quota, format!("{who} has used ${spent:.2} of ${budget:.2}."))
        .hint("Ask the administrator of the server for a higher budget.")
}

/// The smaller of two budgets.
pub(crate) fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
