//! The list of tools that requests offer, kept for as long as nothing in it changes.
//!
//! Must not choose tools. Invariant: the list equals the one that would be made anew.

use std::sync::{Arc, Mutex, PoisonError};

use domain::tool::{Tool, ToolSpec};

use super::instructions;

/// The list of tools that the last request offered. Most requests offer the same one, and what is computed of it then holds.
#[derive(Default)]
pub(crate) struct OfferedTools(Mutex<Arc<[ToolSpec]>>);

impl OfferedTools {
    /// The list of these tools: the one before, where nothing has changed.
    pub(super) fn update(&self, tools: &[Arc<dyn Tool>], prompts: &config::Prompts) -> Arc<[ToolSpec]> {
        let mut offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(known, tool): (&ToolSpec, &Arc<dyn Tool>)| is_described(known, tool.spec(), prompts);
        if offered.len() != tools.len() || !offered.iter().zip(tools).all(is_same) {
            *offered = tools.iter().map(|tool| described(tool.spec(), prompts)).collect();
        }
        offered.clone()
    }
}

/// Whether a tool is known as [`described`] describes it.
fn is_described(known: &ToolSpec, spec: &ToolSpec, prompts: &config::Prompts) -> bool {
    let own = instructions::own_text(prompts.tool(&spec.name, &spec.offered_name()));
    let ToolSpec { name, server, origin, description, input_schema, effect } = known;
    (name, server, origin, effect) == (&spec.name, &spec.server, &spec.origin, &spec.effect)
        && description == own.as_ref().unwrap_or(&spec.description)
        && *input_schema == spec.input_schema
}

/// The tool with the description that the user wrote for it.
pub(crate) fn described(spec: &ToolSpec, prompts: &config::Prompts) -> ToolSpec {
    let own = instructions::own_text(prompts.tool(&spec.name, &spec.offered_name()));
    let mut spec = spec.clone();
    spec.description = own.unwrap_or(spec.description);
    spec
}
