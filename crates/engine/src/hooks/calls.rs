//! Hooks around tool calls.

use config::{Hook, HookEvent};
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Review, Tool};
use domain::tool_call::{ToolCall, ToolState};
use serde_json::{Map, Value, json};

use super::{HookScope, hooks_of};
use crate::tool_calls::approval::{ApprovalDecision, Decision, HookVerdict, is_about};
use crate::tool_calls::with_case;
use crate::turn::Turn;

/// The result of a call that a hook hid without a word.
const HIDDEN: &str = "[Tool output hidden by hook]";

/// What hooks say before a call.
#[derive(Default)]
pub(crate) struct BeforeCall {
    /// The arguments in place of those of the model.
    pub(crate) input: Option<Value>,
    pub(crate) verdict: Option<HookVerdict>,
}

pub(crate) async fn before_call(
    turn: &Turn,
    item: &Item,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
    approval: &ApprovalDecision,
) -> BeforeCall {
    let hooks = matching(turn, HookEvent::PreToolCall, tool, input, review);
    if hooks.is_empty() {
        return BeforeCall::default();
    }
    let approval = match approval.decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny if approval.unasked => "ask",
        Decision::Deny => "deny",
    };
    let mut fields = call_fields(item, tool, input);
    fields.insert("approval".into(), approval.into());
    let effects = HookScope::of(turn, item.step, Some(item.id)).run(hooks, fields).await;
    // A hook is a program, and may have changed files.
    turn.session.workspace.undo.iter().for_each(|undo| undo.store.forget_scans());
    if let Some(why) = effects.stop {
        turn.hooks.stop(why);
        let reason = "The turn was stopped before this call ran.".to_owned();
        return BeforeCall { input: None, verdict: Some(HookVerdict::Deny { reason }) };
    }
    let changed = (!effects.updated_input.is_empty()).then(|| {
        let mut changed = input.as_object().cloned().unwrap_or_default();
        changed.extend(effects.updated_input);
        Value::Object(changed)
    });
    BeforeCall { input: changed, verdict: effects.verdict }
}

/// Lets hooks see the result of a call, replace it and add to it.
pub(crate) async fn after_call(turn: &Turn, item: &mut Item, tool: &dyn Tool, review: &Review) {
    let (step, id) = (item.step, item.id);
    let ItemKind::ToolCall(call) = &item.kind else { return };
    if call.state != ToolState::Done {
        return;
    }
    let input = call.input.clone().unwrap_or(Value::Null);
    let mut hooks = matching(turn, HookEvent::PostToolCall, tool, &input, review);
    hooks.retain(|hook| hook.run_on_error || !call.error);
    if hooks.is_empty() {
        return;
    }
    let mut fields = call_fields(item, tool, &input);
    fields.insert("tool_response".into(), response(call).into());
    fields.insert("error".into(), call.error.into());
    let effects = HookScope::of(turn, step, Some(id)).run(hooks, fields).await;
    let ItemKind::ToolCall(call) = &mut item.kind else { return };
    if let Some((_, text)) = &effects.intervened {
        let text = if text.is_empty() { HIDDEN } else { text.as_str() };
        call.result = vec![Part::text(text)];
    } else if let Some(text) = &effects.replaced_output {
        call.result = vec![Part::text(text.clone())];
    }
    call.result.extend(effects.context_texts().map(Part::text));
    if let Some(why) = effects.stop {
        turn.hooks.stop(why);
    }
}

/// The hooks of an event that are about a call.
fn matching<'t>(
    turn: &'t Turn,
    event: HookEvent,
    tool: &dyn Tool,
    input: &Value,
    review: &Review,
) -> Vec<&'t Hook> {
    let mut hooks = hooks_of(&turn.session.workspace, event);
    if !hooks.is_empty() {
        with_case(turn, tool, input, review, None, |case| {
            hooks.retain(|hook| is_about(&hook.matcher, case));
        });
    }
    hooks
}

fn call_fields(item: &Item, tool: &dyn Tool, input: &Value) -> Map<String, Value> {
    let fields = json!({
        "tool_name": tool.spec().name,
        "server": tool.spec().server,
        "tool_input": input,
        "tool_call_id": item.id.to_string(),
    });
    if let Value::Object(fields) = fields { fields } else { Map::new() }
}

fn response(call: &ToolCall) -> String {
    let texts: Vec<&str> = call
        .result
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "(an image)",
        })
        .collect();
    texts.join("\n")
}
