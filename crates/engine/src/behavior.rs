//! Behaviors: the instructions of an agent and the tools it is offered. `agent` (also called `code`) and `plan` are
//! built in.

use std::sync::Arc;

use config::Settings;
use domain::Failure;
use domain::command::{SessionSettings as Change, known_behavior};
use domain::model::ModelInfo;
use domain::names::is_same_name;
use domain::tool::{Tool, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use regex::{Regex, RegexBuilder};

use crate::session::Session;

/// A behavior that is there without configuration.
struct BuiltIn {
    name: &'static str,
    /// Other names of it; the empty name means the default.
    aliases: &'static [&'static str],
    system_prompt: &'static str,
    /// Nothing may be changed.
    read_only: bool,
    /// Set: it works for other agents and cannot be chosen for a chat.
    subagent: Option<&'static str>,
}

/// The default first.
const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        name: "agent",
        aliases: &["code", ""],
        system_prompt: include_str!("texts/agent.md"),
        read_only: false,
        subagent: None,
    },
    BuiltIn {
        name: "plan",
        aliases: &[],
        system_prompt: include_str!("texts/plan.md"),
        read_only: true,
        subagent: None,
    },
    BuiltIn {
        name: "explorer",
        aliases: &[],
        system_prompt: include_str!("texts/explorer.md"),
        read_only: true,
        subagent: Some("finds things out in the workspace; changes nothing"),
    },
    BuiltIn {
        name: "general",
        aliases: &[],
        system_prompt: include_str!("texts/general.md"),
        read_only: false,
        subagent: Some("does a piece of work of several steps"),
    },
];

fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

/// The one name of a behavior: `code` is another name of `agent`, and an empty name means the default.
pub(crate) fn canonical(name: &str) -> &str {
    built_in(name).map_or(name, |known| known.name)
}

/// Whether the behavior, or the one that it inherits from, forbids changes.
pub(crate) fn is_read_only(name: &str, settings: &Settings) -> bool {
    let forbids = |name: &str| built_in(name).is_some_and(|known| known.read_only);
    forbids(name) || forbids(settings.base_behavior(name))
}

/// Our own instructions for a behavior; a behavior of the user's without instructions has those of the default.
pub(crate) fn system_prompt(name: &str) -> &'static str {
    built_in(name).unwrap_or(&BUILT_IN[0]).system_prompt
}

