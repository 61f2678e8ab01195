//! `hooks.<name>` of the kind that may forbid a tool call. Hooks do not run, so the approval function asks about each
//! call that such a hook would see.

use serde_json::Value;

use crate::approval::{Rule, read_rules};
use crate::cursor::Cursor;
use crate::origin::Origin;

/// A hook that would decide about tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingHook {
    pub name: String,
    pub matcher: HookMatcher,
    pub origin: Origin,
}

/// The calls that a hook is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookMatcher {
    All,
    /// A regular expression for `server__tool`.
    Pattern(String),
    Rules(Vec<Rule>),
}

/// The `preToolCall` hooks. A matcher that cannot be read matches every call.
pub(crate) fn blocking_hooks(hooks: &Cursor) -> Vec<BlockingHook> {
    let entries = hooks.node().filter(|node| node.entries().is_some()).map(|_| hooks.entries());
    let blocking = |hook: &Cursor| {
        let event = hook.get("type").value()?;
        (event == "preToolCall").then(|| BlockingHook {
            name: hook.name().to_owned(),
            matcher: matcher(hook),
            origin: hook.origin(),
        })
    };
    entries.unwrap_or_default().iter().filter_map(blocking).collect()
}

fn matcher(hook: &Cursor) -> HookMatcher {
    match hook.get("matcher").value() {
        Some(Value::String(pattern)) => HookMatcher::Pattern(pattern),
        Some(rules @ Value::Object(_)) => match read_rules(&rules, &hook.origin()) {
            (rules, errors) if errors.is_empty() => HookMatcher::Rules(rules),
            _ => HookMatcher::All,
        },
        _ => HookMatcher::All,
    }
}
