//! What an agent of another program may not do, as settings of an agent here.
//!
//! Pure. Invariant: an agent here may do at most what the agent there may. A restriction that has no exact or stricter form
//! here, and a setting that is not known and could be one, are errors: the agent is then not imported.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::permissions::{self, Context};
use super::plan::{NewRule, RuleList};
use super::tool_names::{ours, targets};

/// Tools of servers, by their offered name `server__tool`. The built-in ones have the server `eca`.
const OF_SERVERS: &str = "(.{0,2}|[^e]..|.[^c].|..[^a]|.{3}.+)__.*";

/// Our tools that read, change or reach something. Others, such as task lists, need no restriction.
const OURS: [&str; 17] = [
    "recall",
    "shell_command",
    "background_job",
    "edit_file",
    "write_file",
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
            kept.insert("move_file");
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

    /// `{bash: false, "server_*": false}` of opencode.
    fn read_switches(&mut self, switches: &Map<String, Value>) -> Result<(), String> {
        if switches.get("*").is_some_and(|all| all == false) {
            return Err("it switches off all tools except some, by a pattern".to_owned());
        }
        for (name, value) in switches {
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => self.forbid_whole(name),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(format!("its tool `{name}` is neither on nor off"));
                }
            }
        }
        Ok(())
    }

    /// One of our tools, or tools of servers by a pattern with `*`.
    fn forbid_whole(&mut self, name: &str) {
        match ours(name) {
            Some(tools) => {
                self.disable(tools);
                // Without one of these a file would still be moved or made anew.
                if tools.iter().any(|tool| matches!(*tool, "edit_file" | "write_file")) {
                    self.disable(&["move_file"]);
                }
            }
            None => {
                self.disabled.insert(server_pattern(name));
            }
        }
    }

    fn forbid_claude(&mut self, value: &Value, around: &Surroundings<'_>) -> Result<(), String> {
        for name in names(value).ok_or("its `disallowedTools` are not understood")? {
            if name.contains('(') {
                let rules = permissions::of_claude(&name, RuleList::Deny, &around.context)
                    .map_err(|why| format!("`{name}` is forbidden to it: {why}"))?;
                self.rules.extend(rules.into_iter().map(|rule| (RuleList::Deny, rule)));
            } else if let Some(tool) = name.strip_prefix("mcp__") {
                let (server, tool) = tool.split_once("__").unwrap_or((tool, "*"));
                let entry = if tool == "*" {
                    server.to_owned()
                } else {
                    server_pattern(&format!("{server}__{tool}"))
                };
                self.disabled.insert(entry);
            } else if ours(&name).is_some() {
                self.forbid_whole(&name);
            } else {
                self.note(&format!("disallowedTools: {name}"), "there is no such tool here");
            }
        }
        Ok(())
    }

    fn read_mode(&mut self, value: &Value) -> Result<(), String> {
        match value.as_str() {
            Some("default") => {}
            Some("plan") => self.is_plan = true,
            Some("dontAsk") => self.by_default = Some("deny"),
            Some(mode @ ("acceptEdits" | "bypassPermissions" | "auto")) => {
                self.note(
                    &format!("permissionMode: {mode}"),
                    "`--approve` and `chat.defaultTrust` decide this here",
                );
            }
            _ => return Err(format!("its `permissionMode` {value} is not known here")),
        }
        Ok(())
    }

    /// `{edit: deny, bash: {"git push *": ask}}` of opencode.
    fn read_permission(&mut self, value: &Value, around: &Surroundings<'_>) -> Result<(), String> {
        let permissions = match opened(value) {
            Value::Object(permissions) => permissions,
            Value::String(all) => Map::from_iter([("*".to_owned(), json!(all))]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err("its `permission` is not understood".to_owned());
            }
        };
        for (tool, decision) in &permissions {
            match &opened(decision) {
                Value::String(decision) => self.decide(tool, decision)?,
                Value::Object(patterns) => self.read_patterns(tool, patterns, around)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                    return Err(format!("its permission for `{tool}` is not understood"));
                }
            }
        }
        Ok(())
    }

    /// A decision about a whole tool.
    fn decide(&mut self, tool: &str, decision: &str) -> Result<(), String> {
        match (tool, decision) {
            (_, "allow") => {}
            ("*", "ask") => self.by_default = Some("ask"),
            ("*", "deny") => return Err("it denies all tools except some".to_owned()),
            ("doom_loop", "ask" | "deny") => {}
            ("external_directory", "ask") => {}
            ("external_directory", "deny") => {
                return Err("it may never leave its folder; Dragoman would ask a person instead".to_owned());
            }
            ("edit", "deny") => ["edit", "write"].iter().for_each(|tool| self.forbid_whole(tool)),
            (_, "deny") => self.forbid_whole(tool),
            (_, "ask") => {
                let targets = targets(tool);
                if targets.is_empty() {
                    return Err(format!("Dragoman's settings cannot express its permission for `{tool}`"));
                }
                self.rules.extend(targets.iter().map(|target| (RuleList::Ask, whole_tool(target))));
            }
            _ => return Err(format!("its permission for `{tool}` is not understood")),
        }
        Ok(())
    }

    /// Decisions by command or path. The last pattern that matches counts there; here a denial does.
    fn read_patterns(
        &mut self,
        tool: &str,
        patterns: &Map<String, Value>,
        around: &Surroundings<'_>,
    ) -> Result<(), String> {
        let is_denied = |pattern: &str| patterns.get(pattern).is_some_and(|decision| decision == "deny");
        let has_exception = patterns.values().any(|decision| decision != "deny");
        if ["*", "**"].iter().any(|all| is_denied(all)) && has_exception {
            return Err(format!(
                "it may use `{tool}` only in some cases, which Dragoman's settings cannot express"
            ));
        }
        for (pattern, decision) in patterns {
            let list = match decision.as_str() {
                Some("allow") => continue,
                Some("ask") => RuleList::Ask,
                Some("deny") => RuleList::Deny,
                _ => return Err(format!("its permission for `{tool}` is not understood")),
            };
            if matches!(pattern.as_str(), "*" | "**") {
                self.decide(tool, list.key())?;
                continue;
            }
            let rules = permissions::of_opencode(tool, pattern, list, &around.context)
                .ok_or_else(|| format!("Dragoman's settings cannot express its permission for `{tool}`"))?;
            self.rules.extend(rules.into_iter().map(|rule| (list, rule)));
        }
        Ok(())
    }
}

