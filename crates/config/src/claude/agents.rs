//! Agents of Claude Code (`.claude/agents/*.md`) as our subagents.
//!
//! Invariant: an agent here may do at most what the agent there may. One with a setting that could restrict it and is not
//! known here is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::entries::entries;
use super::permissions::targets;
use crate::front_matter;
use crate::jsonc;
use crate::layer::Layer;
use crate::origin::Origin;

const MAX_FILES: usize = 200;
/// Agents that are built in here.
const BUILT_IN: [&str; 5] = ["agent", "code", "plan", "explorer", "general"];
/// Tools of servers, by their offered name `server__tool`. The built-in ones have the server `eca`.
const OF_SERVERS: &str = "(.{0,2}|[^e]..|.[^c].|..[^a]|.{3}.+)__.*";
/// Our tools that read, change or reach something.
const OURS: [&str; 19] = [
    "recall",
    "shell_command",
    "background_job",
    "edit_file",
    "write_file",
    "apply_patch",
    "move_file",
    "preview_file_change",
    "read_file",
    "directory_tree",
    "glob",
    "grep",
    "editor_diagnostics",
    "editor_definition",
    "editor_references",
    "fetch_url",
    "web_search",
    "spawn_agent",
    "skill",
];
/// Settings that restrict nothing.
const HARMLESS: [&str; 12] = [
    "name",
    "description",
    "model",
    "color",
    "effort",
    "memory",
    "background",
    "initialPrompt",
    "skills",
    "version",
    "author",
    "tags",
];

/// What was found of agents: their layers, and files that do not count with the reason.
type Found = (Vec<Layer>, Vec<(PathBuf, String)>);

pub(super) fn of_project(root: &Path) -> Found {
    let origin = |path| Origin::ProjectFile { path, root: root.to_owned() };
    let read = |path: &Path| jsonc::read_beneath(root, path).ok().flatten();
    layers(&root.join(".claude/agents"), &origin, &read)
}

/// The agents of a folder.
pub(crate) fn layers(
    folder: &Path,
    origin: &dyn Fn(PathBuf) -> Origin,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Found {
    let (mut layers, mut unused) = (Vec::new(), Vec::new());
    for path in entries(folder).into_iter().take(MAX_FILES) {
        if path.extension().is_none_or(|kind| kind != "md") {
            continue;
        }
        let Some(text) = read(&path) else { continue };
        match agent(&path, &text) {
            Ok((name, entry)) => {
                let values = Map::from_iter([("agent".to_owned(), json!({name: entry}))]);
                layers.push(Layer::new(origin(path), values, folder.to_owned()));
            }
            Err(why) => unused.push((path, why)),
        }
    }
    (layers, unused)
}

fn agent(path: &Path, text: &str) -> Result<(String, Value), String> {
    let (values, body) = front_matter::split(text);
    let written = values.get("name").and_then(Value::as_str).map(str::to_owned);
    let stem = || path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let name = written.or_else(stem).ok_or("it has no name")?;
    if BUILT_IN.contains(&name.as_str()) {
        return Err(format!("an agent {name} is built in here"));
    }
    let mut entry = json!({"mode": "subagent", "systemPrompt": without_references(body.trim())});
    if let Some(description) = values.get("description").and_then(Value::as_str) {
        entry["description"] = json!(without_references(description));
    }
    let mut disabled = BTreeSet::new();
    for (key, value) in values.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "tools" => disabled.extend(all_but(&names(value).ok_or("its tools are not understood")?)?),
            "disallowedTools" => {
                for name in names(value).ok_or("its tools are not understood")? {
                    disabled.extend(ours(&name)?);
                }
            }
            "permissionMode" if value == "plan" => entry["inherit"] = json!("plan"),
            "permissionMode" => {}
            "maxTurns" => entry["maxSteps"] = value.clone(),
            "isolation" if value == "worktree" => entry["worktree"] = json!(true),
            "mcpServers" => {}
            key if HARMLESS.contains(&key) => {}
            key => return Err(format!("its setting `{key}` is not known here and could restrict it")),
        }
    }
    if !disabled.is_empty() {
        entry["disabledTools"] = json!(disabled);
    }
    Ok((name, entry))
}

/// Claude Code does not know references such as `${cmd:…}`: they stay as text that nothing looks up.
fn without_references(text: &str) -> String {
    let kinds = ["cmd", "env", "file", "netrc", "classpath"];
    kinds
        .iter()
        .fold(text.to_owned(), |text, kind| text.replace(&format!("${{{kind}:"), &format!("$ {{{kind}:")))
}

/// `Read, Grep` or a list.
fn names(value: &Value) -> Option<Vec<String>> {
    let plain = |text: &str| text.trim().to_owned();
    match value {
        Value::String(text) => Some(text.split(',').map(plain).filter(|name| !name.is_empty()).collect()),
        Value::Array(values) => values.iter().map(|value| value.as_str().map(plain)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Our tools, without their server, for one of theirs.
fn ours(name: &str) -> Result<Vec<String>, String> {
    if name.contains('(') {
        return Err(format!("it has `{name}` only in part, which has no equivalent here"));
    }
    if let Some(tool) = name.strip_prefix("mcp__") {
        return Ok(vec![if tool.contains("__") { tool.to_owned() } else { format!("{tool}__.*") }]);
    }
    Ok(targets(name).iter().map(|target| target.trim_start_matches("eca__").to_owned()).collect())
}

/// Everything but these tools is switched off, tools of servers included.
fn all_but(names: &[String]) -> Result<Vec<String>, String> {
    if names.iter().any(|name| name == "*") {
        return Ok(Vec::new());
    }
    let mut kept = BTreeSet::new();
    for name in names.iter().filter(|name| !name.starts_with("mcp__")) {
        kept.extend(ours(name)?);
        if name == "Skill" {
            kept.insert("skill".to_owned());
        }
    }
    if kept.contains("shell_command") {
        kept.insert("background_job".to_owned());
    }
    if kept.contains("edit_file") {
        kept.extend(["move_file".to_owned(), "preview_file_change".to_owned()]);
    }
    if kept.contains("read_file") {
        kept.extend(["editor_diagnostics", "editor_definition", "editor_references"].map(str::to_owned));
    }
    let off = OURS.iter().filter(|tool| !kept.contains(**tool)).map(|tool| (*tool).to_owned());
    Ok(off.chain([OF_SERVERS.to_owned()]).collect())
}
