//! The keys of a project's file that take effect in a folder without trust. Some of the listed keys take effect only in
//! the stricter direction; every key that is not listed needs trust.

use serde_json::{Value, json};

use crate::layer::Object;
use crate::legacy_keys::canonical_behavior;
use crate::tree::{Node, dotted};

/// How a listed key takes effect without trust.
#[derive(Clone, Copy, PartialEq)]
enum UntrustedRule {
    /// As it stands.
    Harmless,
    /// Only as `false`.
    OnlyFalse,
    /// Only as `"plan"`.
    OnlyPlan,
    /// Its entries are added to those below.
    Adds,
    /// Only when it is smaller than the value below.
    Lowers,
    /// Deny and ask rules, which are collected elsewhere and always hold.
    Rules,
    /// Collected elsewhere, and holds when it is stricter.
    ByDefault,
}

/// Keys by their path; `*` is any name.
const ALLOWED_KEYS: &[(&str, UntrustedRule)] = &[
    ("$schema", UntrustedRule::Harmless),
    ("autoCompactPercentage", UntrustedRule::Harmless),
    ("index", UntrustedRule::Harmless),
    ("chat.title", UntrustedRule::Harmless),
    ("chat.theme", UntrustedRule::Harmless),
    ("chat.verifyChanges", UntrustedRule::Harmless),
    ("chat.defaultTrust", UntrustedRule::OnlyFalse),
    ("memory.enabled", UntrustedRule::OnlyFalse),
    ("defaultAgent", UntrustedRule::OnlyPlan),
    ("disabledTools", UntrustedRule::Adds),
    ("maxSteps", UntrustedRule::Lowers),
    ("goal.*", UntrustedRule::Lowers),
    ("budget.*", UntrustedRule::Lowers),
    ("toolCall.readFile.maxLines", UntrustedRule::Lowers),
    ("toolCall.outputTruncation.sizeKb", UntrustedRule::Lowers),
    ("toolCall.toolSearch.abovePercent", UntrustedRule::Lowers),
    ("toolCall.toolSearch.aboveTokens", UntrustedRule::Lowers),
    ("toolCall.outputTruncation.lines", UntrustedRule::Harmless),
    ("toolCall.shellCommand.summaryMaxLength", UntrustedRule::Harmless),
    ("toolCall.approval.deny", UntrustedRule::Rules),
    ("toolCall.approval.ask", UntrustedRule::Rules),
    ("toolCall.approval.byDefault", UntrustedRule::ByDefault),
    ("agent.*.autoCompactPercentage", UntrustedRule::Harmless),
    ("agent.*.disabledTools", UntrustedRule::Adds),
    ("agent.*.maxSteps", UntrustedRule::Lowers),
    ("agent.*.maxCost", UntrustedRule::Lowers),
    ("agent.*.toolCall.approval.deny", UntrustedRule::Rules),
    ("agent.*.toolCall.approval.ask", UntrustedRule::Rules),
    ("agent.*.toolCall.approval.byDefault", UntrustedRule::ByDefault),
];

/// The part of an untrusted layer that takes effect over the settings below it, and the keys that were left out.
pub(crate) fn without_trust(values: &Object, below: &Node) -> (Object, Vec<String>) {
    let mut applied = Object::new();
    let mut left_out = indexmap::IndexSet::new();
    visit(values, &mut Vec::new(), &mut |path, rule, value| match rule
        .and_then(|rule| applied_value(rule, path, value, below))
    {
        Some(Value::Null) => {}
        Some(value) => insert(&mut applied, path, value),
        None => {
            left_out.insert(display(path));
        }
    });
    (applied, left_out.into_iter().collect())
}

/// The part of a layer that takes effect only with trust.
pub(crate) fn needs_trust(values: &Object) -> Object {
    let mut part = Object::new();
    visit(values, &mut Vec::new(), &mut |path, rule, value| {
        if !matches!(rule, Some(UntrustedRule::Harmless | UntrustedRule::Rules)) || has_reference(value) {
            insert(&mut part, path, value.clone());
        }
    });
    part
}

