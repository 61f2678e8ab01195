//! Behaviors: the instructions of an agent and the tools it is offered. `agent` (also called `code`) and `plan` are
//! built in.

use std::sync::Arc;

use config::Settings;
use domain::Failure;
use domain::command::{SessionSettings as Change, known_behavior};
use domain::model::ModelInfo;
use domain::tool::{Tool, ToolEffect};

use crate::session::Session;

/// A behavior that is there without configuration.
struct BuiltIn {
    name: &'static str,
    /// Other names of it; the empty name means the default.
    aliases: &'static [&'static str],
    system_prompt: &'static str,
    /// Nothing may be changed.
    read_only: bool,
}

/// The default first.
const BUILT_IN: [BuiltIn; 2] = [
    BuiltIn {
        name: "agent",
        aliases: &["code", ""],
        system_prompt: include_str!("texts/agent.md"),
        read_only: false,
    },
    BuiltIn { name: "plan", aliases: &[], system_prompt: include_str!("texts/plan.md"), read_only: true },
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
    let mut names: Vec<String> = BUILT_IN.iter().map(|known| known.name.to_owned()).collect();
    for (name, behavior) in &settings.behaviors {
        let name = canonical(name).to_owned();
        if behavior.primary && !names.contains(&name) {
            names.push(name);
        }
    }
    names
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

/// The tools a model is offered, in a stable order.
pub(crate) fn tools(session: &Session, behavior: Option<&str>, model: &ModelInfo) -> Vec<Arc<dyn Tool>> {
    if !model.tools {
        return Vec::new();
    }
    let settings = &session.workspace.settings;
    let read_only = is_read_only(behavior.unwrap_or_default(), settings);
    let own = behavior.and_then(|name| settings.behaviors.get(canonical(name)));
    let disabled: Vec<&String> =
        settings.tools.disabled.iter().chain(own.into_iter().flat_map(|own| &own.disabled_tools)).collect();
    let mut tools = session.tools();
    tools.retain(|tool| {
        let spec = tool.spec();
        let off = disabled.iter().any(|name| **name == spec.name || **name == spec.offered_name());
        let misplaced = spec.effect == if read_only { ToolEffect::WritesFiles } else { ToolEffect::Previews };
        !(off || misplaced)
    });
    tools
}
