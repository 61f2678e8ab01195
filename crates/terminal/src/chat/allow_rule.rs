//! The rule that an approval would become. Plain data; must not know where rules are kept.

use domain::Failure;
use domain::tool_call::ToolCall;
use serde_json::Value;

/// A rule for the present project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    /// `server__tool`.
    pub target: String,
    /// An argument and the regular expressions for it; `None`: every call of the tool.
    pub pattern: Option<(&'static str, Vec<String>)>,
}

/// A call whose decision is explained, as the chat stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedCall {
    /// `server__tool`.
    pub tool: String,
    pub input: Value,
    /// The behavior only plans.
    pub plan: bool,
    pub tainted: bool,
}

/// The user's own rules for the present project.
pub trait ProjectRules: Send + Sync {
    /// The lines that a rule would add to the user's settings.
    fn preview(&self, rule: &AllowRule) -> Result<Vec<String>, Failure>;
    /// Writes it; returns the file.
    fn write(&self, rule: &AllowRule) -> Result<String, Failure>;
    /// The rules in force, for people.
    fn list(&self) -> Vec<String>;
}

impl AllowRule {
    /// The rule for a call and what would be remembered of it. `None` where it cannot be remembered, or where no rule
    /// keeps the question away: paths outside the workspace are asked about whatever rules say.
    pub(super) fn of_call(call: &ToolCall, keys: &[String]) -> Option<Self> {
        if keys.is_empty() || !keys.iter().all(|key| is_inside(call, key)) {
            return None;
        }
        let target = format!("{}__{}", call.server, call.name);
        let pattern = match target.as_str() {
            "eca__shell_command" => Some(("command", keys.iter().map(|key| command_pattern(key)).collect())),
            "eca__fetch_url" => {
                let url = call.input.as_ref()?.get("url").and_then(Value::as_str)?;
                let (scheme, rest) = url.split_once("://")?;
                let host = rest.split(['/', '?', '#']).next().filter(|host| !host.contains('@'))?;
                Some((
                    "url",
                    vec![format!(
                        "{}://{}([/?#].*)?",
                        domain::escape_pattern(scheme),
                        domain::escape_pattern(host)
                    )],
                ))
            }
            _ => None,
        };
        Some(Self { target, pattern })
    }
}

/// Whether a key is about the call wherever it is made, not about a path outside the workspace.
fn is_inside(call: &ToolCall, key: &str) -> bool {
    let input = |name: &str| call.input.as_ref().and_then(|input| input.get(name)).and_then(Value::as_str);
    if call.server != "eca" || call.name == "fetch_url" {
        return true;
    }
    if call.name == "shell_command" {
        let words = key.strip_suffix(" …").unwrap_or(key);
        return input("command").is_some_and(|line| line.contains(words));
    }
    key.strip_prefix(call.name.as_str()).is_some_and(|rest| rest.is_empty() || rest == " in this workspace")
}

/// `cargo test …` covers other plain arguments.
fn command_pattern(key: &str) -> String {
    match key.strip_suffix(" …") {
        Some(command) => format!("{}( [A-Za-z0-9_./:=-]+)*", domain::escape_pattern(command)),
        None => domain::escape_pattern(key),
    }
}

#[cfg(test)]
mod tests {
    use domain::tool_call::{Origin, ToolState};
    use serde_json::json;

    use super::*;

    fn rule(name: &str, input: Value, keys: &[&str]) -> Option<AllowRule> {
        let call = ToolCall {
            call_id: String::new(),
            name: name.into(),
            server: "eca".into(),
            origin: Origin::Native,
            input_text: String::new(),
            input: Some(input),
            state: ToolState::Preparing,
            summary: String::new(),
            details: None,
            manual_approval: true,
            live_output: String::new(),
            result: Vec::new(),
            error: false,
            millis: 0,
            locations: Vec::new(),
            provider: None,
        };
        AllowRule::of_call(&call, &keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_path_outside_the_workspace_has_no_rule() {
        let path = json!({"path": "/etc/hosts"});
        assert_eq!(rule("write_file", path.clone(), &["write_file /etc/hosts"]), None);
        assert!(rule("write_file", path, &["write_file in this workspace"]).is_some());
        let line = json!({"command": "cat /etc/hosts"});
        assert_eq!(rule("shell_command", line, &["reading with /etc/hosts"]), None);
        let line = json!({"command": "cargo test --all"});
        assert!(rule("shell_command", line, &["cargo test …"]).is_some());
    }

    #[test]
    fn a_key_becomes_a_pattern_that_covers_it() {
        assert_eq!(command_pattern("npm test"), "npm test");
        assert_eq!(command_pattern("rm a.txt"), r"rm a\.txt");
        assert_eq!(command_pattern("cargo test …"), "cargo test( [A-Za-z0-9_./:=-]+)*");
    }
}