fn whole_tool(target: &str) -> NewRule {
    NewRule { target: target.to_owned(), pattern: None }
}

/// Names of tools of servers: one underscore there is two here, and `*` is any text.
pub(super) fn server_pattern(name: &str) -> String {
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
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    fn read(settings: &Value) -> Result<Value, String> {
        let servers = HashSet::new();
        let context = Context { home: Path::new("/home/me"), servers: &servers };
        let custom_tools = ["deploy".to_owned()];
        let around = Surroundings { context, custom_tools: &custom_tools };
        let mut agent = json!({});
        Restrictions::read(settings.as_object().unwrap(), &around)?.apply(&mut agent);
        Ok(agent)
    }

    fn disabled(agent: &Value) -> Vec<&str> {
        agent["disabledTools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    #[test]
    fn restrictions_become_settings_that_forbid_the_same() {
        for (settings, forbidden, kept) in [
            (
                json!({"tools": "Read, Grep"}),
                &["shell_command", "write_file", "web_search", "spawn_agent", "deploy", OF_SERVERS][..],
                &["read_file", "grep"][..],
            ),
            (
                json!({"tools": ["Read", "Edit"]}),
                &["write_file", "move_file", "shell_command"],
                &["edit_file"],
            ),
            (json!({"tools": []}), &["read_file", "shell_command", "skill"], &[]),
            (json!({"tools": "*"}), &[], &["shell_command"]),
            (
                json!({"tools": {"bash": false, "write": false}}),
                &["shell_command", "write_file", "move_file"],
                &["edit_file"],
            ),
            (
                json!({"tools": "{bash: false, \"edit\": false}"}),
                &["shell_command", "edit_file"],
                &["read_file"],
            ),
            (json!({"tools": {"notes_*": false, "notes_add": false}}), &["notes_+.*", "notes_+add"], &[]),
            (
                json!({"disallowedTools": "Bash, mcp__notes"}),
                &["shell_command", "background_job", "notes"],
                &["edit_file"],
            ),
            (json!({"disallowedTools": ["mcp__notes__add", "Task"]}), &["notes_+add", "spawn_agent"], &[]),
            (
                json!({"permission": {"edit": "deny"}}),
                &["edit_file", "write_file", "move_file"],
                &["shell_command"],
            ),
            (
                json!({"permission": {"bash": {"*": "deny"}, "webfetch": "deny"}}),
                &["shell_command", "fetch_url"],
                &[],
            ),
        ] {
            let agent = read(&settings).unwrap_or_else(|why| panic!("{settings}: {why}"));
            let off = disabled(&agent);
            forbidden.iter().for_each(|tool| assert!(off.contains(tool), "{settings}: {tool} in {off:?}"));
            kept.iter().for_each(|tool| assert!(!off.contains(tool), "{settings}: {tool} in {off:?}"));
        }
    }

    #[test]
    fn rules_and_modes_are_kept() {
        assert_eq!(read(&json!({"permissionMode": "plan"})).unwrap(), json!({"inherit": "plan"}));
        assert_eq!(
            read(&json!({"maxTurns": 3, "isolation": "worktree"})).unwrap(),
            json!({"maxSteps": 3, "worktree": true})
        );
        let agent =
            read(&json!({"permissionMode": "dontAsk", "disallowedTools": "Bash(rm:*), Bash(git push:*)"}))
                .unwrap();
        let approval = &agent["toolCall"]["approval"];
        assert_eq!(approval["byDefault"], "deny");
        let denied = &approval["deny"]["eca__shell_command"]["argsMatchers"]["command"];
        assert_eq!(denied, &json!(["rm.*", "git push.*"]));
        let permission = json!({"permission": {"bash": {"*": "ask", "git push *": "deny", "ls": "allow"},
            "read": {"*.env": "deny"}, "edit": "ask", "*": "ask"}});
        let approval = read(&permission).unwrap()["toolCall"]["approval"].clone();
        assert_eq!(approval["byDefault"], "ask");
        assert_eq!(approval["ask"]["eca__shell_command"], json!({}));
        assert_eq!(approval["ask"]["eca__write_file"], json!({}));
        assert_eq!(approval["deny"]["eca__shell_command"]["argsMatchers"]["command"], json!(["git push.*"]));
        assert_eq!(approval["deny"]["eca__read_file"]["argsMatchers"]["path"], json!([r"(.*/)?.*\.env"]));
        assert!(approval.get("allow").is_none(), "{approval}");
    }

    #[test]
    fn what_cannot_be_said_here_is_not_imported() {
        for settings in [
            json!({"tools": "Read, Bash(git log:*)"}),
            json!({"tools": null}),
            json!({"tools": 5}),
            json!({"tools": {"bash": "sometimes"}}),
            json!({"tools": {"*": false, "read": true}}),
            json!({"tools": "{bash: {a: b}}"}),
            json!({"disallowedTools": {"a": 1}}),
            json!({"disallowedTools": "Foo(bar)"}),
            json!({"permissionMode": "delegate"}),
            json!({"permission": {"bash": {"*": "deny", "git log *": "allow"}}}),
            json!({"permission": {"*": "deny"}}),
            json!({"permission": "deny"}),
            json!({"permission": {"external_directory": "deny"}}),
            json!({"permission": {"bash": 1}}),
            json!({"permission": {"bash": {"rm *": "never"}}}),
            json!({"permission": {"notes_*": "ask"}}),
            json!({"hooks": {"PreToolUse": []}}),
            json!({"disable": true}),
            json!({"onlyFolder": "src"}),
            json!({"maxTurns": "many"}),
        ] {
            assert!(read(&settings).is_err(), "{settings}");
        }
        for harmless in [
            json!({"name": "a", "color": "red", "model": "opus", "disable": false}),
            json!({"temperature": 0.1}),
        ] {
            assert_eq!(read(&harmless), Ok(json!({})), "{harmless}");
        }
    }
}
