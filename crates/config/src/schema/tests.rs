//! The schema, the readers and the defaults say the same.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keys::{self, Key, is_unsupported};
use super::{configuration_page, json_schema, known_keys, page};
use crate::cursor::READS;
use crate::{Environment, Inputs, defaults};

/// Keys that are read from the layers and not from the merged tree, each with the file that reads it.
const READ_FROM_LAYERS: &[(&str, &str)] = &[
    ("extraConfigs", include_str!("../resolve.rs")),
    ("pureConfig", include_str!("../resolve.rs")),
    ("plugins", include_str!("../plugins.rs")),
    ("sandbox", include_str!("../sandbox.rs")),
    ("sandboxGrants", include_str!("../sandbox.rs")),
    ("sandboxRequired", include_str!("../sandbox.rs")),
    ("sandboxMemoryMegabytes", include_str!("../sandbox.rs")),
    ("undo.fileMegabytes", include_str!("../undo.rs")),
    ("undo.totalMegabytes", include_str!("../undo.rs")),
    ("shell.passEnvironment", include_str!("../variables.rs")),
    ("agent.*.inherit", include_str!("../settings.rs")),
    ("toolCall.approval.byDefault", include_str!("../approval.rs")),
    ("toolCall.approval.allow", include_str!("../approval.rs")),
    ("toolCall.approval.ask", include_str!("../approval.rs")),
    ("toolCall.approval.deny", include_str!("../approval.rs")),
    ("toolCall.approval.allow.*.argsMatchers", include_str!("../rule.rs")),
    ("toolCall.approval.ask.*.argsMatchers", include_str!("../rule.rs")),
    ("toolCall.approval.deny.*.argsMatchers", include_str!("../rule.rs")),
    ("hooks.*.matcher", include_str!("../hooks.rs")),
    ("hooks.*.actions[].type", include_str!("../hooks.rs")),
    ("hooks.*.actions[].shell", include_str!("../hooks.rs")),
    ("hooks.*.actions[].file", include_str!("../hooks.rs")),
    ("hooks.*.actions[].timeout", include_str!("../hooks.rs")),
    ("rules[].path", include_str!("../settings.rs")),
    ("commands[].path", include_str!("../settings.rs")),
    ("skills[].path", include_str!("../settings.rs")),
];

/// Keys for editors.
const NOT_READ: &[&str] = &["$schema"];

/// The name that stands for `*`.
const NAME: &str = "example";

fn supported() -> Vec<Key> {
    keys::all().into_iter().filter(|key| !is_unsupported(&key.schema)).collect()
}

/// Whether the key has no keys below it.
fn is_leaf(path: &str, all: &[Key]) -> bool {
    let below = [format!("{path}."), format!("{path}[")];
    !all.iter().any(|key| below.iter().any(|prefix| key.path.starts_with(prefix)))
}

/// Every key with its example, in one file.
fn full_file(all: &[Key]) -> Map<String, Value> {
    let mut file = Map::new();
    let has_example = |key: &&Key| key.schema.contains_key("examples") && !key.path.contains('[');
    let is_filled = |key: &&Key| {
        is_leaf(&key.path, all)
            || ["rules", "commands", "skills", "hooks.*.actions"].contains(&key.path.as_str())
    };
    for key in all.iter().filter(has_example).filter(is_filled) {
        let names: Vec<&str> =
            key.path.split('.').map(|name| if name == "*" { NAME } else { name }).collect();
        let value =
            names.iter().rev().fold(key.schema["examples"][0].clone(), |value, name| json!({*name: value}));
        merge(&mut file, value);
    }
    file
}

fn merge(file: &mut Map<String, Value>, value: Value) {
    let Value::Object(value) = value else { return };
    for (key, value) in value {
        match file.get_mut(&key) {
            Some(Value::Object(there)) => merge(there, value),
            _ => drop(file.insert(key, value)),
        }
    }
}

#[test]
fn every_key_is_documented() {
    let all = keys::all();
    assert!(all.len() > 100, "{} keys", all.len());
    for key in &all {
        let text = key.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(text.len() > 10 && text.ends_with(['.', ':']), "{}: {text:?}", key.path);
        if is_unsupported(&key.schema) {
            assert!(text.starts_with("Not supported, ignored."), "{}", key.path);
        } else if is_leaf(&key.path, &all) {
            assert!(key.schema.contains_key("examples"), "{} has no example", key.path);
            assert_ne!(page::kind(&key.schema), "any value", "{}", key.path);
        }
    }
}

