//! MCP servers of other programs, as entries of our own.

use domain::Failure;
use serde_json::{Map, Value, json};

use crate::toml;

/// The name of a server of another program, and our entry for it or why there is none.
pub type ImportedServer = (String, Result<Value, String>);

/// The servers of another program's file, as our entries: Claude and Cursor (`mcpServers`), VS Code (`servers`), codex
/// (`mcp_servers` in TOML). Entries that cannot be used come with a reason.
pub fn from_other_program(text: &str, is_toml: bool) -> Result<Vec<ImportedServer>, Failure> {
    let servers = read_servers(text, is_toml)?;
    Ok(servers.into_iter().map(|(name, entry)| (name, convert(&entry))).collect())
}

/// Members of such servers that our entries do not have, by the name of the server.
pub fn unused_members(text: &str, is_toml: bool) -> Vec<(String, Vec<String>)> {
    let unused = |entry: &Value| -> Vec<String> {
        let members = entry.as_object().into_iter().flatten();
        let unused = members.filter(|(member, value)| !value.is_null() && !is_used(member));
        unused.map(|(member, _)| member.clone()).collect()
    };
    let servers = read_servers(text, is_toml).unwrap_or_default();
    let named = servers.into_iter().map(|(name, entry)| (name, unused(&entry)));
    named.filter(|(_, members)| !members.is_empty()).collect()
}

/// Which tools of a server another program lets its model use.
#[derive(Debug, PartialEq)]
pub enum ToolLimit {
    /// A list of the only ones.
    Only,
    /// All but these.
    Without(Vec<String>),
}

/// The servers that are limited to some of their tools.
pub fn tool_limits(text: &str, is_toml: bool) -> Vec<(String, ToolLimit)> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    let limit = |entry: &Value| {
        if ONLY.iter().any(|member| entry[*member].is_array()) {
            return Some(ToolLimit::Only);
        }
        let without: Vec<String> = WITHOUT.iter().flat_map(|member| texts(&entry[*member])).collect();
        (!without.is_empty()).then_some(ToolLimit::Without(without))
    };
    let servers = read_servers(text, is_toml).unwrap_or_default();
    servers.into_iter().filter_map(|(name, entry)| Some((name, limit(&entry)?))).collect()
}

/// Members that name the only tools, and those that must not be used: Gemini, codex, Cline.
const ONLY: [&str; 3] = ["includeTools", "enabled_tools", "enabledTools"];
const WITHOUT: [&str; 3] = ["excludeTools", "disabled_tools", "disabledTools"];

/// Members that `convert` reads, and those that say only what another one shows.
fn is_used(member: &str) -> bool {
    let read =
        ["command", "args", "env", "url", "headers", "disabled", "serverUrl", "httpUrl", "http_headers"];
    read.contains(&member)
        || WITHOUT.contains(&member)
        || ONLY.contains(&member)
        || matches!(member, "enabled" | "bearer_token_env_var" | "type" | "transport" | "description")
}

fn read_servers(text: &str, is_toml: bool) -> Result<Map<String, Value>, Failure> {
    let unreadable = |reason: String| Failure::user(format!("The file cannot be read: {reason}."));
    if is_toml {
        return codex_servers(text).map_err(unreadable);
    }
    let file: Value = config::parse_json_with_comments(text).map_err(unreadable)?;
    let found = ["mcpServers", "servers"].iter().find_map(|section| file.get(*section)?.as_object());
    let nested = || file["mcp"]["servers"].as_object();
    Ok(found.or_else(nested).cloned().unwrap_or_default())
}

fn convert(entry: &Value) -> Result<Value, String> {
    let mut ours = Map::new();
    for (member, value) in entry.as_object().into_iter().flatten() {
        match member.as_str() {
            "command" | "args" | "env" | "url" | "headers" | "disabled" => {
                ours.insert(member.clone(), variables(value));
            }
            // Cline and others, Gemini, codex.
            "serverUrl" | "httpUrl" => drop(ours.insert("url".to_owned(), variables(value))),
            "http_headers" => drop(ours.insert("headers".to_owned(), variables(value))),
            "enabled" => drop(ours.insert("disabled".to_owned(), json!(value == &json!(false)))),
            "bearer_token_env_var" => {
                let variable = value.as_str().unwrap_or_default();
                ours.insert(
                    "headers".to_owned(),
                    json!({"Authorization": format!("Bearer ${{env:{variable}}}")}),
                );
            }
            _ => {}
        }
    }
    if ours.get("disabled") == Some(&json!(false)) {
        ours.shift_remove("disabled");
    }
    match (ours.contains_key("command"), ours.contains_key("url")) {
        (false, false) => Err("it has neither a command nor a url".to_owned()),
        _ => Ok(ours.into()),
    }
}

