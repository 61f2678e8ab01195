//! `hooks.<name>` and `customTools.<name>`: commands of the user's that run at events or for the model.

use std::path::PathBuf;
use std::time::Duration;

use domain::Level;
use serde_json::Value;

use crate::approval::{Rule, RuleError, read_rules};
use crate::cursor::Cursor;
use crate::lazy_text::LazyText;

#[derive(Debug, Clone, PartialEq)]
pub struct HookSettings {
    /// The event, e.g. `preToolCall`.
    pub event: String,
    pub matcher: Option<HookMatcher>,
    pub visible: bool,
    pub run_on_error: bool,
    pub description: Option<String>,
    pub actions: Vec<HookAction>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookMatcher {
    /// A regular expression for `server__tool`, or the word of a compaction's trigger.
    Pattern(String),
    Tools(Vec<Rule>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct HookAction {
    pub script: HookScript,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookScript {
    Line(String),
    File(PathBuf),
}

/// A command that the model may call with arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomTool {
    pub description: LazyText,
    /// With `{{argument}}` in the places of the arguments.
    pub command: String,
    pub schema: Value,
}

impl HookSettings {
    /// `None`, and a notice, when part of it cannot be read.
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let event = cursor.get("type").text().or_else(|| left_out(cursor, "needs a `type`"))?;
        let matcher = match cursor.get("matcher").value() {
            None => None,
            Some(Value::String(pattern)) => Some(HookMatcher::Pattern(pattern)),
            Some(rules) => match read_rules(&rules, &cursor.origin()) {
                (rules, malformed) if malformed.is_empty() => Some(HookMatcher::Tools(rules)),
                (_, malformed) => {
                    let what =
                        malformed.first().map(|RuleError { what, .. }| what.as_str()).unwrap_or_default();
                    return left_out(cursor, &format!("has a matcher that {what}"));
                }
            },
        };
        let actions = cursor.get("actions").value();
        let actions = actions.as_ref().and_then(Value::as_array).map(|actions| actions.iter());
        let actions: Option<Vec<HookAction>> =
            actions.and_then(|actions| actions.map(|action| read_action(cursor, action)).collect());
        let Some(actions) = actions else {
            return left_out(cursor, "needs `actions`, each with a `shell` line or a `file`");
        };
        Some(Self {
            event,
            matcher,
            visible: cursor.get("visible").flag().unwrap_or(true),
            run_on_error: cursor.get("runOnError").flag().unwrap_or(false),
            description: cursor.get("description").text(),
            actions,
        })
    }
}

impl CustomTool {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let (description, command) = (cursor.get("description").prompt(), cursor.get("command").text());
        let Some((description, command)) = description.zip(command) else {
            return left_out(cursor, "needs a `description` and a `command`");
        };
        let mut schema =
            cursor.get("schema").value().unwrap_or_else(|| serde_json::json!({"properties": {}}));
        if let Value::Object(schema) = &mut schema {
            schema.entry("type").or_insert_with(|| "object".into());
        }
        Some(Self { description, command, schema })
    }
}

fn read_action(cursor: &Cursor, action: &Value) -> Option<HookAction> {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let script = match (text("shell"), text("file")) {
        (Some(line), None) => HookScript::Line(line.to_owned()),
        (None, Some(file)) => HookScript::File(locate(cursor, file)),
        _ => return None,
    };
    let timeout = action.get("timeout").and_then(Value::as_u64).unwrap_or(30_000);
    Some(HookAction { script, timeout: Duration::from_millis(timeout) })
}

/// A file beside the settings, or else from where hooks run.
fn locate(cursor: &Cursor, file: &str) -> PathBuf {
    let file = cursor.scope().environment.expand_home(file);
    let beside = cursor.base().join(&file);
    if beside.exists() { beside } else { cursor.scope().directory.join(file) }
}

fn left_out<T>(cursor: &Cursor, what: &str) -> Option<T> {
    cursor.report(Level::Warning, &format!("{what}; it is left out."));
    None
}
