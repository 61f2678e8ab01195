//! Old and alternative spellings of keys, rewritten to today's before layers are merged, so that a higher
//! layer wins by whichever spelling. Where a layer has both spellings, today's wins.

use serde_json::{Value, json};

use crate::layer::Object;

/// Whole keys that were renamed, top level or one below.
const RENAMED: &[(&[&str], &[&str])] = &[
    (&["defaultBehavior"], &["defaultAgent"]),
    (&["chatBehavior"], &["defaultAgent"]),
    (&["chatAgent"], &["defaultAgent"]),
    (&["chat", "defaultBehavior"], &["defaultAgent"]),
    (&["chat", "defaultAgent"], &["defaultAgent"]),
    (&["chat", "defaultModel"], &["defaultModel"]),
    (&["chat", "welcomeMessage"], &["welcomeMessage"]),
    (&["behavior"], &["agent"]),
    (&["customProviders"], &["providers"]),
    (&["openaiApiKey"], &["providers", "openai", "key"]),
    (&["anthropicApiKey"], &["providers", "anthropic", "key"]),
    (&["geminiApiKey"], &["providers", "google", "key"]),
    (&["streamIdleTimeoutSeconds"], &["streamSilenceSeconds"]),
    (&["mcpToolSearch", DEFER_ABOVE], &["toolCall", "toolSearch", "abovePercent"]),
    (&["systemPrompt"], &["prompts", "chat"]),
    (&["compactPrompt"], &["prompts", "compact"]),
];

const DEFER_ABOVE: &str = "deferAllWhenTotalTokensExceedPercentOfContext";

/// Keys whose value becomes a reference: the name of a variable, a file or a netrc entry.
const WRAPPED: &[(&str, &[&str], &str)] = &[
    ("systemPromptFile", &["prompts", "chat"], "file"),
    ("systemPromptTemplateFile", &["prompts", "chat"], "file"),
    ("compactPromptFile", &["prompts", "compact"], "file"),
    ("keyEnv", &["key"], "env"),
    ("urlEnv", &["url"], "env"),
    ("keyRc", &["key"], "netrc"),
];

/// Keys of one behavior that were renamed.
const BEHAVIOR_RENAMED: &[(&str, &str)] =
    &[("prompt", "systemPrompt"), ("steps", "maxSteps"), ("model", "defaultModel")];

/// `code` is the name that today's clients have for the behavior `agent`.
pub(crate) fn canonical_behavior(name: &str) -> &str {
    if name == "code" { "agent" } else { name }
}

/// Every other spelling of a key beside the one it is read as, for people.
pub(crate) fn spellings() -> Vec<(String, String)> {
    let renamed = RENAMED.iter().map(|(old, new)| (old.join("."), new.join(".")));
    let wrapped = WRAPPED.iter().map(|(old, new, kind)| {
        let place = if matches!(*kind, "file") { "" } else { "providers.*." };
        (format!("{place}{old}"), format!("{place}{} with ${{{kind}:…}}", new.join(".")))
    });
    let behavior =
        BEHAVIOR_RENAMED.iter().map(|(old, new)| (format!("agent.*.{old}"), format!("agent.*.{new}")));
    let others =
        [("ollama.host", "providers.ollama.url"), ("toolCall.manualApproval", "toolCall.approval.byDefault")];
    let others = others.map(|(old, new)| (old.to_owned(), new.to_owned()));
    renamed.chain(wrapped).chain(behavior).chain(others).collect()
}

/// Rewrites one layer.
pub(crate) fn modernize(values: &mut Object) {
    for (old, new) in RENAMED {
        if let Some(value) = remove_path(values, old) {
            insert_missing(values, new, value);
        }
    }
    if values.get("mcpToolSearch").and_then(Value::as_object).is_some_and(Object::is_empty) {
        values.shift_remove("mcpToolSearch");
    }
    wrap(values);
    ollama(values);
    manual_approval(values);
    if let Some(Value::Object(behaviors)) = values.get_mut("agent") {
        rename_code(behaviors);
        behaviors.values_mut().filter_map(Value::as_object_mut).for_each(modernize_behavior);
    }
    if let Some(Value::Object(providers)) = values.get_mut("providers") {
        providers.values_mut().filter_map(Value::as_object_mut).for_each(modernize_provider);
    }
}

fn modernize_behavior(behavior: &mut Object) {
    for (old, new) in BEHAVIOR_RENAMED {
        if let Some(value) = behavior.shift_remove(*old) {
            insert_missing(behavior, &[*new], value);
        }
    }
    wrap(behavior);
    manual_approval(behavior);
}

