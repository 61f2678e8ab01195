//! Hooks of Claude Code as our hooks with `"format": "claude"`: the engine gives such a program what Claude Code would,
//! and reads its answer as Claude Code would.

use serde_json::{Map, Value, json};

use super::entries::quoted;
use super::permissions::TOOLS;

/// Events with an equivalent.
const EVENTS: [(&str, &str); 10] = [
    ("PreToolUse", "preToolCall"),
    ("PostToolUse", "postToolCall"),
    ("UserPromptSubmit", "preRequest"),
    ("Stop", "postRequest"),
    ("SubagentStart", "subagentStart"),
    ("SubagentStop", "subagentPostRequest"),
    ("SessionStart", "chatStart"),
    ("SessionEnd", "chatEnd"),
    ("PreCompact", "preCompact"),
    ("PostCompact", "postCompact"),
];
/// A chat begins in these ways here.
const STARTS: [&str; 2] = ["startup", "resume"];

/// The hooks by name, and what of them has no effect. Each command line begins with `before`.
pub(crate) fn translate(
    events: &Map<String, Value>,
    prefix: &str,
    before: &str,
) -> (Map<String, Value>, Vec<String>) {
    let (mut entries, mut unused) = (Map::new(), Vec::new());
    for (event, groups) in events {
        let Some((_, ours)) = EVENTS.iter().find(|(theirs, _)| theirs == event) else {
            unused.push(format!("hooks of `{event}` have no equivalent here"));
            continue;
        };
        for (at, group) in groups.as_array().into_iter().flatten().enumerate() {
            let pattern = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            let matcher = match matcher(ours, pattern) {
                Ok(matcher) => matcher,
                Err(why) => {
                    unused.push(format!("a hook of `{event}` for `{pattern}`: {why}"));
                    continue;
                }
            };
            let actions = group.get("hooks").and_then(Value::as_array);
            let actions: Vec<Value> =
                actions.into_iter().flatten().map(|action| translate_action(action, before)).collect();
            let mut entry = json!({"type": ours, "format": "claude", "actions": actions, "timeout": 60_000});
            if let Some(matcher) = matcher {
                entry["matcher"] = json!(matcher);
            }
            entries.insert(format!("{prefix}-{event}-{}", at + 1), entry);
        }
    }
    (entries, unused)
}

/// What an action of theirs runs. A kind that is not known here stays, and cannot be read: before a tool call it is asked then.
fn translate_action(action: &Value, before: &str) -> Value {
    let line = action.get("command").and_then(Value::as_str);
    let is_command = action.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "command");
    let Some(line) = line.filter(|_| is_command) else { return action.clone() };
    let arguments =
        action.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line = arguments.fold(line.to_owned(), |line, argument| format!("{line} {}", quoted(argument)));
    let mut translated = json!({"type": "shell", "shell": format!("{before}{line}")});
    if let Some(seconds) = action.get("timeout").and_then(Value::as_f64) {
        let millis = (seconds * 1000.0).clamp(1.0, 600_000.0);
        translated["timeout"] = json!(millis as u64);
    }
    translated
}

/// A pattern for `server__tool`; `None`: everything.
fn matcher(event: &str, pattern: &str) -> Result<Option<String>, String> {
    let is_all = matches!(pattern, "" | "*" | ".*");
    match event {
        "preToolCall" | "postToolCall" if !is_all => tools(pattern).map(Some),
        "chatStart" if !is_all => match pattern.split('|').any(|start| STARTS.contains(&start.trim())) {
            true => Ok(None),
            false => Err("a chat never begins so here".to_owned()),
        },
        "preCompact" | "postCompact" if !is_all => Ok(Some(pattern.to_owned())),
        _ => Ok(None),
    }
}

/// The pattern over their names as one over our names. One that is not understood matches every call.
fn tools(pattern: &str) -> Result<String, String> {
    let mut ours: Vec<String> = Vec::new();
    for part in pattern.trim_start_matches('^').trim_end_matches('$').split('|').map(str::trim) {
        if let Some(tool) = part.strip_prefix("mcp__") {
            ours.push(if tool.contains("__") { tool.to_owned() } else { format!("{tool}__.*") });
            continue;
        }
        let (name, is_prefix) = match part.strip_suffix(".*").or_else(|| part.strip_suffix('*')) {
            Some(prefix) => (prefix, true),
            None => (part, false),
        };
        if !name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_') {
            return Ok(".*".to_owned());
        }
        let is_meant = |theirs: &str| theirs == name || is_prefix && theirs.starts_with(name);
        let found = TOOLS.iter().filter(|(theirs, _)| is_meant(theirs)).flat_map(|(_, targets)| *targets);
        ours.extend(found.map(|target| (*target).to_owned()));
    }
    ours.sort();
    ours.dedup();
    match ours.is_empty() {
        true => Err("there is no such tool here".to_owned()),
        false => Ok(format!("^(?:{})$", ours.join("|"))),
    }
}
