//! "Always allow in this project": the rule that an approval would become, and the page that shows it before it is written.
//!
//! Must not know where rules are kept. Invariant: nothing is written before the user has seen the rule and pressed Enter.

use domain::ask::{Answer, AskKind};
use domain::item::ItemKind;
use domain::tool_call::ToolCall;
use domain::{AskId, Failure};
use serde_json::Value;

use super::page::{Page, PageLine};
use super::screen::{Effect, Overlay, Screen};

/// A rule for the present project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    /// `server__tool`.
    pub target: String,
    /// An argument and the regular expressions for it; `None`: every call of the tool.
    pub pattern: Option<(&'static str, Vec<String>)>,
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
    /// The rule for a call and what would be remembered of it. `None` where it cannot be remembered.
    pub(super) fn of_call(call: &ToolCall, keys: &[String]) -> Option<Self> {
        if keys.is_empty() {
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

/// `cargo test …` covers other plain arguments.
fn command_pattern(key: &str) -> String {
    match key.strip_suffix(" …") {
        Some(command) => format!("{}( [A-Za-z0-9_./:=-]+)*", domain::escape_pattern(command)),
        None => domain::escape_pattern(key),
    }
}

impl Screen {
    /// `p` in an approval.
    pub(super) fn preview_project_rule(&mut self) {
        let Some(ask) = self.asks.first() else { return };
        let AskKind::Approval { keys, .. } = &ask.kind else { return };
        let call = self.asks.item().and_then(|item| self.transcript.item(item));
        let rule = match call.map(|item| &item.kind) {
            Some(ItemKind::ToolCall(call)) => AllowRule::of_call(call, keys),
            _ => None,
        };
        match rule {
            Some(rule) => {
                let ask = ask.id;
                self.push_effect(Effect::PreviewRule { ask, rule });
            }
            None => self.flash("This call is asked each time, so there is no rule for it."),
        }
    }

    pub(super) fn show_rule(&mut self, ask: AskId, rule: AllowRule, lines: Vec<String>) {
        let lines = lines.into_iter().map(PageLine::Diff).collect();
        let page = Page::new("Always allow this in the project?", lines);
        self.overlay = Some(Overlay::Rule { page, ask, rule });
    }

    /// Enter on that page: the rule is written, and the call runs.
    pub(super) fn accept_rule(&mut self, ask: AskId, rule: AllowRule) {
        self.push_effect(Effect::AllowInProject(rule));
        if self.asks.first().is_some_and(|first| first.id == ask) {
            self.answer(Answer::Allow { remember: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_a_pattern_that_covers_it() {
        assert_eq!(command_pattern("npm test"), "npm test");
        assert_eq!(command_pattern("rm a.txt"), r"rm a\.txt");
        assert_eq!(command_pattern("cargo test …"), "cargo test( [A-Za-z0-9_./:=-]+)*");
    }
}
