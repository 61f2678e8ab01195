//! Lets a tool review a call and run it, for every caller alike. Must not decide whether it runs.
//!
//! Invariant: a tool that panics or hangs takes neither the turn nor the process with it.

use std::sync::Arc;
use std::time::Duration;

use domain::item::Part;
use domain::tool::{Invocation, Review, Tool, ToolEffect, ToolResult};
use domain::tool_call::Origin;
use serde_json::Value;
use tokio::task::JoinSet;

use super::case::scope;
use super::server_paths;
use crate::rules;
use crate::turn::Turn;
use crate::undo;

/// What a model learns of a call that the user stopped while the turn went on.
pub const STOPPED_BY_USER: &str =
    "The user stopped this call. Do not run it again unless the user asks for it.";
/// How long a stopped tool may take to clean up.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
const LEASE_AT_RISK: &str = "The call was stopped: the store of the chats did not answer for so long that another process \
     might have taken this chat over.";

pub(super) async fn review_call(turn: &Turn, tool: &dyn Tool, input: &Value) -> Result<Review, String> {
    tool.prepare().await;
    let scope = scope(turn);
    let mut review = tool.review(input, &scope)?.into_visible();
    if tool.spec().origin == Origin::Mcp && !scope.forbidden_paths.is_empty() {
        review.read_paths.extend(server_paths::paths_of(input, &scope.roots));
    }
    review.contained &= turn.session.workspace.undo.is_some();
    review.unrecoverable = undo::endangered(turn, tool.spec().effect, &review).await;
    match rules::missing(&turn.fetched_rules, &turn.session, tool.spec(), &review) {
        Some(problem) => Err(problem),
        None => Ok(review),
    }
}

/// A tool that panics or does not stop in time cannot take the turn with it, and it does not outlive the turn.
pub(super) async fn run_guarded(
    turn: &Turn,
    tool: Arc<dyn Tool>,
    invocation: Invocation,
) -> Option<ToolResult> {
    let mut tasks = JoinSet::new();
    let cancel = invocation.cancel.clone();
    tasks.spawn(async move { tool.run(invocation).await });
    let joined = tokio::select! {
        joined = tasks.join_next() => joined,
        // Another process may take the chat over soon: nothing may run then that it does not know of.
        () = turn.session.store.lease_at_risk(&turn.session.id) => {
            cancel.cancel();
            let _ = tokio::time::timeout(STOP_TIMEOUT, tasks.join_next()).await;
            return Some(ToolResult::error(LEASE_AT_RISK));
        }
        // Also where the whole turn is stopped.
        () = cancel.cancelled() => {
            tokio::time::timeout(STOP_TIMEOUT, tasks.join_next()).await.ok().flatten()
        }
    };
    joined.map(|joined| {
        joined.unwrap_or_else(|_| {
            ToolResult::error("The tool failed because of a mistake in Dragoman; the log has the details.")
        })
    })
}

/// The model learns that the user stopped this call, and has what the tool gave until then. Whether it was stopped: a file
/// that was written is.
pub(super) fn stopped_alone(result: &mut Option<ToolResult>, effect: ToolEffect) -> bool {
    let result = result.get_or_insert_with(|| ToolResult { error: true, ..ToolResult::default() });
    if !result.error && effect == ToolEffect::WritesFiles {
        return false;
    }
    result.parts.push(Part::text(STOPPED_BY_USER));
    true
}
