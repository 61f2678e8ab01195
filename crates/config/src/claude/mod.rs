//! Files of Claude Code and of `.agents` in a project, read where they are, as layers of our settings.
//!
//! Knows the formats of these files and nothing of trust: each layer is one of a project's file, so everything that holds for
//! those holds for it. Invariants: a deny or ask rule is never weakened by its translation, an allow rule never widened; keys
//! that would choose keys, programs or modes for the user ([`NEVER_USED`]) have no translation at all.

mod agents;
mod entries;
mod hooks;
mod permissions;
mod servers;

use std::path::{Path, PathBuf};

use domain::Notice;
use serde_json::{Map, Value, json};

use crate::jsonc;
use crate::layer::{Layer, Object};
use crate::origin::Origin;

pub(crate) use agents::layers as agent_layers;
use entries::entries;
pub(crate) use entries::quoted;
pub(crate) use hooks::translate as translate_hooks;
pub(crate) use servers::translate as translate_servers;

/// Settings of a project, the lower layer first.
const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// What the names of their hooks begin with: hooks of both run.
const HOOK_NAMES: [&str; 2] = ["claude", "claude-local"];
const SERVERS: &str = ".mcp.json";

/// Keys that a repository could use against its reader. They have no effect here, whatever is trusted.
const NEVER_USED: [&str; 5] =
    ["env", "apiKeyHelper", "defaultMode", "statusLine", "enableAllProjectMcpServers"];

/// What is in the files of a project.
#[derive(Default)]
pub(crate) struct ClaudeFiles {
    pub(crate) layers: Vec<Layer>,
    /// Files that cannot be read and may hold deny rules.
    pub(crate) broken: Vec<Notice>,
    /// Parts without an effect: the file, and a sentence.
    pub(crate) unused: Vec<(PathBuf, String)>,
}

pub(crate) fn read(root: &Path) -> ClaudeFiles {
    let mut found = ClaudeFiles::default();
    let (layers, mut unused) = agents::of_project(root);
    found.layers.extend(layers);
    found.unused.append(&mut unused);
    match read_layer(root, SERVERS) {
        Ok(None) => {}
        Ok(Some(layer)) => {
            let servers = layer.values.get("mcpServers").cloned().unwrap_or_default();
            let values = Map::from_iter([("mcpServers".to_owned(), translate_servers(&servers, &[]))]);
            found.layers.push(Layer { values, text: None, ..layer });
        }
        // It holds no rules, so nothing becomes stricter by it.
        Err(notice) => found.unused.push((root.join(SERVERS), notice.text)),
    }
    for (name, hooks) in SETTINGS.into_iter().zip(HOOK_NAMES) {
        match read_layer(root, name) {
            Ok(None) => {}
            Ok(Some(layer)) => {
                let (values, unused) = settings(root, hooks, &layer.values);
                found.unused.extend(unused.into_iter().map(|text| (root.join(name), text)));
                found.layers.push(Layer { values, text: None, adds_rules: true, ..layer });
            }
            Err(notice) => found.broken.push(notice),
        }
    }
    found
}

fn read_layer(root: &Path, name: &str) -> Result<Option<Layer>, Notice> {
    Layer::read(Origin::ProjectFile { path: root.join(name), root: root.to_owned() })
}

/// The settings of a file, and what of it has no effect.
fn settings(root: &Path, hooks: &str, values: &Object) -> (Object, Vec<String>) {
    let mut translated = Map::new();
    let mut unused = Vec::new();
    if let Some(Value::Object(lists)) = values.get("permissions") {
        let (approval, mut problems) = permissions::translate(lists);
        unused.append(&mut problems);
        if approval.as_object().is_some_and(|approval| !approval.is_empty()) {
            translated.insert("toolCall".to_owned(), json!({"approval": approval}));
        }
    }
    let is_off = values.get("disableAllHooks") == Some(&Value::Bool(true));
    if let Some(Value::Object(events)) = values.get("hooks").filter(|_| !is_off) {
        let place = format!("export CLAUDE_PROJECT_DIR={}; ", quoted(&root.display().to_string()));
        let (entries, mut problems) = translate_hooks(events, hooks, &place);
        unused.append(&mut problems);
        if !entries.is_empty() {
            translated.insert("hooks".to_owned(), Value::Object(entries));
        }
    }
    let of_permissions = values.get("permissions").and_then(Value::as_object);
    let is_set =
        |key: &&&str| values.contains_key(**key) || of_permissions.is_some_and(|it| it.contains_key(**key));
    let never: Vec<String> = NEVER_USED.iter().filter(is_set).map(|key| format!("`{key}`")).collect();
    if !never.is_empty() {
        unused.push(format!("{} never takes effect here", never.join(", ")));
    }
    let known = ["permissions", "hooks", "disableAllHooks", "$schema"];
    let is_other = |key: &&String| !known.contains(&key.as_str()) && !NEVER_USED.contains(&key.as_str());
    let others: Vec<String> = values.keys().filter(is_other).map(|key| format!("`{key}`")).collect();
    if !others.is_empty() {
        unused.push(format!("{} has no equivalent here", others.join(", ")));
    }
    (translated, unused)
}

/// Texts of a project that trust lets in: skills and commands, each as a line for people, its path and its content.
pub(crate) fn texts(root: &Path) -> Vec<(String, PathBuf, String)> {
    let mut found = Vec::new();
    for place in [".agents/skills", ".claude/skills"] {
        for folder in entries(&root.join(place)) {
            found.extend(text(root, &folder.join("SKILL.md"), "skill", &folder));
        }
    }
    for plugin in entries(&root.join(crate::plugin_files::PROJECT_PLUGINS)) {
        for folder in entries(&plugin.join("skills")) {
            found.extend(text(root, &folder.join("SKILL.md"), "skill of a plugin", &folder));
        }
        for file in entries(&plugin.join("commands")) {
            found.extend(text(root, &file, "command of a plugin", &file.with_extension("")));
        }
    }
    for file in entries(&root.join(".claude/commands")) {
        match file.is_dir() {
            true => found.extend(entries(&file).iter().filter_map(|it| command(root, it))),
            false => found.extend(command(root, &file)),
        }
    }
    found
}

fn command(root: &Path, file: &Path) -> Option<(String, PathBuf, String)> {
    text(root, file, "command", &file.with_extension(""))
}

fn text(root: &Path, file: &Path, kind: &str, named: &Path) -> Option<(String, PathBuf, String)> {
    file.extension().filter(|kind| *kind == "md")?;
    let text = jsonc::read_beneath(root, file).ok()??;
    let (values, _) = crate::front_matter::split(&text);
    let description = values.get("description").and_then(Value::as_str).unwrap_or_default();
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    Some((format!("{kind} {name}: {description}"), file.to_owned(), text))
}

#[cfg(test)]
mod tests;