#[test]
fn every_key_is_read_or_reported_and_every_read_key_is_documented() {
    let all = supported();
    let home = tempfile::tempdir().unwrap();
    let file = Value::Object(full_file(&all)).to_string();
    READS.with_borrow_mut(BTreeSet::clear);
    // Both kinds of MCP server, which have different keys.
    for drop_command in [false, true] {
        let mut file: Value = serde_json::from_str(&file).unwrap();
        if drop_command {
            file["mcpServers"][NAME].as_object_mut().unwrap().remove("command");
        }
        let environment = Environment::new(home.path(), [("DRAGOMAN_CONFIG", file.to_string())]);
        let resolved = crate::resolve(&environment, &Inputs::default());
        assert_eq!(resolved.ignored_keys, [], "the schema knows its own examples");
    }
    let reads: BTreeSet<String> =
        READS.with_borrow(|reads| reads.iter().map(|path| path.replace(&format!(".{NAME}"), ".*")).collect());
    for key in all.iter().filter(|key| is_leaf(&key.path, &all)) {
        let generic =
            key.path.replace("agent.*.toolCall", "toolCall").replace("projects.*.toolCall", "toolCall");
        let from_layers = READ_FROM_LAYERS.iter().find(|(path, _)| *path == generic || *path == key.path);
        if let Some((path, source)) = from_layers {
            let name = path.rsplit(['.', ']']).next().unwrap();
            assert!(source.contains(&format!("\"{name}\"")), "{path} is not in the file that should read it");
        } else if !NOT_READ.contains(&key.path.as_str()) {
            assert!(reads.contains(&key.path), "nothing reads {}", key.path);
        }
    }
    let known: BTreeSet<String> = keys::all().into_iter().map(|key| key.path).collect();
    for path in &reads {
        let is_known = known.contains(path)
            || known.iter().any(|key| key.starts_with(&format!("{path}.")))
            // Entries of objects without fixed keys, and the built-in behaviors.
            || path.rsplit_once('.').is_some_and(|(parent, _)| known.contains(parent))
            // Their names have dots of their own.
            || path.starts_with("otlp.")
            || path.starts_with("agent.agent.") || path.starts_with("agent.plan.");
        assert!(is_known, "{path} is read and not in the schema");
    }
}

#[test]
fn the_defaults_are_those_of_the_schema() {
    let mut defaults = Value::Object(defaults::values().clone());
    for key in supported().iter().filter(|key| !key.path.contains('*')) {
        let Some(default) = key.schema.get("default") else { continue };
        let pointer = format!("/{}", key.path.replace('.', "/"));
        let value = defaults.pointer(&pointer);
        // A default of false is the same as none.
        assert!(value == Some(default) || (value.is_none() && *default == false), "{}: {value:?}", key.path);
        if let Some((parent, name)) = pointer.rsplit_once('/') {
            let parent = defaults.pointer_mut(parent).and_then(Value::as_object_mut);
            parent.map(|parent| parent.remove(name));
        }
    }
    // The allow rules for tools that change nothing are listed in docs/configuration.md by their behavior, not here.
    defaults["toolCall"]["approval"].as_object_mut().unwrap().remove("allow");
    assert_eq!(leaves(&defaults), 0, "defaults that the schema does not tell: {defaults}");
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.values().map(leaves).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => 1,
    }
}

#[test]
fn the_short_list_and_the_schema_find_the_same() {
    let files = [
        json!({}),
        json!({"chat": {"title": false}, "providers": {"house": {"url": "http://x", "models": {"m": {"anything": 1}}}}}),
        json!({"hooks": {"a": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "true"}]}}}),
        json!({"unknown": 1}),
        json!({"chat.title": 1}),
        json!({"agent": {"*": {"a.b": 1}}}),
        json!({"toolCall": {"aproval": {}}}),
        json!({"hooks": {"a": {"actions": [{"shell": "true"}, {"shel": "true"}]}}}),
        json!({"mcpServers": {"one": {"commnd": "x"}}}),
        json!({"agent": {"mine": {"inherits": "plan"}}}),
        json!({"providers": {"house": {"key": {"object": 1}, "urls": 1}}}),
    ];
    for file in files.into_iter().map(|file| file.as_object().unwrap().clone()) {
        let findings = keys::find_by_schema(&file);
        assert_eq!(known_keys::KNOWN.holds_all(&file), findings.is_empty(), "{file:?}: {findings:?}");
    }
    for key in keys::all().iter().filter(|key| !key.path.contains(['*', '['])) {
        let file = key.path.split('.').rev().fold(json!(1), |value, name| json!({name: value}));
        let file = file.as_object().unwrap();
        assert_eq!(known_keys::KNOWN.holds_all(file), !is_unsupported(&key.schema), "{}", key.path);
    }
}

const UPDATE: &str = "run `cargo test -p dragoman-config --lib -- --ignored write_the_committed_files`";

#[test]
fn the_committed_files_are_up_to_date() {
    let schema = include_str!("../../../../docs/config.schema.json");
    assert!(schema == format!("{:#}\n", json_schema()), "docs/config.schema.json is old: {UPDATE}");
    let known = include_str!("known_keys.txt");
    assert!(known == known_keys::list(&json_schema()), "known_keys.txt is old: {UPDATE}");
    let page = include_str!("../../../../docs/configuration.md");
    assert!(page == configuration_page(), "docs/configuration.md is old: {UPDATE}");
}

#[test]
#[ignore = "changes files of the repository"]
fn write_the_committed_files() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::write(docs.join("config.schema.json"), format!("{:#}\n", json_schema())).unwrap();
    std::fs::write(docs.join("configuration.md"), configuration_page()).unwrap();
    let known = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema/known_keys.txt");
    std::fs::write(known, known_keys::list(&json_schema())).unwrap();
}
