//! Behaviors: what an agent is told and which tools it has. `agent` (also called `code`) and `plan` are built in.

use std::sync::Arc;

use config::Settings;
use domain::Failure;
use domain::command::{SessionSettings as Change, known_behavior};
use domain::model::ModelInfo;
use domain::tool::Tool;

use crate::session::SessionContext;

/// Tools that change files have no place in a plan.
const CHANGING: [&str; 3] = ["write_file", "edit_file", "move_file"];
/// Only a plan previews.
const PLANNING: [&str; 1] = ["preview_file_change"];

/// `code` is another name of `agent`; an empty name means the default.
pub fn canonical(name: &str) -> &str {
    match name {
        "code" | "agent" | "" => "agent",
        other => other,
    }
}

pub fn names(settings: &Settings) -> Vec<String> {
    let mut names = vec!["agent".to_owned(), "plan".to_owned()];
    for (name, behavior) in &settings.behaviors {
        let name = canonical(name).to_owned();
        if behavior.primary && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A default that cannot be chosen is none.
pub fn default_name(settings: &Settings) -> String {
    let name = canonical(&settings.default_behavior);
    if names(settings).iter().any(|known| known == name) { name.to_owned() } else { "agent".to_owned() }
}

/// Gives the behavior of a change its one name, and refuses one that cannot be chosen; `now` may always stay.
pub fn settle(change: &mut Change, now: Option<&str>, settings: &Settings) -> Result<(), Failure> {
    let Some(name) = &mut change.behavior else { return Ok(()) };
    *name = canonical(name).to_owned();
    if now == Some(name.as_str()) { Ok(()) } else { known_behavior(name, &names(settings)) }
}

pub fn welcome(settings: &Settings) -> String {
    settings.chat.welcome_message.clone()
}

/// The tools a model is offered, in a stable order.
pub fn tools(shared: &SessionContext, behavior: Option<&str>, model: &ModelInfo) -> Vec<Arc<dyn Tool>> {
    if !model.tools {
        return Vec::new();
    }
    let plan = behavior.map(canonical) == Some("plan");
    let settings = &shared.surroundings.settings;
    let own = behavior.and_then(|name| settings.behaviors.get(canonical(name)));
    let disabled: Vec<&String> =
        settings.tools.disabled.iter().chain(own.into_iter().flat_map(|own| &own.disabled_tools)).collect();
    let mut tools = shared.tools();
    tools.retain(|tool| {
        let spec = tool.spec();
        let left_out: &[&str] = if plan { &CHANGING } else { &PLANNING };
        let native = spec.server == "eca";
        let off = disabled.iter().any(|name| **name == spec.name || **name == spec.offered_name());
        let misplaced = native && left_out.contains(&spec.name.as_str());
        !(off || misplaced)
    });
    tools
}