fn modernize_provider(provider: &mut Object) {
    wrap(provider);
    if let Some(Value::Array(names)) = provider.get("models") {
        let models = names.iter().filter_map(|name| Some((name.as_str()?.to_owned(), json!({}))));
        let models: Object = models.collect();
        provider.insert("models".into(), models.into());
    }
}

fn wrap(values: &mut Object) {
    for (old, new, kind) in WRAPPED {
        if let Some(Value::String(name)) = values.get(*old) {
            let reference = format!("${{{kind}:{name}}}");
            values.shift_remove(*old);
            insert_missing(values, new, reference.into());
        }
    }
}

fn ollama(values: &mut Object) {
    let Some(Value::Object(ollama)) = values.get("ollama") else { return };
    if let Some(host) = ollama.get("host").and_then(Value::as_str) {
        let port = ollama.get("port").map(|port| port.to_string().trim_matches('"').to_owned());
        let url = format!("{host}:{}", port.unwrap_or_else(|| "11434".into()));
        insert_missing(values, &["providers", "ollama", "url"], url.into());
    }
    values.shift_remove("ollama");
}

fn manual_approval(values: &mut Object) {
    if let Some(Value::Bool(manual)) = remove_path(values, &["toolCall", "manualApproval"]) {
        let approval = if manual { "ask" } else { "allow" };
        insert_missing(values, &["toolCall", "approval", "byDefault"], approval.into());
    }
}

fn rename_code(behaviors: &mut Object) {
    if let Some(code) = behaviors.shift_remove("code") {
        insert_missing(behaviors, &["agent"], code);
    }
}

fn remove_path(values: &mut Object, path: &[&str]) -> Option<Value> {
    match path {
        [key] => values.shift_remove(*key),
        [key, rest @ ..] => remove_path(values.get_mut(*key)?.as_object_mut()?, rest),
        [] => None,
    }
}

/// Sets a value that is missing; objects are merged key by key.
fn insert_missing(values: &mut Object, path: &[&str], value: Value) {
    let Some((key, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match (values.get_mut(*key), value) {
            (Some(Value::Object(there)), Value::Object(more)) => {
                more.into_iter().for_each(|(key, value)| insert_missing(there, &[&key], value));
            }
            (Some(Value::Null) | None, value) => drop(values.insert((*key).into(), value)),
            (Some(_), _) => {}
        }
    } else if let Value::Object(below) = values.entry(*key).or_insert_with(|| json!({})) {
        insert_missing(below, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_spellings_become_todays() {
        let rows = [
            (json!({"chatBehavior": "plan"}), json!({"defaultAgent": "plan"})),
            (json!({"defaultBehavior": "a", "defaultAgent": "b"}), json!({"defaultAgent": "b"})),
            (json!({"chatAgent": null}), json!({"defaultAgent": null})),
            (
                json!({"behavior": {"code": {"prompt": "p", "steps": 3}}, "agent": {"agent": {"maxSteps": 4}}}),
                json!({"agent": {"agent": {"maxSteps": 4, "systemPrompt": "p"}}}),
            ),
            (
                json!({"openaiApiKey": "k", "ollama": {"host": "http://h", "port": 1}}),
                json!({"providers": {"openai": {"key": "k"}, "ollama": {"url": "http://h:1"}}}),
            ),
            (
                json!({"customProviders": {"x": {"keyEnv": "K", "urlEnv": "U", "models": ["a", "b"]}}}),
                json!({"providers": {"x": {"key": "${env:K}", "url": "${env:U}", "models": {"a": {}, "b": {}}}}}),
            ),
            (
                json!({"providers": {"x": {"keyRc": "me@host"}}}),
                json!({"providers": {"x": {"key": "${netrc:me@host}"}}}),
            ),
            (
                json!({"mcpToolSearch": {DEFER_ABOVE: 5}}),
                json!({"toolCall": {"toolSearch": {"abovePercent": 5}}}),
            ),
            (
                json!({"toolCall": {"manualApproval": true}}),
                json!({"toolCall": {"approval": {"byDefault": "ask"}}}),
            ),
            (
                json!({"systemPromptFile": "p.md", "compactPrompt": "c"}),
                json!({"prompts": {"compact": "c", "chat": "${file:p.md}"}}),
            ),
        ];
        for (old, new) in rows {
            let mut values = old.as_object().unwrap().clone();
            modernize(&mut values);
            assert_eq!(Value::Object(values), new, "{old}");
        }
    }
}
