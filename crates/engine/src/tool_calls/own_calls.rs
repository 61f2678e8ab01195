//! Questions of the engine about calls that nobody has made yet. Must not run anything.

use domain::ItemId;
use serde_json::Value;

use super::approval::Decision;
use super::{decide, review_call};
use crate::tool_search::ToolList;
use crate::turn::Turn;

/// Whether a call of a built-in tool would run here, or be asked about.
pub(crate) async fn may_run(turn: &Turn, tools: &ToolList, name: &str, input: &Value) -> bool {
    let Some(tool) = tools.find("eca", name) else { return false };
    let Ok(review) = review_call(turn, tool.as_ref(), input).await else { return false };
    let taint = turn.session.taint();
    let decided = decide(turn, ItemId(0), tool.as_ref(), input, &review, None, &taint);
    decided.decision != Decision::Deny
}
