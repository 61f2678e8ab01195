//! What an agent of another program may not do, as settings of an agent here.
//!
//! Pure. Invariant: an agent here may do at most what the agent there may. A restriction that has no exact or stricter form
//! here, and a setting that is not known and could be one, are errors: the agent is then not imported.

mod claude;
mod opencode;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::permissions::Context;
use super::plan::{NewRule, RuleList};
use super::tool_names::ours;

/// Tools of servers, by their offered name `server__tool`. The built-in ones have the server `eca`.
const OF_SERVERS: &str = "(.{0,2}|[^e]..|.[^c].|..[^a]|.{3}.+)__.*";

/// Our tools that read, change or reach something. Others, such as task lists, need no restriction.
const OURS: [&str; 18] = [
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
];

/// Settings of agents that restrict nothing, and have no place here.
const HARMLESS: [&str; 28] = [
    "name",
    "description",
    "model",
    "color",
    "temperature",
    "top_p",
    "topp",
    "effort",
    "reasoningeffort",
    "variant",
    "memory",
    "background",
    "initialprompt",
    "skills",
    "hidden",
    "prompt",
    "mode",
    "version",
    "author",
    "license",
    "category",
    "tags",
    "keywords",
    "created",
    "updated",
    "metadata",
    "title",
    "emoji",
];

/// The restrictions of an agent here.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Restrictions {
    disabled: BTreeSet<String>,
    rules: Vec<(RuleList, NewRule)>,
    by_default: Option<&'static str>,
    is_plan: bool,
    max_steps: Option<u64>,
    has_worktree: bool,
    /// What is stricter here than there, or has no place: name and reason.
    pub notes: Vec<(String, String)>,
}

/// What the reader of an agent needs to know.
pub(super) struct Surroundings<'a> {
    pub context: Context<'a>,
    /// Tools that the user has made here.
    pub custom_tools: &'a [String],
}

impl Restrictions {
    /// Reads the settings of an agent. An error is the reason why it cannot be imported.
    pub(super) fn read(settings: &Map<String, Value>, around: &Surroundings<'_>) -> Result<Self, String> {
        let mut found = Self::default();
        for (key, value) in settings {
            let plain = key.to_lowercase().replace(['-', '_'], "");
            match plain.as_str() {
                "tools" => found.read_tools(value, around)?,
                "disallowedtools" => found.forbid_claude(value, around)?,
                "permissionmode" => found.read_mode(value)?,
                "permission" => found.read_permission(value, around)?,
                "maxturns" | "maxsteps" | "steps" => {
                    found.max_steps = Some(number(value).ok_or_else(|| format!("its `{key}` is no number"))?);
                }
                "isolation" if value == "worktree" => found.has_worktree = true,
                "disable" | "disabled" if value == true => return Err("it is switched off there".to_owned()),
                "disable" | "disabled" if value == false => {}
                "mcpservers" => found.note(key, "add its servers with `dragoman mcp add`"),
                "hooks" => return Err("its hooks may forbid calls, and cannot run here".to_owned()),
                _ if HARMLESS.contains(&key.to_lowercase().as_str()) => {}
                _ => return Err(format!("its setting `{key}` is not known here and could restrict it")),
            }
        }
        Ok(found)
    }

    /// Adds the restrictions to the settings of an agent.
    pub(super) fn apply(&self, agent: &mut Value) {
        if !self.disabled.is_empty() {
            agent["disabledTools"] = json!(self.disabled);
        }
        if self.is_plan {
            agent["inherit"] = json!("plan");
        }
        if let Some(steps) = self.max_steps {
            agent["maxSteps"] = json!(steps);
        }
        if self.has_worktree {
            agent["worktree"] = json!(true);
        }
        if let Some(decision) = self.by_default {
            agent["toolCall"]["approval"]["byDefault"] = json!(decision);
        }
        for (list, rule) in &self.rules {
            let place = &mut agent["toolCall"]["approval"][list.key()][&rule.target];
            match &rule.pattern {
                // A rule for the whole tool covers everything.
                None => *place = json!({}),
                Some(_) if place.as_object().is_some_and(Map::is_empty) => {}
                Some((argument, pattern)) => {
                    let patterns = &mut place["argsMatchers"][*argument];
                    let mut known = patterns.as_array().cloned().unwrap_or_default();
                    known.push(json!(pattern));
                    *patterns = json!(known);
                }
            }
        }
    }