/// The value that takes effect; null where it has done so elsewhere already, `None` where it needs trust.
fn applied_value(rule: UntrustedRule, path: &[&str], value: &Value, below: &Node) -> Option<Value> {
    // A behavior that does not exist below would come into being.
    if let ["agent", name, ..] = path
        && below.get("agent").and_then(|behaviors| behaviors.get(canonical_behavior(name))).is_none()
    {
        return None;
    }
    let leaf = |path: &[&str]| path.iter().try_fold(below, |node, key| node.get(key)).and_then(Node::leaf);
    let there = match (leaf(path), path) {
        // A behavior without a limit of its own has the one for all.
        (None, ["agent", _, rest @ ..]) if rule == UntrustedRule::Lowers => leaf(rest),
        (there, _) => there,
    };
    let there = there.map(|(value, _)| value);
    match rule {
        UntrustedRule::Harmless => (!has_reference(value)).then(|| value.clone()),
        UntrustedRule::OnlyFalse => (value.as_bool() == Some(false)).then(|| value.clone()),
        UntrustedRule::OnlyPlan => (value.as_str() == Some("plan")).then(|| value.clone()),
        UntrustedRule::Adds => added(there, value),
        UntrustedRule::Lowers => {
            let lower = there.and_then(Value::as_f64).is_none_or(|there| value.as_f64() < Some(there));
            (value.is_number() && lower).then(|| value.clone())
        }
        UntrustedRule::Rules => Some(Value::Null),
        UntrustedRule::ByDefault => matches!(value.as_str(), Some("ask" | "deny")).then_some(Value::Null),
    }
}

fn added(there: Option<&Value>, more: &Value) -> Option<Value> {
    let mut all = there.and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in more.as_array()? {
        if !entry.is_string() || has_reference(entry) {
            return None;
        }
        if !all.contains(entry) {
            all.push(entry.clone());
        }
    }
    Some(all.into())
}

/// Shows every listed subtree and every other leaf.
fn visit<'v>(
    values: &'v Object,
    path: &mut Vec<&'v str>,
    visitor: &mut impl FnMut(&[&'v str], Option<UntrustedRule>, &'v Value),
) {
    for (key, value) in values {
        path.push(key);
        match (rule_for(path), value) {
            (None, Value::Object(inner)) if inner.is_empty() && is_only_a_container(path) => {}
            (None, Value::Object(inner)) if !inner.is_empty() => visit(inner, path, visitor),
            (rule, value) => visitor(path, rule, value),
        }
        path.pop();
    }
}

/// An empty object says nothing where it only holds others; under a name, as in `allow.shell_command`, it
/// says a lot.
fn is_only_a_container(path: &[&str]) -> bool {
    match path {
        [_] | ["toolCall", "approval"] | ["toolCall", "approval", "allow"] => true,
        ["toolCall", group] => {
            matches!(*group, "readFile" | "shellCommand" | "outputTruncation" | "fetchUrl" | "toolSearch")
        }
        _ => false,
    }
}

fn rule_for(path: &[&str]) -> Option<UntrustedRule> {
    let fits = |pattern: &str| {
        let mut parts = pattern.split('.');
        path.iter().all(|key| parts.next().is_some_and(|part| part == "*" || part == *key))
            && parts.next().is_none()
    };
    ALLOWED_KEYS.iter().find(|(pattern, _)| fits(pattern)).map(|(_, rule)| *rule)
}

/// Whether a `${…}` is anywhere in the value.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(values) => values.iter().any(has_reference),
        Value::Object(values) => values.values().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn insert(object: &mut Object, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => drop(object.insert((*key).to_owned(), value)),
        [key, rest @ ..] => {
            if let Value::Object(below) = object.entry(*key).or_insert_with(|| json!({})) {
                insert(below, rest, value);
            }
        }
    }
}

/// The key for a notice: a server, hook or tool as one. A repository chooses the names.
fn display(path: &[&str]) -> String {
    let depth = match path.first() {
        Some(&("providers" | "toolCall")) => 3,
        _ => 2,
    };
    let name = dotted(path.iter().take(depth).copied());
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