/// `${NAME}` of Claude becomes `${env:NAME}`; what asks the user (`${input:…}`) stays as it is and is reported by `config check`.
fn variables(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(env_references(text)),
        Value::Array(values) => values.iter().map(variables).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), variables(value))).collect::<Map<_, _>>().into()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain.clone(),
    }
}

fn env_references(text: &str) -> String {
    let mut converted = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, inside) = (&rest[..at], &rest[at + 2..]);
        let Some(end) = inside.find('}') else { break };
        let reference = &inside[..end];
        converted.push_str(before);
        let (name, default) = reference.split_once(":-").map_or((reference, None), |(n, d)| (n, Some(d)));
        let is_variable = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match (is_variable, default) {
            (true, Some(default)) => converted.push_str(&format!("${{env:{name}:{default}}}")),
            (true, None) => converted.push_str(&format!("${{env:{name}}}")),
            (false, _) => converted.push_str(&format!("${{{reference}}}")),
        }
        rest = &inside[end + 1..];
    }
    converted + rest
}

/// The tables below `mcp_servers` of codex's file.
fn codex_servers(text: &str) -> Result<Map<String, Value>, String> {
    match toml::read(text)?.remove("mcp_servers") {
        None => Ok(Map::new()),
        Some(Value::Object(servers)) => Ok(servers),
        Some(_) => Err("`mcp_servers` is no table".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str, is_toml: bool) -> Vec<ImportedServer> {
        from_other_program(text, is_toml).unwrap()
    }

    #[test]
    fn entries_of_other_programs_are_converted() {
        let claude = r#"{"mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"K": "${KEY:-none}"}},
            "b": {"type": "http", "url": "https://b", "headers": {"Authorization": "Bearer ${TOKEN}"}}, "c": {"type": "x"}}}"#;
        let servers = imported(claude, false);
        assert_eq!(
            servers[0].1,
            Ok(json!({"command": "npx", "args": ["-y", "x"], "env": {"K": "${env:KEY:none}"}}))
        );
        assert_eq!(
            servers[1].1,
            Ok(json!({"url": "https://b", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}))
        );
        assert!(servers[2].1.is_err());
        let code = r#"{ // VS Code
            "inputs": [], "servers": {"gh": {"type": "http", "url": "https://gh", "headers": {"X": "${input:key}"}}}}"#;
        assert_eq!(
            imported(code, false)[0].1,
            Ok(json!({"url": "https://gh", "headers": {"X": "${input:key}"}}))
        );
        let codex = "model = \"x\"\n\n[mcp_servers.files]\ncommand = \"npx\" # here\nargs = [\"-y\", \"files\"]\nenv = { \"A\" = \"1\", B = '2' }\n\
                     enabled = false\n[mcp_servers.web]\nurl = \"https://w\"\nbearer_token_env_var = \"WEB\"\n[mcp_servers.web.http_headers]\nX = \"1\"\n[other]\na = 1979-05-27\n";
        let servers = imported(codex, true);
        assert_eq!(
            servers[0].1,
            Ok(
                json!({"command": "npx", "args": ["-y", "files"], "env": {"A": "1", "B": "2"}, "disabled": true})
            )
        );
        assert_eq!(servers[1].1.as_ref().unwrap()["url"], "https://w");
        let lines = "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\",\n  'files', # both\n]\nenv = { A = \"1,2\" }\n";
        let expected = json!({"command": "npx", "args": ["-y", "files"], "env": {"A": "1,2"}});
        assert_eq!(imported(lines, true)[0].1, Ok(expected), "lists of several lines");
        assert!(from_other_program("[mcp_servers.a]\ncommand = \"\"\"\n", true).is_err());
    }
}
