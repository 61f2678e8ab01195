//! Terminals of version 2: a command in the foreground is shown as one that the agent owns. Pure.
//!
//! Invariant: the chunks of a terminal, joined, are the output that is kept of its call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::ItemId;
use domain::item::Part;
use domain::job::GOES_ON;
use domain::tool_call::{ToolCall, ToolState};
use serde_json::{Value, json};

use crate::tool_calls::is_own;

/// Whether a call has output that belongs into a terminal: its command runs or has run.
pub(crate) fn has_terminal(call: &ToolCall) -> bool {
    is_own(call)
        && call.name == "shell_command"
        && (call.state == ToolState::Running || !call.live_output.is_empty())
}

/// The terminal appears, before the call that shows it.
pub(crate) fn begin(id: ItemId, call: &ToolCall) -> Value {
    let command = call.input.as_ref().and_then(|input| input["command"].as_str()).unwrap_or_default();
    let mut update = update(id);
    update["command"] = json!(domain::visible_text(command));
    if !call.state.is_over() {
        update["capabilities"] = json!({"cancel": {}});
    }
    update
}

pub(crate) fn output(id: ItemId, text: &str) -> Value {
    json!({"sessionUpdate": "terminal_output_chunk", "terminalId": id.to_string(), "data": STANDARD.encode(text)})
}

/// The command has left the call.
pub(crate) fn end(id: ItemId, call: &ToolCall) -> Value {
    let mut update = update(id);
    update["capabilities"] = Value::Null;
    let is_done = call.state == ToolState::Done;
    if is_done && goes_on(call) {
        return update;
    }
    // Where it failed, the result of the call says how it ended.
    update["exitStatus"] = if is_done && !call.error { json!({"exitCode": 0}) } else { json!({}) };
    update
}

/// Whether the command runs on as a job.
fn goes_on(call: &ToolCall) -> bool {
    let last = call.result.iter().rev().find_map(|part| match part {
        Part::Text { text } => text.lines().next_back(),
        Part::Image { .. } => None,
    });
    last.is_some_and(|line| line.starts_with('[') && line.contains(GOES_ON))
}

fn update(id: ItemId) -> Value {
    json!({"sessionUpdate": "terminal_update", "terminalId": id.to_string()})
}

#[cfg(test)]
mod tests {
    use domain::tool_call::Origin;

    use super::*;

    #[test]
    fn the_end_of_a_terminal_says_what_is_known() {
        let mut call = ToolCall::new("c".into(), "eca".into(), "shell_command".into(), Origin::Native);
        call.input = Some(json!({"command": "make"}));
        assert!(!has_terminal(&call));
        call.state = ToolState::Running;
        assert!(has_terminal(&call));
        assert_eq!(begin(ItemId(4), &call)["command"], "make");
        call.state = ToolState::Done;
        assert_eq!(end(ItemId(4), &call)["exitStatus"], json!({"exitCode": 0}));
        call.error = true;
        assert_eq!(end(ItemId(4), &call)["exitStatus"], json!({}));
        call.error = false;
        call.result = vec![Part::text(format!("out\n[still running after 2 s; {GOES_ON}job-1. …]"))];
        assert_eq!(end(ItemId(4), &call).get("exitStatus"), None);
        // A call of another vendor's agent.
        call.state = ToolState::Running;
        call.server = "codex".into();
        assert!(!has_terminal(&call));
    }
}
