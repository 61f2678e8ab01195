//! Turns flags of `dragoman run` into settings of the command line: rules for tools, MCP servers.

use std::path::Path;

use domain::Failure;
use serde_json::{Map, Value, json};

use crate::commands::config_edit;
use crate::mcp_entries;

/// The settings that `-c`, `--allow`, `--deny` and `--mcp-config` stand for.
pub(super) fn overrides(
    settings: &[String],
    allow: &[String],
    deny: &[String],
    mcp_config: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let mut settings = own_settings(settings)?;
    let mut approval = Map::new();
    for (name, flags) in [("allow", allow), ("deny", deny)] {
        if !flags.is_empty() {
            approval.insert(name.to_owned(), Value::Object(rules(flags)?));
        }
    }
    if !approval.is_empty() {
        merge(&mut settings, "toolCall", json!({"approval": approval}));
    }
    if let Some(config) = mcp_config {
        merge(&mut settings, "mcpServers", Value::Object(servers(config)?));
    }
    Ok(settings)
}

/// `KEY=VALUE`, with a path of dots and JSON or a text.
fn own_settings(flags: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut settings = Map::new();
    for flag in flags {
        let Some((key, value)) = flag.split_once('=') else {
            return Err(Failure::user(format!("`-c {flag}` has no value."))
                .hint("Write KEY=VALUE, for instance -c maxSteps=20 or -c chat.verifyChanges=false."));
        };
        let keys = config_edit::parts(key.trim())?;
        if let Value::Object(members) = config_edit::nested(&keys, config_edit::read_value(value)) {
            members.into_iter().for_each(|(name, value)| merge(&mut settings, &name, value));
        }
    }
    Ok(settings)
}

/// Objects are joined; other values replace each other.
fn merge(settings: &mut Map<String, Value>, name: &str, value: Value) {
    match (settings.get_mut(name), value) {
        (Some(Value::Object(known)), Value::Object(new)) => {
            new.into_iter().for_each(|(name, value)| merge(known, &name, value));
        }
        (_, value) => drop(settings.insert(name.to_owned(), value)),
    }
}

/// `TOOL` or `TOOL=PATTERN`, several of which may name one tool.
fn rules(flags: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut rules: Map<String, Value> = Map::new();
    for flag in flags {
        let (tool, pattern) = match flag.split_once('=') {
            Some((tool, pattern)) => (tool.trim(), Some(pattern)),
            None => (flag.trim(), None),
        };
        if tool.is_empty() || pattern.is_some_and(str::is_empty) {
            return Err(Failure::user(format!("`{flag}` is not a rule."))
                .hint("Write TOOL or TOOL=PATTERN, for instance 'shell_command=git status.*'."));
        }
        let name = if tool.contains("__") { tool.to_owned() } else { format!("eca__{tool}") };
        let rule = rules.entry(name).or_insert_with(|| json!({}));
        match pattern {
            // A rule without patterns matches every call.
            None => *rule = json!({}),
            Some(pattern) => {
                let known = rule["argsMatchers"][main_argument(tool)].as_array().cloned();
                let mut patterns = known.unwrap_or_default();
                patterns.push(json!(pattern));
                *rule = json!({"argsMatchers": {main_argument(tool): patterns}});
            }
        }
    }
    Ok(rules)
}

/// The argument that a pattern is about.
fn main_argument(tool: &str) -> &'static str {
    match tool.rsplit("__").next().unwrap_or(tool) {
        "shell_command" => "command",
        "fetch_url" | "web_fetch" => "url",
        "grep" | "glob" => "pattern",
        _ => "path",
    }
}

/// `{"mcpServers": {…}}`, or only the servers; a file, or the JSON itself.
fn servers(config: &str) -> Result<Map<String, Value>, Failure> {
    let text = if config.trim_start().starts_with('{') {
        config.to_owned()
    } else {
        std::fs::read_to_string(Path::new(config))
            .map_err(|error| Failure::user(format!("{config} (--mcp-config) cannot be read: {error}.")))?
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::user(format!("--mcp-config is not JSON: {error}.")))?;
    const FORM: &str = "Write {\"mcpServers\": {\"NAME\": {\"command\": …}}}.";
    let servers = value.get("mcpServers").unwrap_or(&value).as_object();
    let servers = servers.ok_or_else(|| Failure::user("--mcp-config has no servers.").hint(FORM))?;
    for (name, entry) in servers {
        mcp_entries::check(name, entry).map_err(|failure| {
            Failure::user(format!("--mcp-config is wrong: {}", failure.message)).hint(FORM)
        })?;
    }
    Ok(servers.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_could_never_start_are_refused() {
        for fine in [r#"{"x": {"command": "a"}}"#, r#"{"mcpServers": {"x": {"url": "http://a"}}}"#, "{}"] {
            assert!(servers(fine).is_ok(), "{fine}");
        }
        for (wrong, reason) in [
            (r#"{"x": 1}"#, "is no object"),
            (r#"{"mcpServers": {"x": "a"}}"#, "is no object"),
            (r#"{"mcpServers": ["a"]}"#, "no servers"),
            (r#"{"mcpServers": 1}"#, "no servers"),
            (r#"{"mcpServer": {"x": {"command": "a"}}}"#, "neither a command nor a url"),
            (r#"{"x": {}}"#, "neither a command nor a url"),
            (r#"{"x": {"command": 1}}"#, "neither a command nor a url"),
            (r#"{"x": {"command": "a", "url": "http://a"}}"#, "both"),
            (r#"{"a b": {"command": "a"}}"#, "name of a server"),
            (r#"{"x": "#, "not JSON"),
        ] {
            let failure = servers(wrong).expect_err(wrong);
            assert!(failure.message.contains(reason), "{wrong}: {failure}");
        }
    }

    #[test]
    fn flags_become_rules() {
        let flags = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let allow = flags(&["read_file", "shell_command=git status.*", "shell_command=ls.*"]);
        let made = overrides(&[], &allow, &flags(&["db__drop"]), None).expect("rules");
        assert_eq!(
            Value::Object(made),
            json!({"toolCall": {"approval": {
                "allow": {
                    "eca__read_file": {},
                    "eca__shell_command": {"argsMatchers": {"command": ["git status.*", "ls.*"]}},
                },
                "deny": {"db__drop": {}},
            }}})
        );
        for wrong in ["", "=x", "shell_command="] {
            assert!(overrides(&[], &flags(&[wrong]), &[], None).is_err(), "{wrong}");
        }
    }
    #[test]
    fn own_settings_are_joined() {
        let flags = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let own = flags(&["maxSteps=20", "chat.title=false", "chat.theme=light", "defaultModel=a/b=c"]);
        let made = overrides(&own, &flags(&["read_file"]), &[], None).expect("settings");
        assert_eq!(
            Value::Object(made),
            json!({"maxSteps": 20, "chat": {"title": false, "theme": "light"}, "defaultModel": "a/b=c",
                "toolCall": {"approval": {"allow": {"eca__read_file": {}}}}})
        );
        for wrong in ["maxSteps", "=1", "a..b=1"] {
            assert!(overrides(&flags(&[wrong]), &[], &[], None).is_err(), "{wrong}");
        }
    }
}
