//! Restrictions of agents of Claude Code.

use serde_json::Value;

use super::{Restrictions, Surroundings, names, server_pattern};
use crate::permissions;
use crate::plan::RuleList;
use crate::tool_names::ours;

impl Restrictions {
    pub(super) fn forbid_claude(&mut self, value: &Value, around: &Surroundings<'_>) -> Result<(), String> {
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

    pub(super) fn read_mode(&mut self, value: &Value) -> Result<(), String> {
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
}
