//! The reference page docs/configuration.md, made from the schema alone.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::keys::{self, Key, is_unsupported, resolve};
use crate::legacy_keys;

const INTRODUCTION: &str = "\
# Configuration

This page is made from the settings' schema; a test keeps it equal to the program (`dragoman config schema --markdown`
prints it).

Settings come from these places; a later one goes before an earlier one, key by key:

1. the defaults below, and keys from environment variables such as `ANTHROPIC_API_KEY`
2. `initializationOptions` of an editor
3. the JSON in `ECA_CONFIG`, then in `DRAGOMAN_CONFIG`
4. `~/.config/eca/config.json`, then `~/.config/dragoman/config.json`
5. `.eca/config.json`, then `.dragoman/config.json` of each workspace folder
6. the files that `extraConfigs` names
7. the command line

Comments and trailing commas are allowed, and `null` restores a default. A file that cannot be read is not used at all,
and every tool call asks until it is corrected. A project's files were written by the authors of the repository: keys
that could do harm take effect only after `dragoman trust`; keys that make approvals stricter or limits smaller always
do. Deny rules of all places hold together.

A text may hold references: `${env:NAME}` or `${env:NAME:default}`, `${file:path}`, `${cmd:line}` and
`${netrc:machine}`. `*` below stands for a name that you choose.

`dragoman config check` reports mistakes, `dragoman config show` prints each setting in force with its origin, and
`dragoman config schema` prints a JSON Schema. With `\"$schema\": \"./config.schema.json\"` in a settings file and that
schema beside it, editors check and complete the file.
";

/// The text of the reference page.
pub fn configuration_page() -> String {
    let mut page = String::from(INTRODUCTION);
    let keys = keys::all();
    for key in keys.iter().filter(|key| !is_unsupported(&key.schema)) {
        let level = if key.path.contains('.') || key.path.contains('[') { "###" } else { "##" };
        let _ = write!(page, "\n{level} `{}`\n\n{}\n\n{}\n", key.path, facts(key), description(key));
        if let Some(example) = key.schema.get("examples").and_then(|examples| examples.get(0)) {
            let name = last_name(&key.path);
            let _ = write!(page, "\n```json\n\"{name}\": {example}\n```\n");
        }
    }
    page.push_str(
        "\n## Not supported\n\nECA knows these keys. Dragoman ignores them and reports each that is set.\n\n",
    );
    for key in keys.iter().filter(|key| is_unsupported(&key.schema)) {
        let text = description(key);
        let text = text.strip_prefix("Not supported, ignored.").unwrap_or(&text).trim();
        let _ = writeln!(page, "- `{}`: {text}", key.path);
    }
    page.push_str("\n## Other spellings\n\nThese keys are read as the ones beside them.\n\n| written | read as |\n|---|---|\n");
    for (old, new) in legacy_keys::spellings() {
        let _ = writeln!(page, "| `{old}` | `{new}` |");
    }
    page
}

/// Type and default on one line.
fn facts(key: &Key) -> String {
    let mut line = kind(&key.schema);
    if let Some(default) = key.schema.get("default") {
        let _ = write!(line, " · default `{default}`");
    }
    line
}

fn description(key: &Key) -> String {
    key.schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The type in words.
pub(super) fn kind(schema: &Map<String, Value>) -> String {
    let whole = Value::Object(schema.clone());
    let target = resolve(&whole);
    if let Some(names) = choices(target) {
        return names;
    }
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let range = match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        _ => String::new(),
    };
    match type_name(target) {
        Some("string") => "text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("array") => match target.get("items").map(resolve).and_then(type_name) {
            Some("string") => "list of texts".to_owned(),
            _ => "list of objects".to_owned(),
        },
        Some("object") if target.get("properties").is_none() => match target.get("additionalProperties") {
            Some(entry @ Value::Object(_)) => match type_name(resolve(entry)) {
                Some("string") => "texts by name".to_owned(),
                Some("array") => "lists by name".to_owned(),
                _ => "objects by name".to_owned(),
            },
            _ => "object".to_owned(),
        },
        Some("object") => "object".to_owned(),
        None if target.get("anyOf").is_some() => "text or object".to_owned(),
        _ => "any value".to_owned(),
    }
}

fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names.first()?.as_str(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// `a`, `b` or `c`.
fn choices(schema: &Value) -> Option<String> {
    if let Some(Value::Array(options)) = schema.get("anyOf") {
        let first = resolve(options.first()?);
        return choices(first).map(|names| format!("{names}, or a list of them"));
    }
    let names: Vec<String> = schema
        .get("enum")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .map(|name| format!("`{name}`"))
        .collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}