pub(crate) fn names(settings: &Settings) -> Vec<String> {
    let primary = BUILT_IN.iter().filter(|known| known.subagent.is_none());
    let mut names: Vec<String> = primary.map(|known| known.name.to_owned()).collect();
    for (name, behavior) in &settings.behaviors {
        let name = canonical(name).to_owned();
        if behavior.primary && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The agents that work for an agent, each with what it is for.
pub(crate) fn subagents(settings: &Settings, starter: &str) -> Vec<(String, String)> {
    let may_start = |behavior: &config::BehaviorSettings| {
        let named = behavior.spawnable_by.as_ref();
        named.is_none_or(|names| names.iter().any(|name| canonical(name) == canonical(starter)))
    };
    let configured = settings.behaviors.iter().filter(|(_, own)| own.subagent && may_start(own));
    let mut agents: Vec<(String, String)> =
        configured.map(|(name, own)| (name.clone(), own.description.clone().unwrap_or_default())).collect();
    for known in &BUILT_IN {
        if let Some(description) = known.subagent
            && !settings.behaviors.get(known.name).is_some_and(|own| own.subagent || own.primary)
        {
            agents.push((known.name.to_owned(), description.to_owned()));
        }
    }
    agents.sort();
    agents
}

/// Whether a session's behavior, or that of the chat it works for, forbids changes.
pub(crate) fn forbids_changes(session: &Session, behavior: &str) -> bool {
    let of_parent = |inherited: &crate::session::Inherited| {
        is_read_only(&inherited.parent.behavior(), &session.workspace.settings)
    };
    is_read_only(behavior, &session.workspace.settings) || session.inherited.as_ref().is_some_and(of_parent)
}

/// The behavior of new chats; a configured default that cannot be chosen is ignored.
pub(crate) fn default_name(settings: &Settings) -> String {
    let name = canonical(&settings.default_behavior);
    if names(settings).iter().any(|known| known == name) {
        name.to_owned()
    } else {
        BUILT_IN[0].name.to_owned()
    }
}

/// Gives the behavior of a change its one name, and refuses one that cannot be chosen; `now` may always stay.
pub(crate) fn settle(change: &mut Change, now: Option<&str>, settings: &Settings) -> Result<(), Failure> {
    let Some(name) = &mut change.behavior else { return Ok(()) };
    *name = canonical(name).to_owned();
    if now == Some(name.as_str()) { Ok(()) } else { known_behavior(name, &names(settings)) }
}

pub(crate) fn welcome(settings: &Settings) -> String {
    settings.chat.welcome_message.clone()
}

/// An entry of `disabledTools`: a tool, a server, or a pattern of whole names. Either spelling of a name counts.
struct DisabledTool<'a> {
    name: &'a str,
    pattern: Option<Regex>,
}

impl<'a> DisabledTool<'a> {
    fn new(name: &'a str) -> Self {
        // A name is compared as a name; only other characters make a pattern of it.
        let is_pattern =
            name.contains(|character: char| !character.is_alphanumeric() && !"_-:".contains(character));
        let build = || RegexBuilder::new(&format!("^(?:{name})$")).size_limit(1 << 18).build().ok();
        Self { name, pattern: is_pattern.then(build).flatten() }
    }

    fn means(&self, spec: &ToolSpec) -> bool {
        let (offered, is_own) = (spec.offered_name(), spec.origin == Origin::Native);
        let fits = |text: &str| self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
        is_same_name(self.name, &spec.name)
            || is_same_name(self.name, &offered)
            || (!is_own && is_same_name(self.name, &spec.server))
            || fits(&offered)
            || (is_own && fits(&spec.name))
    }
}

/// Whether the settings say that a tool of the engine itself is not offered.
pub(crate) fn is_disabled(session: &Session, spec: &ToolSpec) -> bool {
    let settings = &session.workspace.settings;
    let behavior = session.behavior();
    let own = settings.behaviors.get(canonical(&behavior)).into_iter().flat_map(|own| &own.disabled_tools);
    settings.tools.disabled.iter().chain(own).any(|name| DisabledTool::new(name).means(spec))
}

/// The tools a model is offered, in a stable order.
pub(crate) fn tools(session: &Session, behavior: Option<&str>, model: &ModelInfo) -> Vec<Arc<dyn Tool>> {
    if !model.tools {
        return Vec::new();
    }
    let settings = &session.workspace.settings;
    let read_only = forbids_changes(session, behavior.unwrap_or_default());
    let of_parent = session.inherited.as_ref().map(|inherited| inherited.parent.behavior());
    let names = behavior.into_iter().chain(of_parent.as_deref());
    let own = names.filter_map(|name| settings.behaviors.get(canonical(name)));
    let disabled = settings.tools.disabled.iter().chain(own.flat_map(|own| &own.disabled_tools));
    let disabled: Vec<DisabledTool<'_>> = disabled.map(|name| DisabledTool::new(name)).collect();
    let mut tools = session.tools();
    tools.retain(|tool| {
        let spec = tool.spec();
        // What can do the work of a disabled tool is disabled with it.
        let named = |name: &&str| ToolSpec { name: (*name).to_owned(), ..spec.clone() };
        let off = disabled.iter().any(|disabled| {
            disabled.means(spec) || tool.counts_as().iter().any(|name| disabled.means(&named(name)))
        });
        let misplaced = spec.effect == if read_only { ToolEffect::WritesFiles } else { ToolEffect::Previews };
        !(off || misplaced)
    });
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disabled_tool_is_named_by_itself_its_server_or_a_pattern() {
        let spec = |server: &str, name: &str, origin| ToolSpec {
            name: name.into(),
            server: server.into(),
            origin,
            description: String::new(),
            input_schema: serde_json::Value::Null,
            effect: ToolEffect::Other,
        };
        let (edit, eval) =
            (spec("eca", "edit_file", Origin::Native), spec("clojure-mcp", "eval", Origin::Mcp));
        for (name, own, other) in [
            ("edit_file", true, false),
            ("eca__edit_file", true, false),
            (".*_file", true, false),
            ("clojure-mcp", false, true),
            ("clojureMcp", false, true),
            ("clojure-mcp__ev.*", false, true),
            ("clojureMcp__eval", false, true),
            ("edit", false, false),
            ("eca", false, false),
            ("(", false, false),
            (".*", true, true),
        ] {
            let disabled = DisabledTool::new(name);
            assert_eq!((disabled.means(&edit), disabled.means(&eval)), (own, other), "{name}");
        }
    }
}