    /// Our tools that the settings switch off for everybody, without rules.
    pub(super) fn disabled(&self) -> impl Iterator<Item = &String> {
        self.disabled.iter()
    }

    pub(super) fn rules(&self) -> &[(RuleList, NewRule)] {
        &self.rules
    }

    fn note(&mut self, what: &str, why: &str) {
        self.notes.push((what.to_owned(), why.to_owned()));
    }

    fn disable(&mut self, tools: &[&str]) {
        self.disabled.extend(tools.iter().map(|tool| (*tool).to_owned()));
    }

    /// A list of the tools that the agent has, or a map from tool to whether it has it.
    fn read_tools(&mut self, value: &Value, around: &Surroundings<'_>) -> Result<(), String> {
        match &opened(value) {
            Value::Object(switches) => self.read_switches(switches),
            Value::Null => {
                Err("its list of tools is empty, so it is unclear which tools it may use".to_owned())
            }
            value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let names = names(value).ok_or("its list of tools is not understood")?;
                if names.iter().any(|name| name == "*" || name == "all") {
                    return Ok(());
                }
                self.allow_only(&names, around)
            }
        }
    }

    /// Only these tools: everything else is switched off, tools of servers included.
    fn allow_only(&mut self, names: &[String], around: &Surroundings<'_>) -> Result<(), String> {
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        for name in names {
            if name.contains('(') {
                return Err(format!(
                    "it has `{name}` only in part, which Dragoman's settings cannot express"
                ));
            }
            match ours(name) {
                Some(tools) => kept.extend(tools),
                None => self.note(
                    &format!("tools: {name}"),
                    "this agent gets neither tools of MCP servers nor other tools here",
                ),
            }
        }
        if kept.contains("edit_file") && kept.contains("write_file") {
            kept.extend(["apply_patch", "move_file"]);
        }
        if kept.contains("read_file") {
            kept.extend(["editor_diagnostics", "editor_definition", "editor_references"]);
        }
        let off: Vec<&str> =
            OURS.iter().chain(&["skill"]).copied().filter(|tool| !kept.contains(tool)).collect();
        self.disable(&off);
        self.disable(&[OF_SERVERS]);
        self.disabled.extend(around.custom_tools.iter().cloned());
        Ok(())
    }

    /// One of our tools, or tools of servers by a pattern with `*`.
    fn forbid_whole(&mut self, name: &str) {
        match ours(name) {
            Some(tools) => {
                self.disable(tools);
                // Without one of these a file would still be patched, moved or made anew.
                if tools.iter().any(|tool| matches!(*tool, "edit_file" | "write_file")) {
                    self.disable(&["apply_patch", "move_file"]);
                }
            }
            None => {
                self.disabled.insert(server_pattern(name));
            }
        }
    }
}

/// Names of tools of servers: one underscore there is two here, and `*` is any text.
fn server_pattern(name: &str) -> String {
    let mut pattern = String::new();
    let mut last = ' ';
    for character in name.chars() {
        match character {
            '*' => pattern.push_str(".*"),
            '_' if last == '_' => {}
            '_' => pattern.push_str("_+"),
            other => pattern.push_str(&domain::escape_pattern(&other.to_string())),
        }
        last = character;
    }
    pattern
}

/// `{a: b, "c d": e}` on one line.
fn flow_map(text: &str) -> Option<Map<String, Value>> {
    if let Ok(Value::Object(map)) = serde_json::from_str(text) {
        return Some(map);
    }
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    if inner.contains(['{', '}', '[', ']']) {
        return None;
    }
    let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let parts = inner.split(',').filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let (key, value) = part.rsplit_once(':')?;
            let value = match unquoted(value).as_str() {
                "true" => json!(true),
                "false" => json!(false),
                text => json!(text),
            };
            Some((unquoted(key), value))
        })
        .collect()
}

/// A map that is written on one line, as a map.
fn opened(value: &Value) -> Value {
    let text = value.as_str().filter(|text| text.trim_start().starts_with('{'));
    text.and_then(flow_map).map_or_else(|| value.clone(), Value::Object)
}

/// A list of texts, or texts with commas between them. Commas within parentheses belong to a text.
fn names(value: &Value) -> Option<Vec<String>> {
    let text = match value {
        Value::Array(values) => {
            return values.iter().map(|it| Some(it.as_str()?.trim().to_owned())).collect();
        }
        Value::String(text) if !text.trim_start().starts_with('{') => text,
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    Some(parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests;
