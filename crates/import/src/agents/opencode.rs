//! Restrictions of agents of opencode.

use serde_json::{Map, Value, json};

use super::{Restrictions, Surroundings, opened};
use crate::permissions;
use crate::plan::{NewRule, RuleList};
use crate::tool_names::targets;

impl Restrictions {
    /// `{bash: false, "server_*": false}` of opencode.
    pub(super) fn read_switches(&mut self, switches: &Map<String, Value>) -> Result<(), String> {
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

    /// `{edit: deny, bash: {"git push *": ask}}` of opencode.
    pub(super) fn read_permission(&mut self, value: &Value, around: &Surroundings<'_>) -> Result<(), String> {
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
    pub(super) fn decide(&mut self, tool: &str, decision: &str) -> Result<(), String> {
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
    pub(super) fn read_patterns(
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
