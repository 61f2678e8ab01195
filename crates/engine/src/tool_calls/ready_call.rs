//! A call between its review and its end. Plain data.

use std::sync::Arc;

use domain::item::{Item, ItemKind};
use domain::taint::Taint;
use domain::tool::{Review, Tool};
use domain::tool_call::{ToolInput, next};
use session::asks::PendingAsk;

use super::verdict::HookVerdict;
use crate::subagents::relay::RelayedCall;

/// What is before the words of a user who rejected a call.
pub(crate) const REJECTED_WITH_REASON: &str = "The user rejected this call and said: ";

/// A call that policy allows, or that a person is asked about.
pub(super) struct ReadyCall {
    pub(super) item: Item,
    pub(super) tool: Arc<dyn Tool>,
    pub(super) review: Review,
    /// What hooks said about it.
    pub(super) hook: Option<HookVerdict>,
    /// What the chat will have read when it runs, as far as that was known.
    pub(super) taint: Taint,
    pub(super) ask: Option<PendingAsk>,
    /// Set: the question is in the chat of a subagent's parent.
    pub(super) relayed: Option<RelayedCall>,
    /// An approval covers this call alone.
    pub(super) once: bool,
}

/// Moves a call to its next state.
pub(super) fn advance(item: &mut Item, input: ToolInput) {
    if let ItemKind::ToolCall(call) = &mut item.kind {
        match next(&call.state, input) {
            Ok(state) => call.state = state,
            Err(illegal) => tracing::error!(%illegal, "a tool call took a step it cannot take"),
        }
    }
}
