//! Hooks of Claude Code: what such a program is given, and what its answer means. Pure.
//!
//! Invariant: an answer never grants more than the same answer of our own hooks; a word that is not known stays one that is
//! not known, so that the call is asked.

use std::path::Path;

use config::HookEvent;
use serde_json::{Map, Value, json};

use super::HookExit;

/// Our tools, what Claude Code calls them, and arguments by both names.
type Arguments = &'static [(&'static str, &'static str)];

const TOOLS: [(&str, &str, Arguments); 12] = [
    ("shell_command", "Bash", &[]),
    ("read_file", "Read", &[("path", "file_path"), ("line_offset", "offset")]),
    ("write_file", "Write", &[("path", "file_path")]),
    (
        "edit_file",
        "Edit",
        &[
            ("path", "file_path"),
            ("original_content", "old_string"),
            ("new_content", "new_string"),
            ("all_occurrences", "replace_all"),
        ],
    ),
    ("apply_patch", "Edit", &[]),
    ("move_file", "Edit", &[("source", "file_path")]),
    ("grep", "Grep", &[]),
    ("glob", "Glob", &[]),
    ("directory_tree", "LS", &[]),
    ("fetch_url", "WebFetch", &[]),
    ("web_search", "WebSearch", &[]),
    ("spawn_agent", "Task", &[("agent", "subagent_type"), ("task", "prompt")]),
];

fn event_name(event: HookEvent) -> &'static str {
    match event {
        HookEvent::PreToolCall => "PreToolUse",
        HookEvent::PostToolCall => "PostToolUse",
        HookEvent::PreRequest => "UserPromptSubmit",
        HookEvent::PostRequest => "Stop",
        HookEvent::SubagentStart => "SubagentStart",
        HookEvent::SubagentPostRequest => "SubagentStop",
        HookEvent::SessionStart | HookEvent::ChatStart => "SessionStart",
        HookEvent::SessionEnd | HookEvent::ChatEnd => "SessionEnd",
        HookEvent::PreCompact => "PreCompact",
        HookEvent::PostCompact => "PostCompact",
    }
}

/// The input of one of our own hooks, as Claude Code would write it.
pub(super) fn input(event: HookEvent, ours: &Map<String, Value>) -> Map<String, Value> {
    let get = |name: &str| ours.get(name).cloned().unwrap_or(Value::Null);
    let mut theirs = Map::new();
    let mut put = |name: &str, value: Value| drop(theirs.insert(name.to_owned(), value));
    put("session_id", get("chat_id"));
    put("transcript_path", json!(""));
    put("cwd", get("cwd"));
    put("permission_mode", json!("default"));
    put("hook_event_name", json!(event_name(event)));
    match event {
        HookEvent::PreToolCall | HookEvent::PostToolCall => {
            let (name, input) = call(ours);
            put("tool_name", name);
            put("tool_input", input);
            put("tool_use_id", get("tool_call_id"));
            if event == HookEvent::PostToolCall {
                put("tool_response", get("tool_response"));
            }
        }
        HookEvent::PreRequest => put("prompt", get("prompt")),
        HookEvent::PostRequest | HookEvent::SubagentPostRequest => {
            put("stop_hook_active", get("follow_up_active"));
            put("last_assistant_message", get("response"));
        }
        HookEvent::ChatStart | HookEvent::SessionStart => {
            let is_resumed = get("resumed") == Value::Bool(true);
            put("source", json!(if is_resumed { "resume" } else { "startup" }));
        }
        HookEvent::ChatEnd | HookEvent::SessionEnd => put("reason", json!("other")),
        HookEvent::PreCompact | HookEvent::PostCompact => {
            put("trigger", get("triggered"));
            put("custom_instructions", get("custom_instructions"));
        }
        HookEvent::SubagentStart => put("agent_type", get("agent")),
    }
    theirs
}

/// The name and the arguments of a call in their words.
fn call(ours: &Map<String, Value>) -> (Value, Value) {
    let text = |name: &str| ours.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut input = ours.get("tool_input").and_then(Value::as_object).cloned().unwrap_or_default();
    if text("server") != "eca" {
        return (json!(format!("mcp__{}__{}", text("server"), text("tool_name"))), Value::Object(input));
    }
    let Some((_, name, arguments)) = TOOLS.iter().find(|(tool, ..)| *tool == text("tool_name")) else {
        return (json!(text("tool_name")), Value::Object(input));
    };
    for (our, their) in *arguments {
        let Some(value) = input.remove(*our) else { continue };
        let value = match (value.as_str(), *their) {
            (Some(path), "file_path") => json!(Path::new(text("cwd")).join(path)),
            _ => value,
        };
        input.insert((*their).to_owned(), value);
    }
    (json!(name), Value::Object(input))
}

