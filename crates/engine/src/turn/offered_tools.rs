//! The list of tools that requests offer, kept for as long as nothing in it changes.
//!
//! Must not choose tools. Invariant: the list equals the one that would be made anew.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::tool::{Tool, ToolSpec};

use super::instructions;
use crate::families::Profile;

/// The list of tools that the last request offered. Most requests offer the same one, and what is computed of it then holds.
#[derive(Default)]
pub(crate) struct OfferedTools(Mutex<KnownList>);

#[derive(Default)]
struct KnownList {
    /// The tools themselves: a tool that is still the same one is not compared. They may hold their session, which holds this.
    tools: Vec<Weak<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    /// No description is the user's own; those may be others each time.
    is_plain: bool,
    /// The family that they were described for.
    family: &'static str,
}

impl OfferedTools {
    /// The list of these tools: the one before, where nothing has changed.
    pub(super) fn update(
        &self,
        tools: &[Arc<dyn Tool>],
        prompts: &config::Prompts,
        profile: &Profile,
    ) -> Arc<[ToolSpec]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownList { tools: before, specs, is_plain, family } = &*known;
        let is_same_family = *family == profile.family.value;
        let is_plain = *is_plain && prompts.tools.is_empty() && is_same_family;
        let shown = |tool: &Arc<dyn Tool>| {
            let mut spec = described(tool.spec(), prompts);
            profile.rename_arguments(&mut spec);
            spec
        };
        let is_it = |at: usize, tool: &Arc<dyn Tool>| {
            is_plain && std::ptr::addr_eq(before[at].as_ptr(), Arc::as_ptr(tool))
        };
        let is_same = |(at, tool): (usize, &Arc<dyn Tool>)| is_it(at, tool) || specs[at] == shown(tool);
        if specs.len() != tools.len() || !tools.iter().enumerate().all(is_same) {
            let specs = tools.iter().map(shown).collect();
            let tools = tools.iter().map(Arc::downgrade).collect();
            let (is_plain, family) = (prompts.tools.is_empty(), profile.family.value);
            *known = KnownList { tools, specs, is_plain, family };
        }
        known.specs.clone()
    }
}

/// The tool with the description that the user wrote for it.
pub(crate) fn described(spec: &ToolSpec, prompts: &config::Prompts) -> ToolSpec {
    let own = instructions::own_text(prompts.tool(&spec.name, &spec.offered_name()));
    let mut spec = spec.clone();
    spec.description = own.unwrap_or(spec.description);
    spec
}
