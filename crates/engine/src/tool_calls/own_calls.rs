//! Calls that the engine itself thinks of: whether one would run, and the file of an edit that failed because its model had
//! not read it. Must not decide: nothing is read here that a call of `read_file` would have to ask for.

use std::sync::Arc;

use domain::ItemId;
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Invocation, Tool};
use domain::tool_call::Origin;
use serde_json::{Value, json};

use super::approval::Decision;
use super::case::{decide, scope};
use super::context::EngineToolContext;
use super::running::{review_call, run_guarded};
use super::taint;
use crate::tool_search::ToolList;
use crate::turn::Turn;

/// What stands before the content of a file that the model had not read.
const UNREAD: &str = "You had not read the file. It holds this; make the call again with text from it:";
/// A longer file is read in parts, by the model itself.
const LONGEST_SHOWN: usize = 12_000;

/// Whether a call of a built-in tool would run here, or be asked about.
pub(crate) async fn may_run(turn: &Turn, tools: &ToolList, name: &str, input: &Value) -> bool {
    let Some(tool) = tools.find("eca", name) else { return false };
    let Ok(review) = review_call(turn, tool.as_ref(), input).await else { return false };
    let taint = turn.session.taint();
    let decided = decide(turn, ItemId(0), tool.as_ref(), input, &review, None, &taint);
    decided.decision != Decision::Deny
}

/// Why a call failed; small models also get the file that they wanted to edit without having read it, once.
pub(super) async fn explain_problem(
    turn: &Turn,
    item: &Item,
    tool: &dyn Tool,
    input: &Value,
    tools: &ToolList,
    problem: String,
) -> String {
    match unread_file(turn, item, tool, input, tools).await {
        Some(content) => format!("{problem}\n{UNREAD}\n{content}"),
        None => problem,
    }
}

async fn unread_file(
    turn: &Turn,
    item: &Item,
    tool: &dyn Tool,
    input: &Value,
    tools: &ToolList,
) -> Option<String> {
    let settings = &turn.session.workspace.settings;
    let profile = turn.session.profile.of(&turn.model.info().id, &settings.model_families);
    let is_edit = tool.spec().origin == Origin::Native && tool.spec().name == "edit_file";
    // Hooks decide about calls of the model, and this one is not the model's.
    let is_plain = settings.hooks.is_empty() && !turn.session.decisions.is_recorded();
    if !(is_edit && is_plain && profile.shows_unread_files()) {
        return None;
    }
    let path = path_of(input)?;
    if turn.session.state().items().iter().any(|item| has_shown(item, path)) {
        return None;
    }
    let (reader, input) = (tools.find("eca", "read_file")?.clone(), json!({ "path": path }));
    let review = review_call(turn, reader.as_ref(), &input).await.ok()?;
    let known = turn.session.taint();
    let decided = decide(turn, ItemId(0), reader.as_ref(), &input, &review, None, &known);
    if decided.decision != Decision::Allow || !review.secrets.is_empty() || !review.outside.is_empty() {
        return None;
    }
    turn.session.add_taint(&taint::of_review(reader.spec(), &review, turn.session.workspace.is_trusted));
    let cancel = turn.cancel.child_token();
    let context = Arc::new(EngineToolContext::of_call(turn, item.id, &cancel));
    let invocation = Invocation {
        item: item.id,
        input,
        scope: scope(turn),
        outside_allowed: false,
        contained: false,
        keeps_run_later: false,
        run_later: Vec::new(),
        cancel,
        context,
    };
    let result = run_guarded(turn, reader, invocation).await?;
    turn.session.add_taint(&taint::of_result(Some(&result)));
    let text = |part: &Part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image { .. } => None,
    };
    let texts: Option<Vec<String>> = result.parts.iter().map(text).collect();
    texts.map(|texts| texts.concat()).filter(|text| !result.error && text.len() <= LONGEST_SHOWN)
}

fn path_of(input: &Value) -> Option<&str> {
    let path = input.get("path").or_else(|| input.get("file_path"))?.as_str()?;
    Some(path.strip_prefix("./").unwrap_or(path))
}

/// Whether the chat has read the file, or was shown it with a failed edit.
fn has_shown(item: &Item, path: &str) -> bool {
    let ItemKind::ToolCall(call) = &item.kind else { return false };
    let is_it = call.input.as_ref().and_then(path_of) == Some(path);
    let is_shown = |part: &Part| matches!(part, Part::Text { text } if text.contains(UNREAD));
    is_it && ((call.name == "read_file" && !call.error) || call.result.iter().any(is_shown))
}