/// The answer of such a program, as one of our own hooks would have given it.
pub(super) fn exit(event: HookEvent, tool: &str, exit: HookExit) -> HookExit {
    if exit.status != Some(0) {
        return exit;
    }
    let stdout = exit.stdout.trim();
    let Ok(Value::Object(theirs)) = serde_json::from_str::<Value>(stdout) else {
        // Plain text is for the model at these events.
        let is_context = matches!(event, HookEvent::PreRequest | HookEvent::ChatStart) && !stdout.is_empty();
        let stdout = if is_context { json!({"additionalContext": stdout}).to_string() } else { exit.stdout };
        return HookExit { stdout, ..exit };
    };
    let specific = theirs.get("hookSpecificOutput").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut ours: Map<String, Value> = Map::new();
    for name in ["continue", "stopReason", "suppressOutput", "systemMessage"] {
        ours.extend(theirs.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let context = specific.get("additionalContext").or_else(|| theirs.get("additionalContext"));
    ours.extend(context.map(|value| ("additionalContext".to_owned(), value.clone())));
    let reason = theirs.get("reason").and_then(Value::as_str).unwrap_or_default();
    let is_block = theirs.get("decision").and_then(Value::as_str) == Some("block");
    match event {
        HookEvent::PreToolCall => decide(tool, &theirs, &specific, &mut ours),
        // Blocking is an exit code with us.
        HookEvent::PreRequest | HookEvent::PreCompact if is_block => {
            return HookExit { status: Some(2), stderr: reason.to_owned(), ..exit };
        }
        HookEvent::PostRequest | HookEvent::SubagentPostRequest if is_block => {
            ours.insert("followUp".to_owned(), json!(reason));
        }
        HookEvent::PostToolCall if is_block => {
            ours.insert("additionalContext".to_owned(), json!(reason));
        }
        HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::ChatStart
        | HookEvent::ChatEnd
        | HookEvent::SubagentStart
        | HookEvent::PreRequest
        | HookEvent::PostRequest
        | HookEvent::SubagentPostRequest
        | HookEvent::PostToolCall
        | HookEvent::PreCompact
        | HookEvent::PostCompact => {}
    }
    HookExit { stdout: Value::Object(ours).to_string(), ..exit }
}

/// What is said about a call before it runs.
fn decide(
    tool: &str,
    theirs: &Map<String, Value>,
    specific: &Map<String, Value>,
    ours: &mut Map<String, Value>,
) {
    let text =
        |values: &Map<String, Value>, name: &str| values.get(name).and_then(Value::as_str).map(str::to_owned);
    let older = text(theirs, "decision").map(|word| match word.as_str() {
        "approve" => "allow".to_owned(),
        "block" => "deny".to_owned(),
        _ => word,
    });
    let Some(word) = text(specific, "permissionDecision").or(older) else { return };
    let word = if word == "defer" { "ask".to_owned() } else { word };
    if word == "deny" {
        let reason = text(specific, "permissionDecisionReason").or_else(|| text(theirs, "reason"));
        ours.extend(reason.map(|reason| ("additionalContext".to_owned(), json!(reason))));
    }
    ours.insert("approval".to_owned(), json!(word));
    if let Some(Value::Object(changed)) = specific.get("updatedInput") {
        let arguments = TOOLS.iter().find(|(name, ..)| *name == tool).map(|(.., arguments)| *arguments);
        let our_name = |their: &String| {
            let known = arguments.into_iter().flatten().find(|(_, name)| name == their);
            known.map_or_else(|| their.clone(), |(our, _)| (*our).to_owned())
        };
        let changed: Map<String, Value> =
            changed.iter().map(|(their, value)| (our_name(their), value.clone())).collect();
        ours.insert("updatedInput".to_owned(), Value::Object(changed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_program_is_given_what_claude_code_would_give_it() {
        let before = ours(json!({
            "chat_id": "c", "cwd": "/w", "tool_name": "edit_file", "server": "eca", "tool_call_id": "item-1",
            "tool_input": {"path": "a.rs", "original_content": "x", "new_content": "y"},
        }));
        let given = input(HookEvent::PreToolCall, &before);
        assert_eq!((&given["hook_event_name"], &given["tool_name"]), (&json!("PreToolUse"), &json!("Edit")));
        assert_eq!(
            given["tool_input"],
            json!({"file_path": "/w/a.rs", "old_string": "x", "new_string": "y"})
        );
        let server = ours(json!({"tool_name": "list", "server": "github", "tool_input": {"a": 1}}));
        assert_eq!(input(HookEvent::PostToolCall, &server)["tool_name"], "mcp__github__list");
        assert_eq!(input(HookEvent::ChatStart, &ours(json!({"resumed": true})))["source"], "resume");
    }

    #[test]
    fn its_answer_means_what_it_means_there() {
        let answer = |event, stdout: &str| {
            let given =
                HookExit { status: Some(0), stdout: stdout.into(), stderr: String::new(), stopped: None };
            exit(event, "edit_file", given)
        };
        let json_of = |exit: HookExit| serde_json::from_str::<Value>(&exit.stdout).unwrap();
        let pre = HookEvent::PreToolCall;
        let denied = answer(
            pre,
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
        );
        assert_eq!(json_of(denied), json!({"approval": "deny", "additionalContext": "no"}));
        assert_eq!(json_of(answer(pre, r#"{"decision":"approve"}"#)), json!({"approval": "allow"}));
        let changed = answer(
            pre,
            r#"{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"file_path":"b"}}}"#,
        );
        assert_eq!(json_of(changed)["updatedInput"], json!({"path": "b"}));
        let stop = answer(HookEvent::PostRequest, r#"{"decision":"block","reason":"run the tests"}"#);
        assert_eq!(json_of(stop)["followUp"], "run the tests");
        let prompt = answer(HookEvent::PreRequest, r#"{"decision":"block","reason":"secret"}"#);
        assert_eq!((prompt.status, prompt.stderr.as_str()), (Some(2), "secret"));
        assert_eq!(json_of(answer(HookEvent::ChatStart, "The date.\n"))["additionalContext"], "The date.");
        assert_eq!(answer(pre, "text").stdout, "text");
    }
}
